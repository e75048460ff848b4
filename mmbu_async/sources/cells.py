"""Cells of an Arrow table that hold images: structs of bytes and path, bytes, text, or lists of these."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mmbu_async.sources.embedded import decoded, is_base64

_STRUCTS = ({"bytes": "bytes", "path": "text"}, {"bytes": "bytes"}, {"path": "text"})


def kind(type_: Any) -> str:
    """What a column of this Arrow type can hold, in words for people; '' where it cannot hold images."""
    if is_list(type_):
        inner = "" if is_list(type_.value_type) else kind(type_.value_type)
        return f"list of {inner}" if inner else ""
    if pa.types.is_struct(type_):
        kinds = {field.name: kind(field.type) for field in type_}
        parts = {name: kinds[name] for name in ("bytes", "path") if name in kinds}
        return " and ".join(parts) if parts in _STRUCTS else ""
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return "bytes"
    return "text" if _is_text(type_) else ""


def is_list(type_: Any) -> bool:
    return bool(
        pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_)
    )


def images_in(cells: Any) -> list[int]:
    """How many images each cell of a column holds or names; nothing is copied."""
    if is_list(cells.type):
        return [length or 0 for length in pc.list_value_length(cells).to_pylist()]
    if not pa.types.is_struct(cells.type):
        return [int(there) for there in cells.is_valid().to_pylist()]
    parts = [
        pc.struct_field(cells, field.name).is_valid().to_pylist()
        for field in cells.type
        if field.name in ("bytes", "path")
    ]
    return [int(any(there)) for there in zip(*parts, strict=True)]


def item_of(cell: Any, item: int) -> Any:
    """One image of a cell. Raises IndexError."""
    if is_list(cell.type):
        if not cell.is_valid:
            raise IndexError(item)
        return cell.values[item]
    if item:
        raise IndexError(item)
    return cell


def name_of(cell: Any) -> str | None:
    """The name of the image's file, '' where there is no image, None where the cell holds it itself."""
    if not cell.is_valid:
        return ""
    if pa.types.is_struct(cell.type):
        data, path = _part(cell, "bytes"), _part(cell, "path")
        if data is not None and data.is_valid:
            return None
        return str(path.as_py() or "") if path is not None else ""
    if _is_text(cell.type):
        text = str(cell.as_py())
        return None if is_base64(text) else text
    return None


def image_of(cell: Any, where: str) -> bytes | str:
    """The image's bytes, or what `name_of` gives. Raises ImageError."""
    name = name_of(cell)
    if name is not None:
        return name
    if _is_text(cell.type):
        return decoded(cell.as_py(), where)
    data = _part(cell, "bytes") if pa.types.is_struct(cell.type) else cell
    return bytes(data.as_py())


def _part(cell: Any, name: str) -> Any:
    return cell[name] if cell.type.get_field_index(name) >= 0 else None


def _is_text(type_: Any) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
