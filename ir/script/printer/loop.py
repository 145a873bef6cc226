"""Printing of loop-level functions."""

from __future__ import annotations

from collections.abc import Iterator
from keyword import iskeyword
from typing import Final, assert_never

from ....target.target import Target
from ...identity import Origins
from ...loop.combiners import is_named
from ...loop.nodes import (
    AccessMode,
    Alloc,
    Bind,
    Block,
    Buffer,
    BufferParam,
    For,
    If,
    IterVar,
    Let,
    Load,
    LoopKind,
    PrimFunc,
    Range,
    Reducer,
    Region,
    ScalarParam,
    Seq,
    Stmt,
    Store,
)
from ...loop.ranges import range_of
from ...loop.reducers import Reducing, scattering, without_lets
from ...loop.regions import access_regions
from ...loop.scans import Scanning, scanning
from ...loop.thread_roles import role_text
from ...symbolic import TRUE, Expr, Var, const_value
from ..names import quote, tuple_text
from .elements import Elements
from .header import fact_lines, write_header
from .lines import Lines
from .terms import TermPrinter, bounds_text

_LOOPS: Final[dict[LoopKind, str]] = {
    "serial": "range",
    "parallel": "parallel",
    "vectorized": "vectorized",
    "unrolled": "unrolled",
    "thread": "thread",
}
ACCESS: Final[dict[AccessMode, str]] = {
    "in": "Buffer",
    "out": "Out",
    "inout": "InOut",
    "state": "State",
}
NO_KEYS: Final = frozenset[str]()
LOOP_KEYS: Final = frozenset({"bounds", "multiple_of", "origins"})
NOTES: Final = "notes"
"""The attribute of a function in lowering with pairs of a buffer and the note about it."""

FUNCTION_KEYS: Final = frozenset({"target", "origins", "stage", "result_names"})


def target_text(target: Target) -> str:
    """Return a target as text, ``Target("cpu", threads=4)``."""
    parts = [quote(target.kind)]
    if target.arch:
        parts.append(f"arch={quote(target.arch)}")
    if target.features:
        parts.append(f"features={tuple_text([quote(f) for f in target.features])}")
    if target.threads:
        parts.append(f"threads={target.threads}")
    if target.where:
        parts.append(f"where={quote(target.where)}")
    return f"Target({', '.join(parts)})"


def origins_text(origins: Origins) -> list[str]:
    """Return origins as a keyword argument."""
    return [f"origins={tuple_text([quote(o) for o in sorted(origins)])}"]


def let_range(let: Let) -> tuple[int | None, int | None]:
    """Return the constant bounds of the variable of a ``Let``."""
    upper = let.upper.upper
    return let.lower.lower, None if upper is None else upper - 1


