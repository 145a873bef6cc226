"""Give the inner functions of a model names of its own, so that two models fit one program.

Objects that are linked into a user's program keep their global symbols, and those of every model
are called alike (``tw_open_call``, a kernel's name). Works on relocatable 64-bit ELF files: the
table of names is written anew behind the file, and the symbols point there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from .errors import LinkError

_MAGIC: Final = b"\x7fELF\x02\x01"
"""64 bits, the lowest byte first."""
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_SYMTAB: Final = 2
_SECTIONS_AT: Final = 0x28
_SECTION_COUNT_AT: Final = 0x3C
_HIDDEN: Final = 2
_LINKERS: Final = frozenset({"_GLOBAL_OFFSET_TABLE_"})
"""What the linker itself defines."""
_LOCAL: Final = 0


@dataclass(frozen=True, slots=True)
class _Symbol:
    """A global symbol: where its entry lies, its name, whether this file defines it."""

    at: int
    name: str
    defined: bool


@dataclass(frozen=True, slots=True)
class _Object:
    """An object file: its bytes, where the header of the names' section lies, its symbols."""

    data: bytes
    names_header: int
    names: bytes
    symbols: tuple[_Symbol, ...] = field(repr=False)


def rename(objects: Mapping[str, bytes], public: str) -> dict[str, bytes]:
    """Rename what the objects define for each other; what is public keeps its name.

    Parameters
    ----------
    objects : Mapping of str to bytes
        The object files of a model, by any names.
    public : str
        Symbols that begin with it and an underscore are the model's interface. All others become
        ``PUBLIC__inner_NAME`` and cannot be seen from outside a library that they are linked into.

    Returns
    -------
    dict of str to bytes
        The files by the same names.

    Raises
    ------
    LinkError
        If a file is no such object, or what one needs nobody defines.
    """
    read = {name: _read(name, data) for name, data in objects.items()}
    symbols = [s for o in read.values() for s in o.symbols]
    defined = {s.name for s in symbols if s.defined}
    lacking = sorted({s.name for s in symbols} - defined - _LINKERS)
    if lacking:
        raise LinkError(
            f"the code needs {', '.join(lacking)}, which nothing defines",
            hint="please report this with the program",
        )
    inner = {n for n in defined if not n.startswith(f"{public}_")}
    return {name: _renamed(o, inner, f"{public}__inner_") for name, o in read.items()}


def _read(file: str, data: bytes) -> _Object:
    if data[: len(_MAGIC)] != _MAGIC:
        raise LinkError(f"{file!r} is no 64-bit object file", hint="please report this")
    (start,) = struct.unpack_from("<Q", data, _SECTIONS_AT)
    (count,) = struct.unpack_from("<H", data, _SECTION_COUNT_AT)
    for k in range(count):
        _, kind, _, _, at, length, link, *_ = _section(data, start, k)
        if kind == _SYMTAB:
            place, size = _section(data, start, link)[4:6]
            names = data[place : place + size]
            symbols = tuple(_symbols(data, at, length, names))
            return _Object(data, start + link * _SECTION.size, names, symbols)
    raise LinkError(f"{file!r} has no symbols", hint="please report this")


def _section(data: bytes, start: int, number: int) -> tuple[int, ...]:
    return _SECTION.unpack_from(data, start + number * _SECTION.size)


def _symbols(data: bytes, start: int, size: int, names: bytes) -> Iterator[_Symbol]:
    for at in range(start, start + size, _SYMBOL.size):
        name, info, _, section, _, _ = _SYMBOL.unpack_from(data, at)
        if info >> 4 != _LOCAL and name:
            yield _Symbol(at, names[name : names.index(0, name)].decode(), section != 0)


def _renamed(known: _Object, inner: set[str], prefix: str) -> bytes:
    """Write the file with longer names behind it; the old names' bytes stay, unused."""
    data, names = bytearray(known.data), bytearray(known.names)
    for symbol in known.symbols:
        if symbol.name not in inner:
            continue
        _, info, _, section, value, size = _SYMBOL.unpack_from(data, symbol.at)
        entry = (len(names), info, _HIDDEN, section, value, size)
        _SYMBOL.pack_into(data, symbol.at, *entry)
        names += f"{prefix}{symbol.name}".encode() + b"\0"
    place = len(data)
    header = list(_SECTION.unpack_from(data, known.names_header))
    header[4:6] = place, len(names)
    _SECTION.pack_into(data, known.names_header, *header)
    return bytes(data + names)
