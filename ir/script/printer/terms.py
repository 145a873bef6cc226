"""Printing of symbolic terms, attributes and keyword arguments; names in scope."""

from __future__ import annotations

from collections.abc import Sequence

from ...identity import fresh_name
from ...loop.nodes import Attribute, Attributes
from ...naming import RESERVED, is_valid_name
from ...symbolic import Bool, Const, Expr, Var, to_text
from ..errors import UnprintableProgramError
from ..names import float_text, quote, tuple_text


class TermPrinter:
    """The variables of one function in order of appearance; prints terms over them.

    A variable that no loop or block binds is a symbol of the function. The header declares
    symbols in the order of :attr:`symbols`.
    """

    def __init__(self, function: str, *, rename: bool = False) -> None:
        """Start with no variables; ``rename`` appends a suffix to a name that is in scope."""
        self._function = function
        self._rename = rename
        self._names: dict[Var, str] = {}
        self._order: dict[Var, int] = {}
        self._cache: dict[Expr | Bool, str] = {}
        self._symbol_names: dict[str, Var] = {}
        self._bound_names: dict[str, Var] = {}
        self.symbols: list[Var] = []

    def check(self, name: str, kind: str) -> str:
        """Return a name if it is valid in the text format; with ``rename``, escape it.

        Raises
        ------
        UnprintableProgramError
            If the name is not valid.
        """
        if self._rename:
            return name if is_valid_name(name) else repr(name)[1:-1]
        if not is_valid_name(name):
            raise UnprintableProgramError(
                f"{kind} name {name!r} is not valid in the text format",
                where=f"function {self._function!r}",
                hint="use a Python identifier that is not a keyword and not one of "
                f"{', '.join(RESERVED)}",
            )
        return name

    def bind(self, variable: Var, kind: str) -> str:
        """Add a loop or iteration variable to the scope and return its name."""
        name = self._unambiguous(self.check(variable.name, kind), variable)
        if self._names.get(variable, name) != name:
            self._cache.clear()
        self._bound_names[name] = variable
        self._number(variable, name)
        return name

    def release(self, variable: Var) -> None:
        """Remove a variable from the scope, so that its name can be reused."""
        self._bound_names.pop(self._names.get(variable, variable.name), None)

    def symbol(self, variable: Var) -> None:
        """Register a symbol of the function."""
        name = self.check(variable.name, "symbol")
        if self._symbol_names.setdefault(name, variable) is not variable:
            self.ambiguous(name)
        self.symbols.append(variable)
        self._number(variable, name)

    def _unambiguous(self, name: str, variable: Var) -> str:
        """Return the name of a variable to bind; raise if another one in scope has it."""
        other = self._symbol_names.get(name) or self._bound_names.get(name)
        if other is None or other is variable:
            return name
        if not self._rename:
            self.ambiguous(name)
        return fresh_name(name, {*self._symbol_names, *self._bound_names})

    def _number(self, variable: Var, name: str) -> None:
        self._names[variable] = name
        self._order[variable] = len(self._order)

    def ambiguous(self, name: str) -> None:
        """Raise the error of a name of several variables."""
        raise UnprintableProgramError(
            f"two variables named {name!r} are in scope",
            where=f"function {self._function!r}",
            hint="rename one: loop variables, iteration variables and symbols must differ",
        )

    def text(self, term: Expr | Bool) -> str:
        """Return a term as text."""
        found = self._cache.get(term)
        if found is None:
            new = [v for v in term.free if v not in self._order]
            for variable in sorted(new, key=lambda v: (v.name, v.serial)):
                self.symbol(variable)
            found = self._cache[term] = to_text(term, self._names, self._order)
        return found

    def texts(self, terms: Sequence[Expr]) -> list[str]:
        """Return several terms as texts."""
        return [self.text(t) for t in terms]

    def tuple(self, terms: Sequence[Expr]) -> str:
        """Return terms as a tuple text."""
        return tuple_text(self.texts(terms))

    def attribute(self, value: Attribute) -> str:
        """Return the value of an attribute as text."""
        match value:
            case bool() | int():
                return repr(value)
            case float():
                return float_text(value)
            case str():
                return quote(value)
            case tuple():
                return tuple_text([self.attribute(v) for v in value])
            case Const():
                return f"expr({self.text(value)})"
            case Expr():
                return self.text(value)

    def keywords(self, attributes: Attributes, reserved: frozenset[str]) -> list[str]:
        """Return attributes as keyword arguments, with ``**`` if a key is not a free identifier."""
        written: list[str] = []
        seen: set[str] = set()
        for key, value in attributes:
            text = self.attribute(value)
            plain = is_valid_name(key) and key not in reserved and key not in seen
            written.append(f"{key}={text}" if plain else f"**{{{quote(key)}: {text}}}")
            seen.add(key)
        return written


def bounds_text(variable: Var, expected: tuple[int | None, int | None]) -> list[str]:
    """Return the range of a bound variable as options if it differs from the expected one."""
    extra: list[str] = []
    if (variable.lower, variable.upper) != expected:
        extra.append(f"bounds=({variable.lower}, {variable.upper})")
    if variable.multiple_of != 1:
        extra.append(f"multiple_of={variable.multiple_of}")
    return extra