class LoopPrinter:
    """Prints the statements of one function.

    With ``provenance``, origins are printed where they differ from the enclosing statement. With
    ``lowered``, a block without iteration variables is printed without regions.
    """

    def __init__(
        self, terms: TermPrinter, out: Lines, *, provenance: bool, lowered: bool = False
    ) -> None:
        """Print to ``out``."""
        self._terms = terms
        self._out = out
        self._provenance = provenance
        self._lowered = lowered
        self._elements = Elements(terms)
        self._extents: dict[Var, Expr] = {}
        self._updates: dict[Stmt, Reducing | Scanning] = {}

    def _options(self, buffer: Buffer) -> list[str]:
        options: list[str] = []
        if buffer.scope != "global":
            options.append(f"scope={quote(buffer.scope)}")
        if buffer.strides is not None:
            options.append(f"strides={self._terms.tuple(buffer.strides)}")
        if buffer.alignment != 64:
            options.append(f"alignment={buffer.alignment}")
        if buffer.layout is not None:
            inputs = [self._terms.bind(v, "layout variable") for v in buffer.layout.inputs]
            outputs = self._terms.tuple(buffer.layout.outputs)
            options.append(f"layout=lambda {', '.join(inputs)}: {outputs}")
            for variable in buffer.layout.inputs:
                self._terms.release(variable)
        return options

    def parameter(self, param: BufferParam | ScalarParam) -> str:
        """Return one parameter of the signature as text."""
        if isinstance(param, ScalarParam):
            self._terms.text(param.var)
            return f"{param.var.name}: Int"
        buffer = param.buffer
        name = self._terms.check(buffer.name, "buffer")
        inner = f"{self._terms.tuple(buffer.shape)}, {buffer.dtype}"
        options = self._options(buffer)
        kind = ACCESS[param.access]
        if options:
            return f"{name}: {kind}({', '.join([inner, *options])})"
        return f"{name}: {kind}[{inner}]"

    def allocation(self, buffer: Buffer) -> None:
        """Print the allocation of a temporary buffer."""
        name = self._terms.check(buffer.name, "buffer")
        parts = [self._terms.tuple(buffer.shape), str(buffer.dtype), *self._options(buffer)]
        with self._out.marked("buffer", buffer.uid, name):
            self._out.add(f"{name} = alloc({', '.join(parts)})")

    def statement(self, statement: Stmt, outer: Origins) -> None:
        """Print a statement whose enclosing statement has the origins ``outer``."""
        if (update := self._updates.get(statement)) is not None:
            self._update(update, outer)
            return
        match statement:
            case Store():
                self._store(statement, outer)
            case For():
                self._for(statement, outer)
            case Block():
                self._block(statement, outer)
            case Seq(body=parts):
                for part in parts:
                    self.statement(part, outer)
            case If():
                self._if(statement, outer)
            case Let():
                self._let(statement, outer)
            case Alloc(buffer=buffer, body=body):
                self.allocation(buffer)
                self.statement(body, outer)
            case Bind(local=local, value=value, body=body):
                name = self._terms.check(local.name, "value")
                self._out.add(f"{name} = {self._elements.text(value)}")
                self.statement(body, outer)
            case _:
                assert_never(statement)

    def _origins(self, own: Origins, outer: Origins) -> list[str]:
        return origins_text(own) if self._provenance and own != outer else []

    def _store(self, store: Store, outer: Origins) -> None:
        line = self._elements.store(Load(store.buffer, store.indices), store.value)
        differs = self._origins(store.origins, outer)
        if differs:
            self._out.add(f"with origin({', '.join(quote(o) for o in sorted(store.origins))}):")
            with self._out.indented():
                self._out.add(line)
        else:
            self._out.add(line)

    def _for(self, loop: For, outer: Origins) -> None:
        extent = self._terms.text(loop.extent)
        name = self._terms.bind(loop.var, "loop")
        self._extents[loop.var] = loop.extent
        parts = [extent]
        if loop.thread or loop.kind == "thread":
            parts.append(quote(loop.thread))
        parts += self._terms.keywords(loop.annotations, LOOP_KEYS)
        parts += bounds_text(loop.var, range_of(loop.extent))
        parts += self._origins(loop.origins, outer)
        with self._out.marked("loop", loop.uid, name):
            self._out.add(f"for {name} in {_LOOPS[loop.kind]}({', '.join(parts)}):")
            with self._out.indented():
                self.statement(loop.body, loop.origins)
        self._terms.release(loop.var)

    def _if(self, statement: If, outer: Origins) -> None:
        word = "if"
        rest: Stmt | None = statement
        while isinstance(rest, If):
            self._out.add(f"{word} {self._terms.text(rest.condition)}:")
            with self._out.indented():
                self.statement(rest.then, outer)
            word, rest = "elif", rest.otherwise
        if rest is not None:
            self._out.add("else:")
            with self._out.indented():
                self.statement(rest, outer)

    def _let(self, let: Let, outer: Origins) -> None:
        load = self._elements.text(let.load)
        parts = [load, *self._terms.texts((let.lower, let.upper))]
        parts += bounds_text(let.var, let_range(let))
        if let.discharge is not None:
            by = let.discharge.name if isinstance(let.discharge, Var) else let.discharge
            parts.append(f'by="{by}"')
        name = self._terms.bind(let.var, "variable")
        self._out.add(f"with {let.mode}({', '.join(parts)}) as {name}:")
        with self._out.indented():
            self.statement(let.body, outer)
        self._terms.release(let.var)

    def _block(self, block: Block, outer: Origins) -> None:
        name = self._terms.check(block.name, "block")
        parts = [quote(name), *self._terms.keywords(block.annotations, LOOP_KEYS)]
        parts += [role_text(block.threads)] if block.threads is not None else []
        parts += self._origins(block.origins, outer)
        with self._out.marked("block", block.uid, name):
            self._out.add(f"with block({', '.join(parts)}):")
            with self._out.indented():
                self._header(block)
                parts = scanning(block) or scattering(block)
                if parts is not None and not is_named(parts.reducer):
                    self.reducer(parts.reducer)
                self._init(block)
                if parts is not None:
                    self._updates[without_lets(block.body)] = parts
                self.statement(block.body, block.origins)
        for iter_var in block.iters:
            self._terms.release(iter_var.var)

    def reducer(self, reducer: Reducer) -> None:
        """Print the definition of a reducer."""
        check = self._terms.check
        names = [f"{check(x.name, 'value')}: {x.dtype}" for x in (*reducer.left, *reducer.right)]
        identity = [self._elements.text(n, n.dtype) for n in reducer.identities]
        ending = "" if reducer.commutative else ", commutative=False"
        self._out.add(f"@reducer(identity={tuple_text(identity)}{ending})")
        self._out.add(f"def {check(reducer.name, 'reducer')}({', '.join(names)}):")
        with self._out.indented():
            for local, value in reducer.binds:
                self._out.add(f"{check(local.name, 'value')} = {self._elements.text(value)}")
            pairs = zip(reducer.results, reducer.left, strict=True)
            results = [self._elements.text(e, x.dtype) for e, x in pairs]
            self._out.add(f"return {', '.join(results)}")

    def _update(self, parts: Reducing | Scanning, outer: Origins) -> None:
        """Print ``m[i], p[i] = argmax(x[i, k], k)`` or ``y[i] = scan(add, x[i])``."""
        for bind in parts.prefix:
            name = self._terms.check(bind.local.name, "value")
            self._out.add(f"{name} = {self._elements.text(bind.value)}")
        targets = [self._elements.access(t.buffer, t.indices) for t in parts.targets]
        pairs = zip(parts.terms, parts.targets, strict=True)
        terms = [self._elements.text(e, t.dtype) for e, t in pairs]
        name = parts.reducer.name
        if isinstance(parts, Scanning):
            operation = quote(name) if iskeyword(name) else name  # "and", "or"
            terms = [operation, *terms, *self._start(parts)]
            name = "scan"
        line = f"{', '.join(targets)} = {name}({', '.join(terms)})"
        if self._origins(parts.origins, outer):
            self._out.add(f"with origin({', '.join(quote(o) for o in sorted(parts.origins))}):")
            with self._out.indented():
                self._out.add(line)
        else:
            self._out.add(line)

    def _start(self, scan: Scanning) -> Iterator[str]:
        """Yield the argument of a scan that does not start at the identities."""
        if not scan.starts_at_identity:
            pairs = zip(scan.starts, scan.targets, strict=True)
            texts = [self._elements.text(e, t.dtype) for e, t in pairs]
            yield f"start={texts[0] if len(texts) == 1 else tuple_text(texts)}"

    def _header(self, block: Block) -> None:
        bindings = [self.iteration_text(v) for v in block.iters]
        guard = None if block.predicate == TRUE else self._terms.text(block.predicate)
        names = [self._terms.bind(v.var, "iteration variable") for v in block.iters]
        self._extents.update({v.var: v.extent for v in block.iters})
        together = f"{', '.join(names)} = {', '.join(bindings)}"
        if bindings and self._out.fits(together):
            self._out.add(together)
        else:
            for left, right in zip(names, bindings, strict=True):
                self._out.add(f"{left} = {right}")
        if guard is not None:
            self._out.add(f"guard({guard})")
        if block.iters or not self._lowered:
            self._regions(block)

    def iteration_text(self, iter_var: IterVar) -> str:
        """Return ``spatial(i)``, or ``spatial(n, i0 * 8 + i1)`` if it is not bound to a loop."""
        binding = self._terms.text(iter_var.binding)
        loop = self._extents.get(iter_var.binding) if isinstance(iter_var.binding, Var) else None
        parts = (
            [binding] if loop == iter_var.extent else [self._terms.text(iter_var.extent), binding]
        )
        parts += bounds_text(iter_var.var, range_of(iter_var.extent))
        return f"{iter_var.kind}({', '.join(parts)})"

    def _regions(self, block: Block) -> None:
        """Print the regions that differ from those inferred from the body."""
        reads, writes = access_regions(block.body, block.init)
        if block.reads != reads:
            self._out.add(f"reads({', '.join(map(self.region_text, block.reads))})")
        if block.writes != writes:
            self._out.add(f"writes({', '.join(map(self.region_text, block.writes))})")

    def region_text(self, region: Region) -> str:
        """Return a region as text, ``A[0:8, k]``."""
        inner = ", ".join(map(self.range_text, region.ranges)) or "()"
        return f"{region.buffer.name}[{inner}]"

    def range_text(self, part: Range) -> str:
        """Return a range as text, ``start:stop``, or ``start`` if it has one element."""
        start = self._terms.text(part.start)
        if const_value(part.extent) == 1:
            return start
        stop = part.start + part.extent
        if stop - part.start is part.extent:
            return f"{start}:{self._terms.text(stop)}"
        return f"span({start}, {self._terms.text(part.extent)})"

    def _init(self, block: Block) -> None:
        match block.init:
            case None:
                return
            case Store(origins=origins) as store if (
                not self._provenance or origins == block.origins
            ):
                line = self._elements.store(Load(store.buffer, store.indices), store.value)
                self._out.add(f"with init(): {line}")
            case init:
                self._out.add("with init():")
                with self._out.indented():
                    self.statement(init, block.origins)


