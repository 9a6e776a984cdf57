"""A cache of builds: one folder an entry, named by what it was made from. Contract: what `entry`
returns was written whole, by us, and is what its manifest says; a failed build leaves nothing."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from compiler import knobs
from compiler.diagnostics import TOOLCHAIN, UserError

MANIFEST = "manifest.json"


def digest(fields: Sequence[str | bytes]) -> str:
    """SHA-256 over length-prefixed fields, so that no two lists of fields are the same bytes."""
    total = hashlib.sha256()
    for field in fields:
        data = field.encode() if isinstance(field, str) else field
        total.update(len(data).to_bytes(8, "little") + data)
    return total.hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def root() -> Path:
    """The cache's folder, made where missing; refused where others could write what we run."""
    folder = Path(knobs.CACHE.value).expanduser() / "monocu" / "builds"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise UserError(
            f"cannot make the build cache {folder}: {error.strerror}", TOOLCHAIN
        ) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise UserError(f"the build cache must be a folder of this user's: {folder}", TOOLCHAIN)
    if found.st_mode & 0o022:
        raise UserError(
            f"the build cache must be writable by this user alone (chmod 700): {folder}", TOOLCHAIN
        )
    return folder


@contextmanager
def locked(folder: Path, key: str) -> Iterator[None]:
    """Holds the key's lock: the kernel's, so it ends with the process whatever happens to it."""
    with (folder / f"{key}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def entry(key: str, make: Callable[[Path, Path], None]) -> Path:
    """The folder of the key's entry, made by `make(temporary folder, final folder)` where it is
    missing or damaged. Errors: UserError (4) for a cache that cannot be written."""
    folder = root()
    final = folder / key
    if intact(final):
        return final
    with locked(folder, key):
        if intact(final):
            return final
        for left in (final, *folder.glob(f"{key[:16]}.*.tmp")):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        temporary = Path(tempfile.mkdtemp(prefix=f"{key[:16]}.", suffix=".tmp", dir=folder))
        try:
            make(temporary, final)
            write_manifest(temporary)
            os.replace(temporary, final)
        except OSError as error:
            raise UserError(f"cannot write the build cache {folder}: {error}", TOOLCHAIN) from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return final


def write_manifest(folder: Path) -> None:
    """Sizes and hashes of the folder's files, written last and through to the disk."""
    files = {p.name: [p.stat().st_size, file_digest(p)] for p in sorted(folder.iterdir())}
    with (folder / MANIFEST).open("w") as out:
        json.dump(files, out, indent=1)
        out.flush()
        os.fsync(out.fileno())


def intact(folder: Path) -> bool:
    """Whether the entry is there and every file of it is what the manifest says."""
    try:
        files = json.loads((folder / MANIFEST).read_text())
        return set(os.listdir(folder)) == {MANIFEST, *files} and all(
            (folder / name).stat().st_size == size and file_digest(folder / name) == sha
            for name, (size, sha) in files.items()
        )
    except (OSError, ValueError, TypeError, AttributeError):
        return False
