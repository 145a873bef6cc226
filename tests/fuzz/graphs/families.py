"""The families of random graph programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.graphs import operators, selection, states, structures
from tests.fuzz.graphs.attention import ATTENTION
from tests.fuzz.graphs.foreign import FOREIGN
from tests.fuzz.graphs.images import IMAGES
from tests.fuzz.graphs.loops import LOOPS
from tests.fuzz.graphs.maker import GraphMaker
from tests.fuzz.graphs.operators import ALL, DENSE, ELEMENTWISE, INDEXING, MOVEMENT
from tests.fuzz.graphs.selection import SELECTION
from tests.fuzz.graphs.states import STATEFUL, UPDATES
from tests.fuzz.graphs.structures import STRUCTURES

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from tests.fuzz.graphs.operators import Draw
    from tests.fuzz.graphs.program import GraphProgram


COMMON: tuple[Draw, ...] = (
    operators.product_of_input, structures.duplicate, selection.ordered,
)  # fmt: skip
"""Parts of programs of all families, for steps that need them."""

SHARE = 0.3
"""The share of programs with each of these parts."""


def drawn(
    rng: random.Random, family: str, draws: Mapping[Draw, int], *, rounding: float = 0.25
) -> GraphProgram:
    """Draw a program of some kinds of operators."""
    while True:
        m = GraphMaker(rng, rounding=rng.random() < rounding)
        m.updates = UPDATES if states.create in draws else {}
        for _ in range(rng.randint(1, 2)):
            m.param(m.shape(1, 2, 2, 3), m.dtype())
        structures.grow(m, rng.randint(3, 12), draws)
        for part in COMMON:
            if rng.random() < SHARE:
                part(m)
        if len(m.scope.lines) >= 3:
            return m.program(family, results(m))


def results(m: GraphMaker) -> list[str]:
    """Draw the results: last values, others, inputs, views of inputs, constants, repeated ones."""
    rng, values = m.rng, m.scope.values
    unused = [t for t in values if not any(_uses(line, t.text) for line in m.scope.lines)]
    found = [t.text for t in unused[-3:]] or [values[-1].text]
    if rng.random() < 0.3:
        found.append(rng.choice(values).text)
    if rng.random() < 0.15:
        x = rng.choice(values)
        found.append(x.text)
        viewed = m.emit("reshape", x, (operators.product(x.shape),))
        found += [viewed.text] if viewed is not None else []
    if rng.random() < 0.1 and m.constants:
        key = rng.choice(list(m.constants))
        found.append(f'const("{key}")')
    if rng.random() < 0.1:
        found.append(found[0])
    rng.shuffle(found)
    return found


def _uses(line: str, name: str) -> bool:
    return name in line.replace("(", " ").replace(")", " ").replace(",", " ").split()[1:]


def elementwise(rng: random.Random) -> GraphProgram:
    """Draw chains of element-wise operators of several dtypes."""
    return drawn(rng, "elementwise", {**ELEMENTWISE, operators.reduction: 1})


def dense(rng: random.Random) -> GraphProgram:
    """Draw products with weights, reductions and norms."""
    return drawn(rng, "dense", {**ELEMENTWISE, **{d: 3 * w for d, w in DENSE.items()}})


def rounded(rng: random.Random) -> GraphProgram:
    """Draw programs with rounding: softmax, norms, and elementary functions."""
    return drawn(rng, "rounded", {**ELEMENTWISE, **DENSE, operators.norm: 6}, rounding=1.0)


def views(rng: random.Random) -> GraphProgram:
    """Draw movements of elements and views."""
    return drawn(rng, "views", {**MOVEMENT, operators.unary: 1, operators.binary: 1}, rounding=0)


def indexing(rng: random.Random) -> GraphProgram:
    """Draw gathers, scatters and positions."""
    heavy = {d: 3 * w for d, w in INDEXING.items()}
    return drawn(rng, "indexing", {**heavy, **ELEMENTWISE, operators.transpose: 1}, rounding=0)


def branches(rng: random.Random) -> GraphProgram:
    """Draw branches, also inside of each other."""
    return drawn(rng, "branches", {**ELEMENTWISE, structures.fork: 8, operators.matmul: 1})


def layered(rng: random.Random) -> GraphProgram:
    """Draw identical layers: calls of graph functions, and repeated operators."""
    return drawn(rng, "layered", {**ELEMENTWISE, structures.layers: 4, structures.again: 4})


def called(rng: random.Random) -> GraphProgram:
    """Draw calls of hand-written loop-level functions between operators."""
    return drawn(rng, "called", {**ELEMENTWISE, **MOVEMENT, structures.call: 12}, rounding=0.1)


def refined(rng: random.Random) -> GraphProgram:
    """Draw inputs without shapes, and annotations that are refined at run time."""
    draws = {**ELEMENTWISE, **MOVEMENT, structures.refine: 5, structures.unknown_shape: 5}
    return drawn(rng, "refined", {**draws, operators.matmul: 1})


def stateful(rng: random.Random) -> GraphProgram:
    """Draw states that operators, kernels and graph functions update."""
    draws = {**ELEMENTWISE, **{d: 3 * w for d, w in STATEFUL.items()}, structures.fork: 2}
    return drawn(rng, "stateful", {**draws, operators.reduction: 1}, rounding=0.1)


def caches(rng: random.Random) -> GraphProgram:
    """Draw a state that is updated at positions and read by products, as in decoders."""
    draws = {operators.matmul: 3, operators.batched: 2, operators.gather: 2, operators.binary: 3}
    return drawn(rng, "caches", {**draws, states.create: 3, states.put: 4, states.stored: 4,
                                 states.shift: 2, operators.cut: 1}, rounding=0.2)  # fmt: skip


def images(rng: random.Random) -> GraphProgram:
    """Draw convolutions, pooling, and padding."""
    heavy = {d: 4 * w for d, w in IMAGES.items()}
    draws = {**ELEMENTWISE, **heavy, operators.reduction: 1, operators.reshape: 1}
    return drawn(rng, "images", draws, rounding=0.3)


def selected(rng: random.Random) -> GraphProgram:
    """Draw sorting, and results whose sizes depend on the data."""
    heavy = {d: 4 * w for d, w in SELECTION.items()}
    draws = {**ELEMENTWISE, **heavy, operators.gather: 2, operators.reduction: 2}
    return drawn(rng, "selected", {**draws, operators.concat: 1}, rounding=0)


def foreign(rng: random.Random) -> GraphProgram:
    """Draw custom operators and library functions between operators."""
    heavy = {d: 4 * w for d, w in FOREIGN.items()}
    return drawn(rng, "foreign", {**ELEMENTWISE, **heavy, operators.matmul: 2}, rounding=0.1)


def repeated(rng: random.Random) -> GraphProgram:
    """Draw loops of the graph, some with states."""
    more = {**STATEFUL, states.create: 4} if rng.random() < 0.4 else {}
    draws = {**ELEMENTWISE, **{d: 6 * w for d, w in LOOPS.items()}, operators.reduction: 1}
    return drawn(rng, "repeated", {**draws, **more}, rounding=0)


def products(rng: random.Random) -> GraphProgram:
    """Draw products of matrices, which libraries, instructions and tiles of threads compute."""
    draws = {operators.product_of_input: 3, operators.binary: 2, operators.unary: 1}
    return drawn(rng, "products", {**draws, operators.norm: 1}, rounding=0.1)


def attending(rng: random.Random) -> GraphProgram:
    """Draw attention between element-wise operators and products."""
    draws = {**ATTENTION, operators.binary: 2, operators.unary: 1, operators.matmul: 1}
    return drawn(rng, "attending", draws, rounding=1.0)


def scanned(rng: random.Random) -> GraphProgram:
    """Draw running sums, maxima and minima."""
    draws = {operators.running: 6, operators.binary: 3, operators.unary: 1}
    return drawn(rng, "scanned", {**draws, operators.reduction: 1}, rounding=0.1)


def mixed(rng: random.Random) -> GraphProgram:
    """Draw operators and structures of every kind."""
    more = STATEFUL if rng.random() < 0.3 else {}
    for part in (IMAGES, SELECTION, FOREIGN, LOOPS):
        more = {**more, **part} if rng.random() < 0.3 else more
    return drawn(rng, "mixed", {**ALL, **STRUCTURES, **more})


FAMILIES: Mapping[str, Callable[[random.Random], GraphProgram]] = {
    f.__name__: f
    for f in (elementwise, dense, rounded, views, indexing, branches, layered, called, refined,
              stateful, caches, images, selected, foreign,
              repeated, products, attending, scanned, mixed)
}  # fmt: skip
