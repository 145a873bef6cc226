"""Renaming of the internal symbols of a model, so that one program can link several models.

Objects that are linked into a program keep their global symbols, which have the same names in
every model (``tw_open_call``, kernel names). For relocatable 64-bit ELF files, this module appends
a new string table with unique names, and makes the symbols refer to it. The unique names contain a
dot, so that they never equal a name of C.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from .errors import LinkError

_MAGIC: Final = b"\x7fELF\x02\x01"
"""The first bytes of a little-endian 64-bit ELF file."""
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_SYMTAB: Final = 2
_SECTIONS_AT: Final = 0x28
_SECTION_COUNT_AT: Final = 0x3C
_HIDDEN: Final = 2
_LINKER_SYMBOLS: Final = frozenset({"_GLOBAL_OFFSET_TABLE_"})
"""The symbols that the linker defines."""
_LOCAL: Final = 0


@dataclass(frozen=True, slots=True)
class _Symbol:
    """A global symbol: the offset of its entry, its name, and whether this file defines it."""

    at: int
    name: str
    defined: bool


@dataclass(frozen=True, slots=True)
class _Object:
    """An object file: its bytes, the header offset of its string table, the table, its symbols."""

    data: bytes
    names_header: int
    names: bytes
    symbols: tuple[_Symbol, ...] = field(repr=False)


def rename(
    objects: Mapping[str, bytes], model: str, public: Mapping[str, Collection[str]]
) -> dict[str, bytes]:
    """Rename the internal symbols of objects; public symbols keep their names.

    Parameters
    ----------
    objects : Mapping of str to bytes
        The object files of a model by name.
    model : str
        The name of the model. Internal symbols become ``MODEL.NAME`` with hidden visibility.
    public : Mapping of str to Collection of str
        The public symbols by the object that defines them. A symbol of another object that has the
        name of a public one is internal.

    Returns
    -------
    dict of str to bytes
        The renamed object files by the same names.

    Raises
    ------
    LinkError
        If a file is not a 64-bit ELF object, or a symbol is undefined.
    """
    read = {name: _read(name, data) for name, data in objects.items()}
    symbols = [s for o in read.values() for s in o.symbols]
    defined = {s.name for s in symbols if s.defined}
    undefined = sorted({s.name for s in symbols} - defined - _LINKER_SYMBOLS)
    if undefined:
        raise LinkError(
            f"undefined symbols: {', '.join(undefined)}",
            hint="please report this defect, with the program",
        )
    inner = defined - _LINKER_SYMBOLS
    return {
        name: _renamed(o, {n: f"{model}.{n}" for n in inner - set(public.get(name, ()))})
        for name, o in read.items()
    }


def level_objects(
    levels: Mapping[str, Mapping[str, bytes]],
) -> tuple[dict[str, bytes], dict[str, dict[str, str]]]:
    """Return the objects of several levels with different symbols; equal objects are one.

    Parameters
    ----------
    levels : Mapping of str to Mapping
        The object files of each level by name, by the prefix of its symbols. Symbols that no
        object of a level defines keep their names. Levels with equal objects of one name, which
        refer to equal objects, share them.

    Returns
    -------
    objects : dict of str to bytes
        The renamed object files.
    names : dict of str to dict
        The new names of the symbols of each level, by its prefix.
    """
    first: dict[tuple[object, ...], str] = {}
    found: dict[str, bytes] = {}
    every: dict[str, dict[str, str]] = {}
    for prefix, objects in levels.items():
        read = {name: _read(name, data) for name, data in objects.items()}
        defined = {s.name for o in read.values() for s in o.symbols if s.defined}
        names: dict[str, str] = {}
        rest, before = dict(read), 0
        while len(rest) != before:  # an object after those that it refers to
            before = len(rest)
            for name, one in list(rest.items()):
                own = {s.name for s in one.symbols if s.defined}
                needed = sorted({s.name for s in one.symbols} & (defined - own))
                if names.keys() >= set(needed):
                    key = (name, one.data, *(names[symbol] for symbol in needed))
                    owner = first.setdefault(key, prefix)
                    names |= {symbol: f"{owner}{symbol}" for symbol in own}
                    if owner != prefix:
                        del read[name]
                    del rest[name]
        others = (s.name for o in rest.values() for s in o.symbols if s.defined)
        names |= {name: f"{prefix}{name}" for name in others}
        every[prefix] = names
        found |= {f"{prefix}{name}": _renamed(one, names) for name, one in read.items()}
    return found, every


def _read(file: str, data: bytes) -> _Object:
    if data[: len(_MAGIC)] != _MAGIC:
        raise LinkError(
            f"{file!r} is not a 64-bit ELF object file", hint="please report this defect"
        )
    (start,) = struct.unpack_from("<Q", data, _SECTIONS_AT)
    (count,) = struct.unpack_from("<H", data, _SECTION_COUNT_AT)
    for k in range(count):
        _, kind, _, _, at, length, link, *_ = _section(data, start, k)
        if kind == _SYMTAB:
            offset, size = _section(data, start, link)[4:6]
            names = data[offset : offset + size]
            symbols = tuple(_symbols(data, at, length, names))
            return _Object(data, start + link * _SECTION.size, names, symbols)
    raise LinkError(f"{file!r} has no symbol table", hint="please report this defect")


def _section(data: bytes, start: int, number: int) -> tuple[int, ...]:
    return _SECTION.unpack_from(data, start + number * _SECTION.size)


def _symbols(data: bytes, start: int, size: int, names: bytes) -> Iterator[_Symbol]:
    for at in range(start, start + size, _SYMBOL.size):
        name, info, _, section, _, _ = _SYMBOL.unpack_from(data, at)
        if info >> 4 != _LOCAL and name:
            yield _Symbol(at, names[name : names.index(0, name)].decode(), section != 0)


def _renamed(original: _Object, new: Mapping[str, str]) -> bytes:
    """Return the file with a new string table appended; the old one remains, unused."""
    data, names = bytearray(original.data), bytearray(original.names)
    for symbol in original.symbols:
        if symbol.name not in new:
            continue
        _, info, _, section, value, size = _SYMBOL.unpack_from(data, symbol.at)
        entry = (len(names), info, _HIDDEN, section, value, size)
        _SYMBOL.pack_into(data, symbol.at, *entry)
        names += new[symbol.name].encode() + b"\0"
    header = list(_SECTION.unpack_from(data, original.names_header))
    header[4:6] = len(data), len(names)
    _SECTION.pack_into(data, original.names_header, *header)
    return bytes(data + names)
