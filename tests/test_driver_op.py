"""A toy op program under the driver: inputs declared and from files, results as text and .npy."""

from __future__ import annotations

import io
from pathlib import Path

import driver_toy as toy
import numpy as np
import pytest

PATTERN = ((np.arange(12) % 7 - 3) * 0.5).astype(np.float32).reshape(3, 4)


def results(text: str) -> dict[str, list[str]]:
    """Name and type -> its lines."""
    out: dict[str, list[str]] = {}
    for line in text.splitlines():
        if ": " in line:
            out[line] = lines = []
        else:
            lines.append(line)
    return out


def test_declared_inputs_and_printed_results() -> None:
    ran = toy.run("op")
    assert (ran.code, ran.err) == (0, "toyop: numerics f32, target host\n")
    got = results(ran.out)
    assert [float(v) for v in got["y: f32[3, 4]"]] == (PATTERN * 2).reshape(-1).tolist()
    assert got["n: i32[9]"] == [str(i % 7 - 3) for i in range(9)]
    assert got["k: i64"] == ["-7"]
    assert got["table: i32[2, 3]"] == ["0", "2", "1", "0", "5", "1"]
    halves = np.array([0.1, 65519.0, 6e-8, -1e-9]).astype(np.float16)
    np.testing.assert_array_equal(np.array(got["g: f16[4]"], np.float32), halves)
    assert got["b: bf16[2]"] == ["0.100097656", "-0"]


def test_awkward_floats_read_back_the_same(tmp_path: Path) -> None:
    bits = [1, 0x80000000, 0x7F7FFFFF, 0x00800000, 0x3DCCCCCD, 0x7F800000, 0xFF800000, 0x7FC00000]
    x = np.array([*bits, 0x501502F9, 0x3F800001, 0x33800000, 0x4B800001], np.uint32).view(
        np.float32
    )
    np.save(tmp_path / "x.npy", x.reshape(3, 4))
    ran = toy.run("op", "--input", f"x={tmp_path / 'x.npy'}")
    printed = results(ran.out)["y: f32[3, 4]"]
    with np.errstate(over="ignore"):
        want = x * np.float32(2)
    np.testing.assert_array_equal(np.array(printed, np.float32).view(np.int32), want.view(np.int32))
    assert all(len(p) <= len(repr(v)) for p, v in zip(printed, want.tolist(), strict=True))


def test_files_go_in_and_out_unchanged(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    given = {
        "x": rng.standard_normal((3, 4)).astype(np.float32),
        "g": rng.standard_normal(4).astype(np.float16),
        "n": rng.integers(-(2**31), 2**31, 9, np.int32),
        "k": np.array(-(2**62) - 1),
        "b": np.array([1.5, -0.0], np.float32),
        "r": np.array([[1, 7], [0, 3], [2, 64]], np.int32),
    }
    words = []
    for name, array in given.items():
        np.save(tmp_path / f"{name}.npy", array)
        words += ["--input", f"{name}={tmp_path / name}.npy"]
    out = tmp_path / "out"
    ran = toy.run("op", *words, "--out", out, "--dump", "*", "--dump-dir", out / "dump", "--json")
    assert (ran.code, ran.out) == (0, ""), ran.err
    assert ran.report["launches"] == 2
    wanted = {name: given[name] for name in "gnkb"} | {"y": given["x"] * 2, "table": given["r"].T}
    assert sorted(f.stem for f in out.glob("*.npy")) == sorted(wanted)
    for name, array in wanted.items():
        got = np.load(out / f"{name}.npy")
        assert (got.dtype, got.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(got, array)
    np.testing.assert_array_equal(np.load(out / "dump" / "y.npy"), given["x"] * 2)


def npy(array: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def headed(header: str, data: bytes = bytes(48)) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"
X = np.zeros((3, 4), np.float32)
BAD_FILES = (
    (b"", "a .npy file of version 1.0 or 2.0 is needed"),
    (npy(X)[:9], "a .npy file of version 1.0 or 2.0 is needed"),
    (b"PK\x03\x04" + bytes(60), "a .npy file of version 1.0 or 2.0 is needed"),
    (npy(X, (3, 0)), "a .npy file of version 1.0 or 2.0 is needed"),
    (npy(X)[:60], "a header of 118 bytes is needed, the file ends before"),
    (npy(X)[:-1], "48 bytes of data are needed, 47 were given"),
    (npy(X) + b"\0", "48 bytes of data are needed, 49 were given"),
    (npy(X.astype(">f4")), '">f4" of shape (3, 4) was given'),
    (npy(X.astype(np.float64)), '"<f8" of shape (3, 4) was given'),
    (npy(X.T), "<f4 of shape (3, 4) is needed"),
    (npy(np.asfortranarray(X)), "C order is needed, Fortran order was given"),
    (npy(np.zeros(12, np.float32)), '"<f4" of shape (12,) was given'),
    (npy(np.float32(1)), '"<f4" of shape () was given'),
    (headed(""), "{ is needed in the header"),
    (headed("{'descr': '<f4', 'shape': (3, 4)}"), "descr, fortran_order and shape is needed"),
    (headed(GOOD.replace("shape", "shade")), "descr, fortran_order or shape is needed"),
    (headed(GOOD.replace("False", "Maybe")), "descr, fortran_order or shape is needed"),
    (headed(GOOD.replace("(3", "(-3")), "a shape is needed"),
    (headed(GOOD.replace("(3", "(99999999999999999999")), "a shape is needed"),
    (headed(GOOD.replace("(3, 4)", "(3, 4")), "a shape is needed"),
    (headed(GOOD.replace("(3, 4)", "(3 4)")), "a comma is needed"),
    (headed(GOOD[:20]), "is needed in the header"),
    (headed(GOOD.replace("'shape'", "'descr': '<f4', 'shape'")), "each key once is needed"),
    (headed(GOOD + "x"), "descr, fortran_order and shape is needed"),
    (headed(GOOD.replace("'<f4'", "[('a', '<f4')]")), "' is needed in the header"),
)


@pytest.mark.parametrize(("data", "message"), BAD_FILES)
def test_bad_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.npy").write_bytes(data)
    ran = toy.run("op", "--input", f"x={tmp_path / 'x.npy'}")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.parametrize("header", [GOOD, GOOD.replace(" ", ""), GOOD.replace(", }", "}\n")])
def test_headers_as_others_write_them(tmp_path: Path, header: str) -> None:
    (tmp_path / "x.npy").write_bytes(headed(header))
    assert toy.run("op", "--input", f"x={tmp_path / 'x.npy'}").code == 0


def test_version_2(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(npy(X, (2, 0)))
    assert toy.run("op", "--input", f"x={tmp_path / 'x.npy'}").code == 0


def test_clean_under_sanitizers(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    words = ("--input", f"x={tmp_path / 'x.npy'}", "--dump", "all", "--dump-dir", tmp_path / "d")
    assert toy.run("op", *words, sanitize=True).code == 0
    assert toy.run("op", "--out", tmp_path / "o", sanitize=True).code == 0
