"""Compatibility of two exports: whether programs that use one can use the other instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

from .inspection import Description

_Facts: TypeAlias = Mapping[str, Any]


class Verdict(IntEnum):
    """The effect of a difference on programs that use the old export.

    The value of the greatest one is part of the exit code.
    """

    COMPATIBLE = 0
    ADDITIVE = 3
    BREAKING = 4


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two exports, and its effect."""

    verdict: Verdict
    text: str

    def __str__(self) -> str:
        """Return the effect and the difference."""
        return f"{self.verdict.name.lower()}: {self.text}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences of two exports."""

    differences: tuple[Difference, ...]

    @property
    def verdict(self) -> Verdict:
        """The greatest effect of a difference."""
        return max((d.verdict for d in self.differences), default=Verdict.COMPATIBLE)


def _breaking(text: str) -> Difference:
    return Difference(Verdict.BREAKING, text)


def _additive(text: str) -> Difference:
    return Difference(Verdict.ADDITIVE, text)


def _compatible(text: str) -> Difference:
    return Difference(Verdict.COMPATIBLE, text)


def compare(old: Description, new: Description) -> Comparison:
    """Return the differences of two exports.

    A difference is breaking if a correct use of the old export may fail with the new one: a
    function, a file of weights, a processor, or an argument that is no longer accepted, or another
    result. It is additive if the new export accepts more. Other differences, such as those of code
    and weights, are compatible.
    """
    rules: tuple[Callable[[_Facts, _Facts], Iterator[Difference]], ...] = (
        _identities, _processors, _weights, _functions, _states, _kernels, _contents,
    )  # fmt: skip
    found = [d for rule in rules for d in rule(old.facts, new.facts)]
    return Comparison(tuple(sorted(found, key=lambda d: -d.verdict)))


def _identities(old: _Facts, new: _Facts) -> Iterator[Difference]:
    for key in ("name", "kind", "abi", "arch"):
        if old[key] != new[key]:
            yield _breaking(f"{key}: {old[key]} becomes {new[key]}")


def _processors(old: _Facts, new: _Facts) -> Iterator[Difference]:
    before, now = old.get("features", []), new.get("features", [])
    more = [f for f in now if f not in before]
    fewer = [f for f in before if f not in now]
    if more:
        yield _breaking(f"the processor must also have {', '.join(more)}")
    if fewer:
        yield _additive(f"the processor need not have {', '.join(fewer)}")
    yield from _levels(old, new)
    first, last = old.get("threads", 1), new.get("threads", 1)
    if last < first:
        yield _breaking(f"the maximum number of threads is reduced from {first} to {last}")
    if last > first:
        yield _additive(f"the maximum number of threads is raised from {first} to {last}")


def _levels(old: _Facts, new: _Facts) -> Iterator[Difference]:
    """Compare the levels; a program may open a level by its name."""
    before, now = ([level["name"] for level in f.get("levels", ())] for f in (old, new))
    for name in before:
        if name not in now:
            yield _breaking(f"level {name!r} is removed")
    for name in now:
        if name not in before:
            yield _additive(f"level {name!r} is added")


def _weights(old: _Facts, new: _Facts) -> Iterator[Difference]:
    before, now = (bool(f.get("weights_replaceable")) for f in (old, new))
    if before and not now:
        yield _breaking("the weights are no longer replaceable")
    if now and not before:
        yield _additive("the weights are replaceable")
    schemas = old.get("weights_schema"), new.get("weights_schema")
    if before and now and schemas[0] != schemas[1]:
        yield _breaking("files of weights that were packed for the old export are not accepted")


def _named(facts: Sequence[_Facts]) -> dict[str, _Facts]:
    return {str(f["name"]): f for f in facts}


def _functions(old: _Facts, new: _Facts) -> Iterator[Difference]:
    before, now = _named(old.get("functions", [])), _named(new.get("functions", []))
    for name in before.keys() - now.keys():
        yield _breaking(f"function {name!r} is removed")
    for name in now.keys() - before.keys():
        yield _additive(f"function {name!r} is added")
    for name in before:
        if name in now:
            for difference in _function(before[name], now[name]):
                text = f"function {name!r}: {difference.text}"
                yield Difference(difference.verdict, text)


