"""Symbolic terms, attributes and keyword arguments as text, and the names in scope."""

from __future__ import annotations

from collections.abc import Sequence

from ...loop.nodes import Attribute, Attributes
from ...naming import RESERVED, is_writable
from ...symbolic import Bool, Const, Expr, Var, to_text
from ..errors import UnprintableProgramError
from ..names import float_text, quote, tuple_text


class Terms:
    """The variables of one function in the order in which they appear, and terms over them.

    A variable that no loop or block binds is a symbol of the function; the header declares those
    in the order of :attr:`symbols`.
    """

    def __init__(self, function: str) -> None:
        """Start with no variable."""
        self._function = function
        self._names: dict[Var, str] = {}
        self._order: dict[Var, int] = {}
        self._cache: dict[Expr | Bool, str] = {}
        self._symbol_names: dict[str, Var] = {}
        self._bound_names: dict[str, Var] = {}
        self.symbols: list[Var] = []

    def check(self, name: str, what: str) -> str:
        """Give a name back if it can be written.

        Raises
        ------
        UnprintableProgramError
            If it cannot.
        """
        if not is_writable(name):
            raise UnprintableProgramError(
                f"{what} {name!r} cannot be written",
                where=f"function {self._function!r}",
                hint=f"a name is a Python identifier, no keyword, and not {', '.join(RESERVED)}",
            )
        return name

    def bind(self, variable: Var, what: str) -> str:
        """Enter a loop or iteration variable and give its name."""
        name = self.check(variable.name, what)
        other = self._symbol_names.get(name) or self._bound_names.get(name)
        if other is not None and other is not variable:
            self._ambiguous(name)
        self._bound_names[name] = variable
        self._number(variable)
        return name

    def release(self, variable: Var) -> None:
        """Leave the scope of a variable, so that another may have its name."""
        self._bound_names.pop(variable.name, None)

    def symbol(self, variable: Var) -> None:
        """Meet a symbol of the function."""
        name = self.check(variable.name, "symbol")
        if self._symbol_names.setdefault(name, variable) is not variable:
            self._ambiguous(name)
        self.symbols.append(variable)
        self._number(variable)

    def _number(self, variable: Var) -> None:
        self._names[variable] = variable.name
        self._order[variable] = len(self._order)

    def _ambiguous(self, name: str) -> None:
        raise UnprintableProgramError(
            f"two variables named {name!r} are in scope at once",
            where=f"function {self._function!r}",
            hint="loops, iteration variables and symbols in one scope have different names",
        )

    def text(self, term: Expr | Bool) -> str:
        """Write a term."""
        found = self._cache.get(term)
        if found is None:
            new = [v for v in term.free if v not in self._order]
            for variable in sorted(new, key=lambda v: (v.name, v.serial)):
                self.symbol(variable)
            found = self._cache[term] = to_text(term, self._names, self._order)
        return found

    def texts(self, terms: Sequence[Expr]) -> list[str]:
        """Write several terms."""
        return [self.text(t) for t in terms]

    def tuple(self, terms: Sequence[Expr]) -> str:
        """Write terms as a tuple."""
        return tuple_text(self.texts(terms))

    def attribute(self, value: Attribute) -> str:
        """Write the value of an attribute."""
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
        """Write attributes as keyword arguments; ``**`` where a key is no free identifier."""
        written: list[str] = []
        seen: set[str] = set()
        for key, value in attributes:
            text = self.attribute(value)
            plain = is_writable(key) and key not in reserved and key not in seen
            written.append(f"{key}={text}" if plain else f"**{{{quote(key)}: {text}}}")
            seen.add(key)
        return written


def bounds_text(variable: Var, expected: tuple[int | None, int | None]) -> list[str]:
    """Write the range of a bound variable where its extent does not tell it."""
    extra: list[str] = []
    if (variable.lower, variable.upper) != expected:
        extra.append(f"bounds=({variable.lower}, {variable.upper})")
    if variable.multiple_of != 1:
        extra.append(f"multiple_of={variable.multiple_of}")
    return extra
