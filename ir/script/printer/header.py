"""Printing of function headers: symbols, decorator, signature, facts."""

from __future__ import annotations

from ...symbolic import Fact, Facts, Var
from ..names import quote
from .lines import Lines
from .terms import TermPrinter


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
    """Return symbol declarations, one line for all symbols with equal options.

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


def _fact_line(fact: Fact, terms: TermPrinter) -> str:
    parts = [terms.text(fact.predicate), quote(fact.origin.text)]
    if fact.origin.location is not None:
        parts.append(f"at={quote(fact.origin.location)}")
    parts.append(f"by={quote(fact.discharge.name.lower())}")
    return f"fact({', '.join(parts)})"


def fact_lines(facts: Facts, terms: TermPrinter) -> list[str]:
    """Return facts, then hints, as lines in order, each with its origin and discharge."""
    return [_fact_line(fact, terms) for fact in (*facts, *facts.hints)]


def write_header(
    out: Lines,
    terms: TermPrinter,
    *,
    decorator: str,
    options: list[str],
    name: str,
    params: list[str],
) -> int:
    """Print symbols, decorator and signature; return the line number of the signature.

    Call it after the body has been printed: only then are all symbols known.
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
    out.call(f"def {name}", params, ":", one_per_line=True)
    return signature