def _function(old: _Facts, new: _Facts) -> Iterator[Difference]:
    if [p["name"] for p in old["params"]] != [p["name"] for p in new["params"]]:
        names = [", ".join(p["name"] for p in f["params"]) for f in (old, new)]
        yield _breaking(f"parameters ({names[0]}) become ({names[1]})")
    else:
        for before, now in zip(old["params"], new["params"], strict=True):
            yield from _param(before, now, _named(new["symbols"]))
    results = [[(r["name"], r["annotation"], r["param"]) for r in f["results"]] for f in (old, new)]
    if results[0] != results[1]:
        texts = [", ".join(f"{name}: {of}" for name, of, _ in found) for found in results]
        yield _breaking(f"results ({texts[0]}) become ({texts[1]})")
    before, now = _named(old["symbols"]), _named(new["symbols"])
    for name in before:
        if name in now:
            yield from _range(before[name], now[name])
    for fact in new["assumptions"]:
        if fact not in old["assumptions"]:
            yield _breaking(f"it also assumes {fact}")
    for fact in old["assumptions"]:
        if fact not in new["assumptions"]:
            yield _additive(f"it no longer assumes {fact}")


def _param(old: _Facts, new: _Facts, symbols: Mapping[str, _Facts]) -> Iterator[Difference]:
    where = f"parameter {old['name']!r}"
    same = all(old[key] == new[key] for key in ("form", "dtype", "rank", "access"))
    if not same:
        yield _breaking(
            f"{where}: {old['annotation']}, {old['access']} becomes {new['annotation']}, "
            f"{new['access']}"
        )
        return
    if old["alignment"] != new["alignment"]:
        effect = _breaking if new["alignment"] > old["alignment"] else _additive
        yield effect(f"{where}: alignment {old['alignment']} becomes {new['alignment']} bytes")
    changed = [(a, b) for a, b in zip(old["shape"], new["shape"], strict=True) if a != b]
    if changed:
        wider = all(_accepts(symbols.get(b), a) for a, b in changed)
        effect = _additive if wider else _breaking
        yield effect(f"{where}: {old['annotation']} becomes {new['annotation']}")


def _accepts(symbol: _Facts | None, dim: str) -> bool:
    """Return whether a dimension that was a number is one of the values of a symbol."""
    if symbol is None or not dim.isdecimal():
        return False
    size, lower, upper = int(dim), symbol["lower"], symbol["upper"]
    return (
        (lower is None or lower <= size)
        and (upper is None or size <= upper)
        and size % symbol["multiple_of"] == 0
    )


def _range(old: _Facts, new: _Facts) -> Iterator[Difference]:
    """Compare the ranges of a symbol, whose limits may be None."""
    name, smallest, largest = old["name"], float("-inf"), float("inf")
    lows = [smallest if s["lower"] is None else s["lower"] for s in (old, new)]
    highs = [largest if s["upper"] is None else s["upper"] for s in (old, new)]
    units = old["multiple_of"], new["multiple_of"]
    text = f"the range of {name}: {_range_text(old)} becomes {_range_text(new)}"
    if lows[1] > lows[0] or highs[1] < highs[0] or units[0] % units[1]:
        yield _breaking(text)
    elif (lows, highs, units[0]) != ([lows[1]] * 2, [highs[1]] * 2, units[1]):
        yield _additive(text)


def _range_text(symbol: _Facts) -> str:
    low, high = ("any" if symbol[k] is None else symbol[k] for k in ("lower", "upper"))
    unit = f" in steps of {symbol['multiple_of']}" if symbol["multiple_of"] > 1 else ""
    return f"{low} to {high}{unit}"


def _states(old: _Facts, new: _Facts) -> Iterator[Difference]:
    before, now = (f.get("states", {"symbols": [], "params": []}) for f in (old, new))
    params = [{p["name"]: p["annotation"] for p in s["params"]} for s in (before, now)]
    if params[0] != params[1] or before["symbols"] != now["symbols"]:
        texts = [", ".join(f"{k}: {v}" for k, v in found.items()) or "none" for found in params]
        yield _breaking(f"states ({texts[0]}) become ({texts[1]})")


def _kernels(old: _Facts, new: _Facts) -> Iterator[Difference]:
    """Compare kernels of GPUs, which a caller launches with the parameters of the manifest."""
    keys = ("file", "entry", "parameters", "grid", "block", "dynamic_shared", "requires")
    before, now = _named(old.get("kernels", [])), _named(new.get("kernels", []))
    for name in before.keys() - now.keys():
        yield _breaking(f"kernel {name!r} is removed")
    for name in now.keys() - before.keys():
        yield _additive(f"kernel {name!r} is added")
    for name in before.keys() & now.keys():
        for key in keys:
            if before[name].get(key) != now[name].get(key):
                yield _breaking(f"kernel {name!r}: {key} differs")


def _contents(old: _Facts, new: _Facts) -> Iterator[Difference]:
    for key in ("made_by", "target", "weights_layout", "weights_bytes", "metadata"):
        if old.get(key) != new.get(key):
            yield _compatible(f"{key}: {old.get(key)} becomes {new.get(key)}")
    for key in ("program", "trace", "weights_schema"):
        if old.get(key) != new.get(key):
            yield _compatible(f"the {key.replace('_', ' of ')} differs")
