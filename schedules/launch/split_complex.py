"""Complex numbers as pairs of floats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...ir.analysis.updates import reduction_of
from ...ir.identity import Origins
from ...ir.loop.combiners import COMBINERS
from ...ir.loop.decompose import (
    Namer,
    namer_of,
)
from ...ir.loop.nodes import (
    Alloc,
    Binary,
    Bind,
    Block,
    Buffer,
    BufferParam,
    Cast,
    Element,
    For,
    Index,
    IndexMap,
    Load,
    Local,
    Number,
    Param,
    PrimFunc,
    Range,
    Reducer,
    Region,
    Seq,
    Stmt,
    Store,
)
from ...ir.loop.reducers import (
    Reducing,
    reads_any,
)
from ...ir.loop.scans import (
    Scanning,
    scanning,
)
from ...ir.loop.straight_line import (
    joined,
    statements_of,
    used_binds,
)
from ...ir.loop.visit import (
    Rebuilder,
    all_buffers,
    elements,
    seq,
    walk_element,
)
from ...ir.symbolic import (
    Expr,
    Var,
    as_expr,
    var,
)
from ...target.target import Target
from .complex_values import (
    ComplexValues,
    Pair,
    Parts,
)
from .lowering_pass import Pass

_ZERO, _ONE, _TWO = as_expr(0), as_expr(1), as_expr(2)
_NOTHING = Seq(())


class SplitComplex(Pass):
    """Store and compute complex numbers as pairs of floats.

    Before::
        t = alloc((4,), c64)
        block: t[vi] = x[vi] * w[vi]
        block: y[vi] = t[vi] + x[vi]
    After::
        t_real = alloc((4,), f32)
        t_imag = alloc((4,), f32)
        block:
            part = x[vi, 0] * w[vi, 0]
            part1 = x[vi, 1] * w[vi, 1]
            part2 = x[vi, 0] * w[vi, 1]
            part3 = x[vi, 1] * w[vi, 0]
            t_real[vi] = part - part1
            t_imag[vi] = part2 + part3
        block:
            y[vi, 0] = t_real[vi] + x[vi, 0]
            y[vi, 1] = t_imag[vi] + x[vi, 1]

    A parameter has a last dimension of 2, as in NumPy; a temporary becomes two, so a sum of complex
    numbers becomes two sums with accumulators of their own, in two blocks. Any other reduction and
    a scan become those by a reducer with two results per complex one.
    """

    def run(self, func: PrimFunc, target: Target) -> PrimFunc:
        """Split all complex buffers and elements."""
        del target
        if not _has_complex(func):
            return func
        splitter = _Splitter(namer_of(func))
        params = tuple(splitter.param(p) for p in func.params)
        body = splitter.statement(func.body)
        buffers = tuple(b for old in func.buffers for b in splitter.planes(old))
        return replace(func, params=params, body=body, buffers=buffers)


def _has_complex(func: PrimFunc) -> bool:
    return any(b.dtype.is_complex for b in all_buffers(func)) or any(
        map(_makes_complex, elements(func.body))
    )


def _makes_complex(element: Element) -> bool:
    """Return whether an element has complex dtype, although its operands are real or missing."""
    if isinstance(element, Number | Index | Cast):
        return element.dtype.is_complex
    return isinstance(element, Binary) and element.op == "complex"


@dataclass(frozen=True, slots=True)
class _Parts:
    """The buffers of the two parts of a complex buffer, or one with both in its last dimension."""

    real: Buffer
    imag: Buffer

    def accesses(self, indices: tuple[Expr, ...]) -> tuple[Load, Load]:
        """Return the parts of an element."""
        if self.real is not self.imag:
            return Load(self.real, indices), Load(self.imag, indices)
        return Load(self.real, (*indices, _ZERO)), Load(self.real, (*indices, _ONE))

    def regions(self, ranges: tuple[Range, ...]) -> tuple[Region, ...]:
        """Return the regions of the parts of a region."""
        if self.real is not self.imag:
            return Region(self.real, ranges), Region(self.imag, ranges)
        return (Region(self.real, (*ranges, Range(_ZERO, _TWO))),)


class _Splitter(Rebuilder):
    """A rewriter of the statements of one function."""

    def __init__(self, names: Namer) -> None:
        self._names = names
        self._buffers: dict[Buffer, _Parts] = {}
        self._values: dict[Local, Parts] = {}
        self._threads: frozenset[Var] = frozenset()

    def param(self, param: Param) -> Param:
        """Return a parameter whose elements are pairs if they are complex."""
        if not isinstance(param, BufferParam) or not param.buffer.dtype.is_complex:
            return param
        old = param.buffer
        strides = None if old.strides is None else (*(2 * s for s in old.strides), _ONE)
        layout = None if old.layout is None else _with_parts(old.layout)
        of, shape = old.dtype.part, (*old.shape, _TWO)
        new = replace(old, shape=shape, strides=strides, dtype=of, layout=layout)
        self._buffers[old] = _Parts(new, new)
        return replace(param, buffer=new)

    def planes(self, buffer: Buffer) -> tuple[Buffer, ...]:
        """Return the temporaries of the parts of a temporary; itself if it is real."""
        if not buffer.dtype.is_complex:
            return (buffer,)
        parts = self._parts(buffer)
        return parts.real, parts.imag

    def _parts(self, buffer: Buffer) -> _Parts:
        if buffer not in self._buffers:
            real, imag = (
                replace(
                    buffer,
                    uid=self._names.mint(),
                    name=self._names.fresh(f"{buffer.name}_{part}"),
                    dtype=buffer.dtype.part,
                )
                for part in ("real", "imag")
            )
            self._buffers[buffer] = _Parts(real, imag)
        return self._buffers[buffer]

    def _accesses(self, access: Load) -> tuple[Load, ...]:
        """Return the accesses of the parts of an element; itself if it is real."""
        if not access.dtype.is_complex:
            return (access,)
        return self._parts(access.buffer).accesses(access.indices)

    def _read(self, load: Load) -> Parts:
        if not load.dtype.is_complex:
            return load
        real, imag = self._accesses(load)
        return Pair(real, imag, real.dtype)

    def _reader(self) -> ComplexValues:
        return ComplexValues(self._read, self._values, self._names.fresh)

    def statement(self, statement: Stmt) -> Stmt:
        """Rewrite a statement and its descendants."""
        match statement:
            case Store():
                return self._stored(statement)
            case Bind():
                binds = tuple(self._bound(statement))
                return joined((*binds, *statements_of(self.statement(statement.body))))
            case Alloc(buffer=buffer, body=body) if buffer.dtype.is_complex:
                inner = self.statement(body)
                parts = self._parts(buffer)
                return Alloc(parts.real, Alloc(parts.imag, inner))
            case For(kind="thread", var=loop):
                outside, self._threads = self._threads, self._threads | {loop}
                inner = super().statement(statement)
                self._threads = outside
                return inner
            case _:
                return super().statement(statement)

    def _stored(self, store: Store) -> Stmt:
        reader = self._reader()
        value = reader.split(store.value)
        targets = self._accesses(Load(store.buffer, store.indices))
        if not isinstance(value, Pair):
            return joined((*reader.binds, _store(targets[0], value, store.origins)))
        real, imag = value.real, value.imag
        if reads_any((imag,), {targets[0].buffer}):  # before the other part is stored
            imag = reader.bind(imag, value.dtype)
        parts = (_store(t, v, store.origins) for t, v in zip(targets, (real, imag), strict=True))
        return joined((*reader.binds, *parts))

    def _bound(self, bind: Bind) -> Iterator[Bind]:
        """Yield the binds in place of one bind, without their bodies."""
        reader = self._reader()
        value, local = reader.split(bind.value), bind.local
        if not isinstance(value, Pair):
            yield from (*reader.binds, replace(bind, value=value, body=_NOTHING))
            return
        pair = self._named(local, value)
        yield from reader.binds
        for name, part in ((pair.real, value.real), (pair.imag, value.imag)):
            if isinstance(name, Local):
                yield Bind(name, part, _NOTHING)

    def _named(self, local: Local, value: Pair) -> Pair:
        """Return the names of the parts of a bound value."""
        pair = self._pair_of(local, value)
        self._values[local] = pair
        return pair

    def _pair_of(self, local: Local, value: Pair) -> Pair:
        real, imag = (
            Local(self._names.fresh(f"{local.name}_{part}"), value.dtype)
            for part in ("real", "imag")
        )
        return Pair(real, imag, value.dtype)

    def block(self, block: Block) -> Stmt:
        """Rewrite a block; a reduction or a scan of complex numbers remains one."""
        scan = scanning(block)
        if scan is not None and self._concerns(block, scan):
            return self._scanned(block, scan)
        found = reduction_of(block)
        if found is None or not self._concerns(block, found):
            return self._with_regions(block, self.statement(block.body))
        single = block.reducer is None and found.reducer.name in COMBINERS
        if single and found.reducer.name == "add" and not self._crosses_threads(block, found):
            return self._sums(block, found)
        return self._reduced(block, found)

    def _concerns(self, block: Block, found: Reducing | Scanning) -> bool:
        """Return whether a rewritten body would not have the form of a reduction or a scan."""
        if block.reducer is None:
            return found.targets[0].dtype.is_complex
        values = (*(b.value for b in found.prefix), *found.terms, *found.targets)
        values = (*values, *found.starts) if isinstance(found, Scanning) else values
        parts = [e for v in values for e in walk_element(v)]
        return any(_makes_complex(e) or (isinstance(e, Load) and e.dtype.is_complex) for e in parts)

    def _crosses_threads(self, block: Block, found: Reducing) -> bool:
        """Return whether threads combine their results in one buffer of pairs."""
        parts = self._parts(found.targets[0].buffer)
        reduced = (v.binding.free for v in block.iters if v.kind == "reduce")
        return parts.real is parts.imag and any(used & self._threads for used in reduced)

    def _with_regions(self, block: Block, body: Stmt) -> Block:
        reads, writes = (
            tuple(new for region in given for new in self._regions(region))
            for given in (block.reads, block.writes)
        )
        init = None if block.init is None else self.statement(block.init)
        return replace(block, reads=reads, writes=writes, init=init, body=body)

    def _regions(self, region: Region) -> tuple[Region, ...]:
        if not region.buffer.dtype.is_complex:
            return (region,)
        return self._parts(region.buffer).regions(region.ranges)

    def _sums(self, block: Block, found: Reducing) -> Stmt:
        """Return a block per part: a sum is the pair of the sums of the parts."""
        return seq(*(self._sum(block, found, part) for part in (0, 1)))

    def _sum(self, block: Block, found: Reducing, part: int) -> Block:
        prefix = [new for bind in found.prefix for new in self._bound(bind)]
        reader = self._reader()
        pair = reader.pair(found.terms[0])
        target = self._accesses(found.targets[0])[part]
        term = (pair.real, pair.imag)[part]
        used = used_binds((*prefix, *reader.binds), (term,))
        store = _store(target, Binary("add", target, term), found.origins)
        made = self._with_regions(block, joined((*used, store)))
        init = None if made.init is None else _only(made.init, target)
        writes = (Region(target.buffer, tuple(Range(i, _ONE) for i in target.indices)),)
        made = replace(made, init=init, writes=writes)
        if not part:
            return made
        name = self._names.fresh(f"{block.name}_imag")
        return replace(made, uid=self._names.mint(), name=name)

    def _reduced(self, block: Block, found: Reducing) -> Block:
        """Return a reduction with two results per complex one."""
        prefix = [new for bind in found.prefix for new in self._bound(bind)]
        reader = self._reader()
        terms = [part for term in found.terms for part in _flat(reader.split(term))]
        targets = tuple(part for target in found.targets for part in self._accesses(target))
        reducer = self._reducer(found.reducer)
        binds = (*prefix, *reader.binds)
        parts = Reducing(reducer, binds, targets, tuple(terms), found.origins)
        made = self._with_regions(block, parts.body())
        return replace(made, reducer=parts.declared)

    def _scanned(self, block: Block, scan: Scanning) -> Block:
        """Return a scan with two results per complex one."""
        prefix = [new for bind in scan.prefix for new in self._bound(bind)]
        reader = self._reader()
        terms, starts = (
            tuple(part for value in values for part in _flat(reader.split(value)))
            for values in (scan.terms, scan.starts)
        )
        targets, previous = (
            tuple(part for access in accesses for part in self._accesses(access))
            for accesses in (scan.targets, scan.previous)
        )
        binds = (*prefix, *reader.binds)
        parts = Scanning(
            self._reducer(scan.reducer), binds, targets, previous, scan.follows, starts, terms,
            scan.origins,
        )  # fmt: skip
        made = self._with_regions(block, parts.body())
        return replace(made, reducer=parts.reducer)

    def _reducer(self, reducer: Reducer) -> Reducer:
        """Return the reducer of the parts of the values of a reducer."""
        if not any(local.dtype.is_complex for local in reducer.left):
            return reducer
        left, right = (
            tuple(part for local in side for part in self._locals_of(local))
            for side in (reducer.left, reducer.right)
        )
        binds = [
            new
            for local, value in reducer.binds
            for new in self._bound(Bind(local, value, _NOTHING))
        ]
        reader = self._reader()
        results = [part for value in reducer.results for part in _flat(reader.split(value))]
        shared = tuple((bind.local, bind.value) for bind in (*binds, *reader.binds))
        identities = tuple(part for one in reducer.identities for part in _flat(reader.split(one)))
        return replace(
            reducer,
            name=f"{reducer.name}_parts",
            left=left,
            right=right,
            binds=shared,
            results=tuple(results),
            identities=tuple(n for n in identities if isinstance(n, Number)),
        )

    def _locals_of(self, local: Local) -> Sequence[Local]:
        if not local.dtype.is_complex:
            return (local,)
        zero = Number(0.0, local.dtype.part)
        pair = self._named(local, Pair(zero, zero, zero.dtype))
        return [part for part in (pair.real, pair.imag) if isinstance(part, Local)]


def _with_parts(layout: IndexMap) -> IndexMap:
    """Return a layout with a last dimension for the two parts."""
    part = var("part", lower=0, upper=1)
    return IndexMap((*layout.inputs, part), (*layout.outputs, part))


def _flat(parts: Parts) -> tuple[Element, ...]:
    return (parts.real, parts.imag) if isinstance(parts, Pair) else (parts,)


def _store(target: Load, value: Element, origins: Origins) -> Store:
    return Store(target.buffer, target.indices, value, origins)


def _only(init: Stmt, target: Load) -> Stmt:
    """Return the stores of an init to one part."""
    kept = [
        s
        for s in statements_of(init)
        if not isinstance(s, Store)
        or (s.buffer is target.buffer and s.indices[-1:] == target.indices[-1:])
    ]
    return joined(tuple(kept))
