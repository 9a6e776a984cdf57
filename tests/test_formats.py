"""Weight formats against gguf-py: the numbers of the table, and every decoded value bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize as gguf_dequantize

from compiler.formats import BY_GGML, FORMATS, Format, decode, dequantize
from compiler.values import Weight

ALL = list(FORMATS.values())
QUANTIZED = [f for f in ALL if f.quantized]
AWKWARD = np.array(
    [0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x3C00, 0xB555], np.uint16
)


def named(fmt: Format) -> str:
    return fmt.name


def random_rows(fmt: Format, rows: int = 40, k: int = 768) -> np.ndarray:
    """Random bytes, whose f16 parts run through awkward values too."""
    rng = np.random.default_rng(7)
    raw = rng.integers(0, 256, (rows, k // fmt.block, fmt.size), dtype=np.uint8)
    for at in (fmt.scale, fmt.offset):
        if at is not None:
            awkward = rng.choice(AWKWARD, (rows // 2, raw.shape[1], 1)).view(np.uint8)
            raw[: rows // 2, :, at : at + 2] = awkward
    return raw.reshape(rows, -1)


@pytest.mark.parametrize("fmt", ALL, ids=named)
def test_the_table_agrees_with_ggml(fmt: Format) -> None:
    kind = GGMLQuantizationType[fmt.name.upper()]
    assert (int(kind), *GGML_QUANT_SIZES[kind]) == (fmt.ggml, fmt.block, fmt.size)
    assert BY_GGML[fmt.ggml] is fmt


@pytest.mark.parametrize("fmt", ALL, ids=named)
def test_dequantize_gives_gguf_py_s_bits(fmt: Format) -> None:
    raw = random_rows(fmt)
    with np.errstate(all="ignore"):
        want = gguf_dequantize(raw, GGMLQuantizationType[fmt.name.upper()])
    got = dequantize(fmt, raw)
    same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
    assert got.dtype == np.float32 and got.shape == (40, 768) and same.all()


@pytest.mark.parametrize("fmt", QUANTIZED, ids=named)
def test_decode_keeps_levels_in_range(fmt: Format) -> None:
    levels, d, m = decode(fmt, random_rows(fmt))
    assert levels.shape == (40, 768) and d.shape == (40, 24)
    assert (m is None) == (fmt.offset is None)
    low, high = (-128, 127) if fmt.bits == 8 else (-fmt.zero, (1 << fmt.bits) - 1 - fmt.zero)
    if fmt.group < 32:  # the levels are multiplied by signed bytes
        low, high = -127 * 32, 128 * 32
    assert (levels.min(), levels.max()) == (low, high)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 32 long, not 33"):
        FORMATS["q8_0"].row_bytes(33)
    with pytest.raises(ValueError, match="multiple of 256 long, not 320"):
        FORMATS["q6_k"].row_bytes(320)
    with pytest.raises(ValueError, match="no levels"):
        decode(FORMATS["f16"], np.zeros((1, 4), np.uint8))
    with pytest.raises(ValueError, match=r"needs uint8\[68\]"):
        Weight(FORMATS["q8_0"], (2, 32), np.zeros(67, np.uint8))


@pytest.mark.parametrize("fmt", ALL, ids=named)
def test_a_weight_s_entries_are_its_parts(fmt: Format) -> None:
    raw = random_rows(fmt, rows=12)
    weight = Weight(fmt, (3, 4, 768), raw)
    index = np.array([[2, 0]])
    picked = weight.gather(index)
    assert picked.shape == (1, 2, 4, 768)
    assert picked.tobytes() == weight.values()[index].tobytes()
    assert weight.entry(1).values().tobytes() == weight.values()[1].tobytes()
    assert weight.entry(1) is weight.entry(1)
