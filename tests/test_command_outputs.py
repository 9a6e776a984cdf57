"""The command: what it writes to, and what it refuses before it begins."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compiler.command.main import main
from compiler.diagnostics import OK

ROOT = Path(__file__).parents[1]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with a program."""
    monkeypatch.chdir(tmp_path)
    Path("good.model").write_text("input x: f32[2, 2]\nreturn x + x\n")
    return tmp_path


def test_a_file_that_is_read_is_not_written_over(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("good.model").read_text()
    Path("link.cu").symlink_to("good.model")
    for out in ("good.model", "link.cu"):
        assert main(["compile", "good.model", "-o", out]) == 2
        assert "another file is needed, this one is read" in capsys.readouterr().err
    assert Path("good.model").read_text() == text


def test_links_stay_and_pipes_are_written_to(here: Path) -> None:
    Path("target.cu").write_text("old")
    Path("link.cu").symlink_to("target.cu")
    assert main(["compile", "good.model", "-o", "link.cu"]) == OK
    assert Path("link.cu").is_symlink()
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(Path("pipe").read_text)
        assert main(["compile", "good.model", "-o", "pipe"]) == OK
    assert read.result() == Path("target.cu").read_text() != "old"
    assert Path("pipe").is_fifo()


def test_sanitizers_are_the_hosts(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "good.model", "--sanitize", "--target", "cuda"]) == 2
    assert "the host target is needed, cuda was given" in capsys.readouterr().err


def test_closed_streams_are_no_bug() -> None:
    for closed in (">&-", "2>&-"):
        words = f"{sys.executable} -m compiler.command ops silu {closed}"
        done = subprocess.run(["sh", "-c", words], cwd=ROOT, capture_output=True, check=False)
        assert done.returncode == OK and not done.stderr