def _notes(func: PrimFunc) -> dict[str, str]:
    """Return the comments about temporaries by name."""
    found = dict(func.attributes).get(NOTES)
    pairs = [p for p in found if isinstance(p, tuple)] if isinstance(found, tuple) else []
    return {str(name): str(text) for name, text in pairs}


def print_prim_func(func: PrimFunc, *, provenance: bool = False, lowered: bool = False) -> Lines:
    """Print one loop-level function, with its symbols declared above it.

    With ``lowered``, the function may be an intermediate result of lowering, which the parser
    need not accept: variables of equal name get a suffix.
    """
    terms, body, out = TermPrinter(func.name, rename=lowered), Lines(), Lines()
    printer = LoopPrinter(terms, body, provenance=provenance, lowered=lowered)
    terms.check(func.name, "function")
    notes = _notes(func) if lowered else {}
    attributes = tuple(a for a in func.attributes if not lowered or a[0] != NOTES)
    params = [printer.parameter(p) for p in func.params]
    with body.indented():
        for line in fact_lines(func.facts, terms):
            body.add(line)
        for buffer in func.buffers:
            for line in notes.get(buffer.name, "").splitlines():
                body.add(f"# {line}")
            printer.allocation(buffer)
        printer.statement(func.body, func.origins)
    options = [] if func.target is None else [f"target={target_text(func.target)}"]
    if provenance and func.origins:
        options += origins_text(func.origins)
    options += terms.keywords(attributes, FUNCTION_KEYS)
    signature = write_header(
        out, terms, decorator="prim_func", options=options, name=func.name, params=params
    )
    for buffer in func.buffer_params:
        out.mark_from(signature, "buffer", buffer.uid, buffer.name)
    out.append(body)
    return out
