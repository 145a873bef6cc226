"""What stands above the statements of a function of either level: symbols, signature, facts."""

from __future__ import annotations

from ...symbolic import Fact, Facts, Var
from ..names import quote
from .lines import Lines
from .terms import Terms


def _declared(symbol: Var) -> str:
    parts = [
        f", {key}={value}"
        for key, value in (("lower", symbol.lower), ("upper", symbol.upper))
        if value is not None
    ]
    if symbol.multiple_of != 1:
        parts.append(f", multiple_of={symbol.multiple_of}")
    return "".join(parts)


def symbol_lines(symbols: list[Var]) -> list[str]:
    """Write declarations, one line for all symbols declared alike.

    Examples
    --------
    >>> from ...symbolic import var
    >>> symbol_lines([var("n", lower=1), var("k", multiple_of=8), var("m", lower=1)])
    ['n, m = symbols("n m", lower=1)', 'k = symbols("k", multiple_of=8)']
    """
    alike: dict[str, list[str]] = {}
    for symbol in symbols:
        alike.setdefault(_declared(symbol), []).append(symbol.name)
    return [
        f'{", ".join(names)} = symbols("{" ".join(names)}"{options})'
        for options, names in alike.items()
    ]


def _fact_line(fact: Fact, terms: Terms) -> str:
    parts = [terms.text(fact.predicate), quote(fact.origin.text)]
    if fact.origin.location is not None:
        parts.append(f"at={quote(fact.origin.location)}")
    parts.append(f"by={quote(fact.discharge.name.lower())}")
    return f"fact({', '.join(parts)})"


def fact_lines(facts: Facts, terms: Terms) -> list[str]:
    """Write facts in their order, each with where it came from and what discharges it."""
    return [_fact_line(fact, terms) for fact in facts]


def write_header(
    out: Lines,
    terms: Terms,
    *,
    decorator: str,
    options: list[str],
    name: str,
    params: list[str],
) -> int:
    """Write symbols, decorator and signature; give the number of the signature's first line.

    Call it after all of the function is written: only then are all symbols known.
    """
    for line in symbol_lines(terms.symbols):
        out.add(line)
    if terms.symbols:
        out.add("")
    if options:
        out.call(f"@{decorator}", options)
    else:
        out.add(f"@{decorator}")
    signature = len(out.lines)
    out.call(f"def {name}", params, ":", apart=True)
    return signature
