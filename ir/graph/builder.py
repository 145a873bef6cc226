"""A builder of graph-level functions with shape inference."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from ..dtype import bool_, f32, i64
from ..identity import NO_ORIGIN, Names, Origins, UidSource
from ..loop.nodes import AccessMode, Attribute
from ..naming import to_valid_name
from ..symbolic import (
    Bool,
    Discharge,
    Eq,
    Expr,
    Facts,
    Le,
    Lt,
    SymInt,
    as_expr,
    conjuncts,
    minimum,
)
from .libraries import get_library_function
from .nodes import (
    Binding,
    Call,
    CallDPSLibrary,
    ConstantRef,
    Dims,
    GraphFunc,
    GraphParam,
    Info,
    MatchCast,
    Operand,
    Rhs,
    ScalarLiteral,
    ShapeInfo,
    TensorInfo,
    TupleInfo,
    TupleItem,
    Update,
    Value,
    result_info,
)
from .operators import OperandError, Requirement, get_operator
from .visit import all_values

Argument: TypeAlias = "Operand | float | int | bool | Sequence[SymInt]"
AttributeArgument: TypeAlias = "Attribute | Sequence[int]"


def operand(argument: Argument) -> Operand:
    """Convert a Python number to a literal, and a sequence of integers to :class:`Dims`.

    Examples
    --------
    >>> operand(2.0).dtype.name, len(operand([2, 3]).dims)
    ('f32', 2)
    """
    match argument:
        case Value() | ConstantRef() | ScalarLiteral() | Dims():
            return argument
        case bool():
            return ScalarLiteral(argument, bool_)
        case int():
            return ScalarLiteral(argument, i64)
        case float():
            return ScalarLiteral(argument, f32)
        case _:
            return Dims(tuple(as_expr(d) for d in argument))


def equation(predicate: Bool) -> tuple[Expr, Expr] | None:
    """Rewrite a comparison as an equation, which ``match_cast`` can check at run time.

    ``a <= b`` becomes ``min(a, b) == a``. The result is None for other predicates.
    """
    match predicate:
        case Eq(left=left, right=right):
            return left, right
        case Le(left=left, right=right):
            return minimum(left, right), left
        case Lt(left=left, right=right):
            return minimum(left + 1, right), left + 1
        case _:
            return None


class GraphBuilder:
    """A builder of one graph-level function from parameters and bindings.

    Examples
    --------
    >>> from ..symbolic import var
    >>> n = var("n", lower=1)
    >>> b = GraphBuilder("main")
    >>> x = b.param("x", TensorInfo((n, as_expr(4)), f32))
    >>> y = b.emit("softmax", x, axis=-1)
    >>> [binding.value.name for binding in b.finish([y]).bindings]
    ['softmax']
    """

    def __init__(self, name: str, *, facts: Facts | None = None) -> None:
        """Start an empty function."""
        self._name = name
        self._mint = UidSource()
        self._names = Names()
        self._params: list[GraphParam] = []
        self._bindings: list[Binding] = []
        self._constants: dict[str, ConstantRef] = {}
        self._updates: dict[Value, Operand] = {}
        self.facts = Facts() if facts is None else facts

    @classmethod
    def extending(
        cls, function: GraphFunc, name: str, mint: UidSource | None = None
    ) -> GraphBuilder:
        """Start a function with the parameters and facts of another; names and uids are new.

        The bindings are added by :meth:`append`. ``mint`` is the source of uids, by default those
        above the uids of the function.

        Examples
        --------
        >>> b = GraphBuilder("main")
        >>> x = b.param("x", TensorInfo((as_expr(4),), f32))
        >>> GraphBuilder.extending(b.finish([x]), "other").emit("relu", x).uid
        2
        """
        values = list(all_values(function))
        builder = cls(name, facts=function.facts)
        builder._names.update(v.name for v in values)
        builder._mint = mint or UidSource(first=max((v.uid for v in values), default=0) + 1)
        builder._params = list(function.params)
        return builder

    @contextmanager
    def recorded(self) -> Generator[list[Binding]]:
        """Collect the bindings that are added; they remain in the function."""
        added: list[Binding] = []
        start = len(self._bindings)
        yield added
        added.extend(self._bindings[start:])

    def append(self, binding: Binding) -> None:
        """Add a binding of the function that is extended."""
        self._bindings.append(binding)

    def value(self, name: str, info: Info) -> Value:
        """Return a new value that a binding or a loop defines."""
        return self._value(name, info)

    @contextmanager
    def region(self) -> Generator[list[Binding]]:
        """Collect the bindings of a branch or of the body of a loop.

        Facts that are checked inside hold inside only.

        Examples
        --------
        >>> b = GraphBuilder("main")
        >>> x = b.param("x", TensorInfo((as_expr(4),), f32))
        >>> with b.region() as bindings:
        ...     y = b.emit("relu", x)
        >>> [binding.value is y for binding in bindings]
        [True]
        """
        outer, facts = self._bindings, self.facts
        self._bindings = []
        try:
            yield self._bindings
        finally:
            self._bindings, self.facts = outer, facts

    @property
    def params(self) -> tuple[Value, ...]:
        """The parameters so far."""
        return tuple(p.value for p in self._params)

    def _value(self, name: str, info: Info) -> Value:
        return Value(self._mint(), self._names.fresh(to_valid_name(name)), info)

    def param(
        self,
        name: str,
        info: Info,
        access: AccessMode = "in",
        initial: ConstantRef | None = None,
    ) -> Value:
        """Add a parameter; ``initial`` is the initial value of a state, by default zero."""
        value = self._value(name, info)
        self._params.append(GraphParam(value, access, initial))
        return value

    def update(self, param: Value, value: Operand) -> None:
        """Set the last value of an out, inout or state parameter; a later call replaces it."""
        self._updates[param] = value

    def last_value(self, param: Value) -> Operand:
        """Return the last value of a parameter so far: by default, the parameter itself."""
        return self._updates.get(param, param)

    def constant(self, key: str, info: TensorInfo) -> ConstantRef:
        """Return a reference to a constant of the module, one per key."""
        return self._constants.setdefault(key, ConstantRef(key, info))

    def assume(
        self, predicate: Bool, origin: str, discharge: Discharge = Discharge.ENTRY_CHECK
    ) -> None:
        """Add a fact to the function, available to all later bindings."""
        self.facts = self.facts.assume(predicate, origin=origin, discharge=discharge)

    def bind(self, name: str, info: Info, right: Rhs, origins: Origins = NO_ORIGIN) -> Value:
        """Add a binding with a given annotation."""
        value = self._value(name, info)
        self._bindings.append(Binding(value, right, origins))
        return value

    def emit(
        self,
        op: str,
        *args: Argument,
        name: str | None = None,
        origins: Origins = NO_ORIGIN,
        **attributes: AttributeArgument,
    ) -> Value:
        """Apply an operator and infer the annotation of its result.

        Requirements on symbolic shapes are proved, or checked at run time by a preceding binding.

        Raises
        ------
        OperandError, OperatorAttributeError, ShapeMismatchError
            If an operand or attribute is invalid, or shapes are proved to differ.
        """
        operands = tuple(operand(a) for a in args)
        given = tuple((k, _attribute(v)) for k, v in attributes.items())
        inferred = get_operator(op).infer(operands, given, self.facts)
        for requirement in inferred.requirements:
            self.check(requirement, origins)
        return self.bind(name or op, inferred.info, Call(op, operands, given), origins)

    def library(
        self, symbol: str, *args: Value | ConstantRef, **attributes: AttributeArgument
    ) -> tuple[Value, ...]:
        """Call a library function that deduces its outputs; return them.

        Raises
        ------
        UnknownLibraryFunctionError, OperandError, OperatorAttributeError
            If the function is not registered, or an operand or attribute is invalid.
        """
        function = get_library_function(symbol)
        given = tuple((k, _attribute(v)) for k, v in attributes.items())
        outputs = function.deduced(args, given, self.facts)
        if outputs is None:
            raise OperandError(
                "the outputs of the library function are not deduced from its operands",
                where=f"library function {symbol}",
                hint="state `outputs` in its registration",
            )
        call = CallDPSLibrary(symbol, args, outputs, given)
        whole = self.bind(symbol.rsplit(".", 1)[-1], result_info(call), call)
        many = len(outputs) > 1
        return tuple(self.item(whole, k) for k in range(len(outputs))) if many else (whole,)

    def check(self, requirement: Requirement, origins: Origins = NO_ORIGIN) -> None:
        """Add a run-time check of a requirement: a ``match_cast`` of symbolic integers.

        Raises
        ------
        OperandError
            If the requirement is not an equation or inequality.
        """
        for part in conjuncts(requirement.predicate):
            sides = equation(part)
            if sides is None:
                raise OperandError(
                    f"{requirement.reason}: '{part}' is not proved, and only equations and "
                    "inequalities can be checked at run time",
                    where=f"function {self._name!r}",
                    hint="add the condition to the facts of the function with `assume`",
                )
            info = ShapeInfo((sides[1],), 1)
            self.bind("checked", info, MatchCast(Dims((sides[0],)), info), origins)
            self.assume(part, requirement.reason, Discharge.MATCH_CAST)

    def match_cast(self, value: Argument, info: Info, *, name: str = "matched") -> Value:
        """Refine the annotation of a value, checked at run time."""
        return self.bind(name, info, MatchCast(operand(value), info))

    def item(self, tuple_: Value, index: int, *, name: str | None = None) -> Value:
        """Select one field of a tuple.

        Raises
        ------
        OperandError
            If the value is not a tuple, or has no field with this index.
        """
        if not isinstance(tuple_.info, TupleInfo):
            found = type(tuple_.info).__name__.removesuffix("Info")
            raise OperandError(
                f"expected a tuple of values, got {found}",
                where=f"value {tuple_.name!r}",
                hint="pass the result of a call with several results, or of make_tuple",
            )
        if not 0 <= index < len(tuple_.info.fields):
            raise OperandError(
                f"no field {index}: the tuple has {len(tuple_.info.fields)} fields",
                where=f"value {tuple_.name!r}",
                hint=f"indices are 0 to {len(tuple_.info.fields) - 1}",
            )
        info = tuple_.info.fields[index]
        return self.bind(name or f"{tuple_.name}_{index}", info, TupleItem(tuple_, index))

    def finish(
        self,
        results: Sequence[Operand],
        *,
        result_names: Sequence[str] = (),
        hints: tuple[tuple[str, tuple[int, ...]], ...] = (),
    ) -> GraphFunc:
        """Return the function."""
        return GraphFunc(
            self._name,
            tuple(self._params),
            tuple(self._bindings),
            tuple(results),
            self.facts,
            hints=hints,
            result_names=tuple(result_names),
            updates=tuple(Update(p, v) for p, v in self._updates.items() if v is not p),
        )


def _attribute(value: AttributeArgument) -> Attribute:
    match value:
        case bool() | int() | float() | str() | Expr():
            return value
        case _:
            return tuple(value)
