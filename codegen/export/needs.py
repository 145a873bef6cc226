"""The memory that calls of an exported library need, computed by the library itself."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ...ir.symbolic import Expr, Var, as_expr, evaluate, parse_expr, var
from .inspection import Description, InspectionError


@dataclass(frozen=True, slots=True)
class Needs:
    """The memory of a call in bytes, and the shapes of its results by name.

    ``exact`` is whether the call allocates nothing else. A dimension that depends on elements of
    arguments is -1.
    """

    function: str
    workspace_bytes: int
    state_bytes: int
    exact: bool
    results: Mapping[str, tuple[int, ...]]

    def __str__(self) -> str:
        """Return the needs as one line."""
        shapes = ", ".join(f"{name} {list(shape)}" for name, shape in self.results.items())
        state = f", state {self.state_bytes} bytes" if self.state_bytes else ""
        more = "" if self.exact else ", and memory whose size depends on data"
        results = f"; results {shapes}" if shapes else ""
        return f"{self.function}: workspace {self.workspace_bytes} bytes{state}{more}{results}"


def needs_of(folder: Path, description: Description, sizes: Mapping[str, int]) -> list[Needs]:
    """Return the needs of the functions of a shared library of which all sizes are given.

    Parameters
    ----------
    folder : Path
        The exported directory. Its library is loaded, and its model opened.
    description : Description
        Its description.
    sizes : Mapping of str to int
        The values of symbols.

    Raises
    ------
    InspectionError
        If the export is not a shared library, or every function has other symbols.
    """
    if description.facts["kind"] != "shared" or not folder.is_dir():
        raise InspectionError(
            "the needs of calls require the directory of a shared library",
            hint="export with kind='shared', and name the directory",
        )
    loader = _loader(folder, description.name)
    functions = description.functions
    missing = {
        name: [s["name"] for s in f["symbols"] if s["known_at_entry"] and s["name"] not in sizes]
        for name, f in functions.items()
    }
    if all(missing.values()):
        names = list(dict.fromkeys(name for found in missing.values() for name in found))
        raise InspectionError(f"no sizes of {', '.join(names)}", hint=f"pass {names[0]}=8")
    try:
        model = loader.load(folder, threads=1)
        try:
            return [
                _needs(model, facts, description, sizes)
                for name, facts in functions.items()
                if not missing[name]
            ]
        finally:
            model.close()
    except loader.ModelError as error:
        raise InspectionError(f"{folder}: {error}") from error


def _loader(folder: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    if spec is None or spec.loader is None:
        raise InspectionError(f"{folder} has no file {name}.py")
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    return loader


def _needs(
    model: Any, facts: Mapping[str, Any], whole: Description, sizes: Mapping[str, int]
) -> Needs:
    params = [p for p in facts["params"] if p["access"] != "state"]
    shapes: dict[str, object] = {
        p["name"]: sizes.get(p["name"], 0)
        if p["form"] == "integer"
        else shape_of(p["shape"], sizes)
        for p in params
    }
    if len(params) < len(facts["params"]):
        shapes |= {s: sizes.get(s, 1) for s in whole.facts["states"]["symbols"]}
    return Needs(facts["name"], **model.needs(facts["name"], **shapes))


def shape_of(dims: Sequence[str], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the dimensions of a shape for values of symbols.

    Examples
    --------
    >>> shape_of(["n * 2 + 1", "24"], {"n": 3})
    (7, 24)
    """
    symbols: dict[str, Var] = {name: var(name) for name in sizes}
    values = {symbols[name]: size for name, size in sizes.items()}
    terms = (as_expr(cast("Expr", parse_expr(text, symbols))) for text in dims)
    return tuple(evaluate(term, values) for term in terms)
