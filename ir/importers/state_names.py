"""Names of inputs and outputs that a user pairs as state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...errors import TilewrightError
from ...nearest import listed


class StatePairError(TilewrightError):
    """A request to import an input and an output as one state that the model does not allow."""

    title = "Invalid state pair"


def matched_names(
    state: Mapping[str, str], inputs: Sequence[str], outputs: Sequence[str]
) -> dict[str, str]:
    """Return the output of each input that becomes a state.

    A key of ``state`` is the name of an input and its value that of an output, or both are
    prefixes: every input that continues the key is paired with the output of the same rest.

    Raises
    ------
    StatePairError
        If ``state`` is not a mapping of names, a name is unknown, or an input or output has no
        counterpart.

    Examples
    --------
    >>> matched_names({"past": "present"}, ["x", "past.0.key"], ["y", "present.0.key"])
    {'past.0.key': 'present.0.key'}
    """
    if not _has_names(state):
        raise StatePairError(
            f"expected a mapping of names of inputs to names of outputs, got {state!r}",
            where="argument 'state'",
            hint="pass a dict, for example state={'past': 'present'}",
        )
    found: dict[str, str] = {}
    for key, value in state.items():
        rests = _rests(key, inputs, "input")
        where = f"state={{{key!r}: {value!r}}}"
        for rest in rests:
            _require(value + rest, outputs, f"input {key + rest!r} has no output", where)
            found[key + rest] = value + rest
        for rest in _rests(value, outputs, "output"):
            _require(key + rest, inputs, f"output {value + rest!r} has no input", where)
    for name in found.values():
        users = [repr(k) for k, v in found.items() if v == name]
        if len(users) > 1:
            raise StatePairError(
                f"output {name!r} is paired with {len(users)} inputs: {', '.join(users)}",
                where="argument 'state'",
                hint="pair each input with an output of its own",
            )
    return found


def _has_names(state: Any) -> bool:
    """Return whether an argument is a mapping of strings to strings."""
    if not isinstance(state, Mapping):
        return False
    pairs = cast("Mapping[object, object]", state)
    return all(isinstance(name, str) for pair in pairs.items() for name in pair)


def _require(name: str, names: Sequence[str], problem: str, where: str) -> None:
    if name not in names:
        raise StatePairError(
            f"{problem} {name!r}; names are {listed(name, names)}",
            where=where,
            hint="pass names of inputs with names of outputs, or prefixes of both",
        )


def _rests(prefix: str, names: Sequence[str], kind: str) -> list[str]:
    """Return the rest of every name that a prefix begins: empty for an equal name."""
    if prefix in names:
        return [""]
    rests = [n.removeprefix(prefix) for n in names if prefix and n.startswith(prefix)]
    found = [r for r in rests if not (r[0].isalpha() and prefix[-1].isalpha())]
    if not found:
        raise StatePairError(
            f"no {kind} is named {prefix!r} or begins with it; {kind}s are {listed(prefix, names)}",
            where="argument 'state'",
            hint=f"pass the name of an {kind}, or a prefix of names",
        )
    return found
