"""Writes GGUF files by the package gguf, piece by piece; for tools and tests only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compiler.diagnostics import TOOLCHAIN, UserError
from compiler.formats import Bytes
from runtime.gguf_header import MetaValue
from runtime.random_weights import Tensor

if TYPE_CHECKING:
    from gguf import GGUFValueType

_UNUSED = np.dtype(np.float32)  # gguf looks at this only where no raw type is given


def write_gguf(
    path: Path,
    meta: Mapping[str, MetaValue],
    tensors: Sequence[Tensor],
    content: Callable[[Tensor], Iterable[Bytes]],
) -> None:
    """Write metadata (general.architecture in it) and tensors, whose bytes `content` gives."""
    try:
        import gguf
    except ImportError:
        needs = "the package gguf is needed to write checkpoints: pip install gguf"
        raise UserError(needs, TOOLCHAIN) from None
    writer = gguf.GGUFWriter(path, str(meta["general.architecture"]))
    for key, value in meta.items():
        if key not in ("general.architecture", "general.alignment") and value != []:
            kind, element = _value_types(value)
            writer.add_key_value(key, value, kind, element)
    for tensor in tensors:
        kind = gguf.GGMLQuantizationType(tensor.format.ggml)
        writer.add_tensor_info(tensor.name, tensor.shape, _UNUSED, tensor.nbytes, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    assert writer.fout is not None
    out = writer.fout[0]
    writer.write_padding(out, out.tell())
    for tensor in tensors:
        size = sum(out.write(piece.data) for piece in content(tensor))
        if size != tensor.nbytes:
            raise ValueError(f"{tensor.name}: {tensor.nbytes} bytes are needed, {size} were made")
        writer.write_padding(out, size)
    writer.close()


def _value_types(value: MetaValue) -> tuple[GGUFValueType, GGUFValueType | None]:
    """The types that llama.cpp's converter gives such a value, and an array's elements."""
    from gguf import GGUFValueType as Kind

    if isinstance(value, list):
        element, _ = _value_types(value[0])
        return Kind.ARRAY, Kind.INT32 if element is Kind.UINT32 else element
    if isinstance(value, bool):
        return Kind.BOOL, None
    if isinstance(value, str):
        return Kind.STRING, None
    if isinstance(value, float):
        return Kind.FLOAT32, None
    if value < 0:
        return (Kind.INT32 if value >= -(1 << 31) else Kind.INT64), None
    return (Kind.UINT32 if value < 1 << 32 else Kind.UINT64), None
