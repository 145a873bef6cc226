"""A builder of loop-level functions that creates loops, blocks and regions.

Operators define their loop-level computation with it: each :meth:`Builder.compute` or
:meth:`Builder.reduce` adds one block in its own loop nest.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

from ...errors import TilewrightError
from ..dtype import DType
from ..identity import NO_ORIGIN, Origins, UidSource, fresh_name
from ..symbolic import Expr, Facts, SymInt, Var, as_expr
from .combiners import Combiner, identity_of
from .nodes import (
    AccessMode,
    Attributes,
    Binary,
    Block,
    Buffer,
    BufferParam,
    Cast,
    Compare,
    Condition,
    Element,
    For,
    Index,
    IterKind,
    IterVar,
    Load,
    Local,
    Number,
    Param,
    PrimFunc,
    Reducer,
    Reinterpret,
    ScalarParam,
    Scope,
    Stmt,
    Store,
    Ternary,
    Unary,
    Where,
)
from .ranges import loop_var
from .reducers import Reducing
from .regions import access_regions
from .visit import seq

_ELEMENTS: Final = (
    Number, Index, Condition, Load, Unary, Binary, Ternary, Compare, Cast, Reinterpret, Where,
    Local,
)  # fmt: skip


class BuilderError(TilewrightError):
    """An argument of the builder that does not match the buffer that it defines."""

    title = "Invalid argument of the builder"


def _check_arity(value: Callable[..., Element], count: int, out: Buffer) -> None:
    """Check that the function of an element accepts one variable per loop."""
    if not callable(cast("object", value)):
        raise BuilderError(
            f"expected a function of {count} index variables, got {type(value).__name__}",
            where=f"value of buffer {out.name!r}",
            hint="write lambda i: ..., one variable per dimension and reduction",
        )
    signature = inspect.signature(value)
    try:
        signature.bind(*range(count))
    except TypeError:
        names = ", ".join(f"i{k}" for k in range(count))
        raise BuilderError(
            f"expected a function of {count} index variables, got {signature}",
            where=f"value of buffer {out.name!r}",
            hint=f"write lambda {names}: ..., one variable per dimension and reduction",
        ) from None


def _element(value: object, out: Buffer) -> Element:
    """Return the value of an element that a function returned, or raise an error."""
    if isinstance(value, _ELEMENTS):
        return value
    raise BuilderError(
        f"expected an element, got {type(value).__name__}",
        where=f"value of buffer {out.name!r}",
        hint="elements are b.load(x, i), Number(1.0, f32), and operations such as Binary",
    )


class Builder:
    """A builder of one loop-level function from parameters, temporaries and blocks.

    Examples
    --------
    >>> from ..dtype import f32
    >>> from ..symbolic import var
    >>> n = var("n", lower=1)
    >>> b = Builder("double")
    >>> x, y = b.param("x", (n,), f32), b.param("y", (n,), f32, "out")
    >>> b.compute(y, lambda i: Binary("add", b.load(x, i), b.load(x, i)))
    >>> b.finish().name
    'double'
    """

    def __init__(
        self, name: str, *, facts: Facts | None = None, reserved: Iterable[str] = ()
    ) -> None:
        """Start an empty function; no loop or buffer gets a reserved name."""
        self._name = name
        self._facts = facts or Facts()
        self._mint = UidSource()
        self._params: list[Param] = []
        self._buffers: list[Buffer] = []
        self._body: list[Stmt] = []
        self._names = set(reserved)

    def fresh(self, name: str) -> str:
        """Return a name that no buffer, loop, or block has."""
        chosen = fresh_name(name, self._names)
        self._names.add(chosen)
        return chosen

    def _buffer(self, name: str, shape: Sequence[SymInt], dtype: DType, scope: Scope) -> Buffer:
        if isinstance(cast("object", shape), int | str | Expr):
            raise BuilderError(
                f"expected a tuple of extents as the shape, got {shape!r}",
                where=f"buffer {name!r}",
                hint="write (n,) for one dimension, () for none",
            )
        if not isinstance(cast("object", dtype), DType):
            raise BuilderError(
                f"expected a dtype, got {dtype!r}",
                where=f"buffer {name!r}",
                hint="dtypes are objects of tilewright.ir.dtype, such as f32",
            )
        dims = tuple(as_expr(d) for d in shape)
        return Buffer(self._mint(), self.fresh(name), dims, dtype, scope)

    def param(
        self, name: str, shape: Sequence[SymInt], dtype: DType, access: AccessMode = "in"
    ) -> Buffer:
        """Add a buffer parameter."""
        buffer = self._buffer(name, shape, dtype, "global")
        self._params.append(BufferParam(buffer, access))
        return buffer

    def scalar(self, symbol: Var) -> Var:
        """Add an integer parameter for a symbol that no shape of a parameter binds."""
        self._params.append(ScalarParam(symbol))
        return symbol

    def temporary(
        self, name: str, shape: Sequence[SymInt], dtype: DType, scope: Scope = "global"
    ) -> Buffer:
        """Add a temporary buffer, allocated for the duration of the call."""
        buffer = self._buffer(name, shape, dtype, scope)
        self._buffers.append(buffer)
        return buffer

    @staticmethod
    def load(buffer: Buffer, *indices: SymInt) -> Load:
        """Load one element."""
        return Load(buffer, tuple(as_expr(i) for i in indices))

    def _iters(
        self, extents: Sequence[SymInt], kind: IterKind, names: Sequence[str]
    ) -> list[tuple[Var, IterVar]]:
        made: list[tuple[Var, IterVar]] = []
        for k, extent in enumerate(extents):
            dim = as_expr(extent)
            base = names[k] if k < len(names) else f"{'r' if kind == 'reduce' else 'i'}{k}"
            loop = loop_var(self.fresh(base), dim)
            inner = loop_var(self.fresh(f"v{base}"), dim)
            made.append((loop, IterVar(inner, dim, kind, loop)))
        return made

    def _nest(self, iters: list[tuple[Var, IterVar]], block: Block, origins: Origins) -> None:
        body: Stmt = block
        for loop, iter_var in reversed(iters):
            body = For(self._mint(), loop, iter_var.extent, body, origins=origins)
        self._body.append(body)

    def _block(
        self,
        name: str,
        iters: list[tuple[Var, IterVar]],
        body: Stmt,
        *,
        init: Stmt | None,
        origins: Origins,
        annotations: Attributes,
        reducer: Reducer | None = None,
    ) -> None:
        reads, writes = access_regions(body, init)
        block = Block(
            self._mint(),
            self.fresh(name),
            tuple(v for _, v in iters),
            reads,
            writes,
            body,
            init,
            annotations=annotations,
            origins=origins,
            reducer=reducer,
        )
        self._nest(iters, block, origins)

    def compute(
        self,
        out: Buffer,
        value: Callable[..., Element],
        *,
        name: str | None = None,
        names: Sequence[str] = (),
        origins: Origins = NO_ORIGIN,
        annotations: Attributes = (),
    ) -> None:
        """Define every element of ``out``; ``value`` gets one index variable per dimension."""
        iters = self._iters(out.shape, "spatial", names)
        indices: tuple[Expr, ...] = tuple(v.var for _, v in iters)
        _check_arity(value, len(indices), out)
        body = Store(out, indices, _element(value(*indices), out), origins)
        self._block(
            name or out.name, iters, body, init=None, origins=origins, annotations=annotations
        )

    def reduce(
        self,
        out: Buffer,
        extents: Sequence[SymInt],
        value: Callable[..., Element],
        *,
        combiner: Combiner = "add",
        init: Number | None = None,
        name: str | None = None,
        names: Sequence[str] = (),
        origins: Origins = NO_ORIGIN,
        annotations: Attributes = (),
    ) -> None:
        """Define every element of ``out`` by reducing ``value`` over a domain of ``extents``.

        ``value`` gets the spatial variables, then the reduction variables.
        """
        spatial = self._iters(out.shape, "spatial", names)
        reduction = self._iters(extents, "reduce", names[len(spatial) :])
        indices: tuple[Expr, ...] = tuple(v.var for _, v in spatial)
        _check_arity(value, len(spatial) + len(reduction), out)
        new = _element(value(*indices, *(v.var for _, v in reduction)), out)
        body = Store(out, indices, Binary(combiner, Load(out, indices), new), origins)
        start = Store(out, indices, init or identity_of(combiner, out.dtype), origins)
        self._block(
            name or out.name,
            [*spatial, *reduction],
            body,
            init=start,
            origins=origins,
            annotations=annotations,
        )

    def reduce_by(
        self,
        reducer: Reducer,
        outs: Sequence[Buffer],
        extents: Sequence[SymInt],
        terms: Callable[..., tuple[Element, ...]],
        *,
        name: str,
        names: Sequence[str] = (),
        origins: Origins = NO_ORIGIN,
    ) -> None:
        """Define every element of ``outs``, of equal shapes, by a reducer over a domain.

        ``terms`` gets the spatial variables, then the reduction variables.
        """
        spatial = self._iters(outs[0].shape, "spatial", names)
        reduction = self._iters(extents, "reduce", names[len(spatial) :])
        at = tuple(v.var for _, v in spatial)
        targets = tuple(Load(out, at) for out in outs)
        new = terms(*at, *(v.var for _, v in reduction))
        parts = Reducing(reducer, (), targets, new, origins)
        self._block(
            name,
            [*spatial, *reduction],
            parts.body(),
            init=parts.starts(),
            origins=origins,
            annotations=(),
            reducer=parts.declared,
        )

    def block(
        self,
        iters: Sequence[tuple[SymInt, IterKind]],
        body: Callable[..., Stmt],
        *,
        name: str,
        names: Sequence[str] = (),
        origins: Origins = NO_ORIGIN,
        reducer: Reducer | None = None,
    ) -> None:
        """Add one block with iteration variables of the given extents and kinds.

        ``body`` gets the iteration variables; it may load indices from memory by ``Let``. It is a
        reduction or a scan by ``reducer``, if given.
        """
        made: list[tuple[Var, IterVar]] = []
        for k, (extent, kind) in enumerate(iters):
            base = names[k] if k < len(names) else f"{'r' if kind == 'reduce' else 'i'}{k}"
            made.extend(self._iters((extent,), kind, (base,)))
        statement = body(*(v.var for _, v in made))
        self._block(
            name, made, statement, init=None, origins=origins, annotations=(), reducer=reducer
        )

    def statement(self, statement: Stmt) -> None:
        """Append a statement; mint its uids with :attr:`mint`."""
        self._body.append(statement)

    @property
    def mint(self) -> UidSource:
        """The source of uids of the function."""
        return self._mint

    def finish(self, *, attributes: Attributes = (), origins: Origins = NO_ORIGIN) -> PrimFunc:
        """Return the function."""
        return PrimFunc(
            self._name,
            tuple(self._params),
            seq(*self._body),
            tuple(self._buffers),
            self._facts,
            attributes=attributes,
            origins=origins,
        )
