"""The build cache: keys that cannot run together, entries that are whole or not there, and no
trust in what others could have written."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from compiler.diagnostics import TOOLCHAIN, UserError
from runtime import cache

KEY = cache.digest(["a key"])


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache.root()


class Maker:
    """Fills an entry with one file and counts how often it was asked to."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.calls, self.seconds = 0, seconds

    def __call__(self, folder: Path, final: Path) -> None:
        self.calls += 1
        assert final.name == KEY
        time.sleep(self.seconds)
        (folder / "program").write_bytes(b"bits")


def test_fields_of_a_key_do_not_run_together() -> None:
    assert cache.digest(["ab", "c"]) != cache.digest(["a", "bc"])
    assert cache.digest(["ab"]) != cache.digest(["ab", ""])
    assert cache.digest(["ab"]) == cache.digest([b"ab"])


def test_an_entry_is_made_once() -> None:
    make = Maker()
    first = cache.entry(KEY, make)
    assert cache.entry(KEY, make) == first
    assert (first / "program").read_bytes() == b"bits"
    assert make.calls == 1


@pytest.mark.parametrize("damage", ["changed", "cut", "more", "gone", "manifest", "no manifest"])
def test_a_damaged_entry_is_made_again(damage: str) -> None:
    make = Maker()
    folder = cache.entry(KEY, make)
    if damage == "changed":
        (folder / "program").write_bytes(b"bats")
    elif damage == "cut":
        (folder / "program").write_bytes(b"bit")
    elif damage == "more":
        (folder / "other").write_bytes(b"")
    elif damage == "gone":
        (folder / "program").unlink()
    elif damage == "manifest":
        (folder / cache.MANIFEST).write_text(json.dumps({"program": 4}))
    else:
        (folder / cache.MANIFEST).unlink()
    assert (cache.entry(KEY, make) / "program").read_bytes() == b"bits"
    assert make.calls == 2


@pytest.mark.parametrize("fault", [UserError("no"), KeyboardInterrupt()])
def test_a_failed_build_leaves_nothing(root: Path, fault: BaseException) -> None:
    def make(folder: Path, _final: Path) -> None:
        (folder / "program").write_bytes(b"half")
        raise fault

    with pytest.raises(type(fault)):
        cache.entry(KEY, make)
    assert [p.suffix for p in root.iterdir()] == [".lock"]
    assert (cache.entry(KEY, Maker()) / "program").read_bytes() == b"bits"


def test_what_a_killed_build_left_is_removed(root: Path) -> None:
    (root / f"{KEY[:16]}.abc.tmp").mkdir()
    cache.entry(KEY, Maker())
    assert sorted(p.name for p in root.iterdir()) == sorted([KEY, f"{KEY}.lock"])


def test_two_at_once_build_once() -> None:
    make = Maker(seconds=0.2)
    threads = [threading.Thread(target=cache.entry, args=(KEY, make)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert make.calls == 1


def test_a_cache_that_others_could_write_is_refused(root: Path) -> None:
    assert root.stat().st_mode & 0o777 == 0o700
    root.chmod(0o777)
    with pytest.raises(UserError, match="this user alone") as caught:
        cache.entry(KEY, Maker())
    assert caught.value.code == TOOLCHAIN


def test_a_link_in_the_cache_place_is_refused(root: Path, tmp_path: Path) -> None:
    root.rmdir()
    (tmp_path / "elsewhere").mkdir()
    root.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="must be a folder of this user's"):
        cache.root()


@pytest.mark.skipif(os.getuid() == 0, reason="root writes everywhere")
def test_a_cache_that_cannot_be_made_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "below"))
    with pytest.raises(UserError, match="cannot make the build cache"):
        cache.root()
