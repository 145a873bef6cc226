"""Traces of composite steps, as a page of the documentation.

``python -m tilewright.schedules.trace_examples > docs/traces.md`` writes the committed page.
"""

from __future__ import annotations

import sys
from typing import Final

from ..ir.script import parse
from ..target.target import Target
from .problem import StepError
from .python_text import to_python
from .schedule import Schedule
from .text import to_json
from .trace import Trace

MATMUL: Final = """
m = symbols("m", lower=1)

@graph_func
def main(x: Tensor[(m, 64), f32], w: Tensor[(64, 96), f32]):
    y = matmul(x, w)
    z = relu(y)
    return z
"""

COPY: Final = """
@prim_func
def transpose(x: Buffer[(64, 64), f32], y: Out[(64, 64), f32]):
    for i in range(64):
        for j in range(64):
            y[j, i] = x[i, j]
"""

CPU: Final = Target("cpu", features=("avx512",))
GPU: Final = Target("cuda", arch="sm_90a")

_PAGE: Final = '''# Traces

A trace is the list of the steps that were applied to a program. Each step is a call of a method of
`tilewright.Schedule`. Its operands are literals or results of earlier steps: a trace contains no
reference to a particular program, and replays on another shape or another module. Parts of the
program that were selected with the mouse, or by name, are looked up by steps such as `get_block`,
which are recorded too.

A trace is text in two formats, with one step per line: Python, which is easy to read and to edit,
and JSON, which also contains the choices that depended on proofs. Neither is executed when it is
loaded.

```python
text = str(sch.trace)                       # Python
trace = tilewright.schedules.from_python(text)
outcome = other.replay(trace)               # stops at the first step that does not apply
```

The results of a step are handles, integers, or symbolic terms, and all of them are operands of
later steps: `sch.split(j, factors=(None, sch.get_extent(i)))` is recorded with the result of
`get_extent`, and is replayed with the extent of the loop that it is replayed on. An operation on an
integer, such as `extent // 2`, is a literal.

## Replay on another kernel

Functions are looked up first, and all other lookups refer to them: loops and buffers are looked up
by a block that they contain or that accesses them. So a trace replays on a kernel with other names:

- If the program has no function of the recorded name, but only one loop-level function, the trace
  is applied to that one. `sch.replay(trace, names={"matmul": "dense"})` names another one.
- If the function has no block of the recorded name, it is the block of the same form: the same
  kinds of iteration variables, and the same operations. JSON contains the form of each block; in a
  trace that was read as Python, it is the only block of the function, or one of `names`.

`outcome.renamed` lists these lookups. A replay stops at the first step that does not apply;
`sch.replay(trace, skip=True)` continues without it and without the steps that use its results.
`print(outcome)` shows each step that did not apply, with the reason. `trace.pruned()` is the trace
without lookups whose results no step uses; the workbench saves this trace, in JSON with the pending
steps after it.

A search replays many traces that start with the same steps. With
`memo = tilewright.schedules.PrefixMemo()`, `replay(state, trace, memo=memo)` applies only the steps
after the longest prefix that was replayed from the same state before.

## Notes

A trace in JSON may contain notes on its states. The workbench saves those from the initial state to
the head, and those on the pending steps, such as the purpose of a step and the finding:

```python
text = tilewright.schedules.to_json(sch.trace, {0: "as written", 5: "rows of 8"})
tilewright.schedules.notes_from_json(text)  # {0: 'as written', 5: 'rows of 8'}
```

Their keys are the numbers of steps that lead to the states. A note is the field `"note"` of the
line of the last step before its state, of the outermost group that ends with this step, or of the
header:

```text
{"trace": "tilewright", "schema": 1, "note": "as written"}
```

`from_json` ignores the notes, as it ignores all fields that it does not know: a file with notes can
be read by versions of Tilewright that do not know them, and a file without notes is still valid.
Python text does not contain notes. `sch.replay(trace, versions=notes)` replays a trace so that each
state with a note is a version of the history; otherwise all its steps are one version. When the
workbench loads a file, it shows the notes on these versions; those on steps that do not apply are
kept with the pending steps.

## Random decisions

`sample_perfect_tile`, `sample_partitioned_tile`, `sample_categorical`, and
`sample_compute_location` draw tile sizes, an integer, or a loop at random, and do not change the
program. Later steps use their results:

```python
sch = tilewright.Schedule(module, seed=1)
outer, inner = sch.sample_perfect_tile("i", n=2)
sch.split("i", factors=(outer, inner))
```

The trace contains the drawn sizes as the argument `decision`, in Python as in JSON:

```python
size, size_2 = sch.sample_perfect_tile(loop=i, n=2, max_innermost_factor=16, decision=(8, 12))
i_0, i_1 = sch.split(loop=i, factors=(size, size_2))
```

A replay uses the decision, whatever the seed of the schedule, and so leads to the same code. A
decision that does not fit another program is an error that states the legal ones. Without the
argument, `trace.changed(k, decision=None)`, a replay draws a new decision.

## Similar kernels

`sch.apply_to_similar("matmul_1")` applies the steps of one kernel to all other unscheduled kernels
that accept them, and returns a report:

```text
kernel             accepted  steps     reason
-----------------  --------  --------  --------------------------------------------------
softmax            no        0 of 30   no block has the form 'spatial, spatial, reduce...'
fused_matmul_relu  yes       30 of 30
```

A kernel accepts the steps if it has a block of the form of the first block that they look up, and
every step is legal on it. Otherwise it is not changed. The steps of all kernels are recorded in the
trace, and are one version of the history. `to=[...]` limits the kernels.

## Composite steps

A composite step is a function of steps. The steps that it applies are recorded as one group. A
group is one version of the history, so one `undo` reverts it, and a composite step applies
completely or not at all.

The step `tile` splits two loops and reorders the results:

```python
i_0, j_0, i_1, j_1 = sch.tile("i", "j", sizes=(8, 16))
sch.vectorize(j_1)
```

The exact form of the trace contains every step. The steps of a group are indented below a line with
the arguments of the composite step. `sch.returns` states its results, which are those that later
steps can use:

```python
{exact}
```

The folded form contains one line per group:

```python
{folded}
```

Both forms parse. A replay of the exact form applies the recorded steps and does not run the
function `tile`, so it leads to the same program even if `tile` was changed since, or does not
exist. A replay of the folded form runs the function. In JSON, the line of a group precedes those of
its steps:

```text
{json}
```

`to_python(trace, fold=True)` returns the folded form, and `trace.folded()` the trace with each
group as one step. `trace.changed_group(k, sizes=(4, 4))` returns the trace in which group `k` runs
again with other arguments; later steps use its new results. `trace.ungrouped(k)` keeps only the
steps. A step that is inserted between two steps of a group belongs to the group. A group whose
steps were edited has the mark `"edited"` and is not folded, because the composite step would apply
other steps.

## Your own composite steps

The decorator `tilewright.composite` makes a step of a function, also in a notebook cell:

```python
import tilewright as tw
from tilewright.schedules import LoopRef

@tw.composite
def strip(sch, loop: LoopRef, lanes: int = 8) -> LoopRef:
    """Vectorize a part of a loop.

    Parameters
    ----------
    loop : LoopRef
        The loop.
    lanes : int
        The number of elements of a vector.
    """
    outer, inner = sch.split(loop, factors=(None, lanes))
    sch.vectorize(inner)
    return outer

outer = sch.strip("i", lanes=16)
```

The step has a method, a form in the menu, and a record in the trace, like a primitive. The
parameters are annotated with handles (`LoopRef`, `BlockRef`, `BufferRef`, `FunctionRef`,
`BindingRef`), `SymInt`, `IndexMap`, `bool`, `int`, `float`, `str`, `Literal`, and unions and tuples
of these. The result is None, a handle, or a tuple of handles. Running the cell again replaces the
step.

If a step of the function does not apply, nothing is applied. The error names the step by its
position in the group:

```text
{error}
```

`sch.check(step)` runs the function on a draft and returns the problems of that step. The function
may catch a `StepError` and try another step. A composite step that applies itself, directly or
through others, is rejected with the cycle.

## Features for search

`tilewright.ir.analysis.search_features.search_features(function, sizes)` describes a kernel to
a cost model without lowering it: one record per store with the iterations, the operations by
kind, the extents of the loops by kind, and for each buffer the accessed bytes, the unique bytes
of each loop depth, the reuse, and the stride of the innermost loop. `record.vector()` is a
tuple of floats in the order of `NAMES`, which does not depend on the kernel. With
`sch.launchable()`, which rejects a schedule before it is lowered
([gpu.md](gpu.md#problems-of-a-launch)), it takes milliseconds per kernel.

## The default schedule

`sch.default_schedule()` applies the steps of `tilewright.compile` as one composite step. For this
program:

```python
{matmul}
```

the folded trace is

```python
{default}
```

and without the outermost group

```python
{level}
```

The exact form for a CPU with 512-bit vectors:

```python
{cpu}
```

The exact form for an NVIDIA GPU of architecture sm_90a:

```python
{gpu}
```

Generated by `python -m tilewright.schedules.trace_examples`: do not edit.
'''


def default_trace(target: Target) -> Trace:
    """Return the trace of the default schedule of a matrix product."""
    schedule = Schedule(parse(MATMUL), target)
    schedule.default_schedule()
    return schedule.trace


def page() -> str:
    """Return the page.

    Examples
    --------
    >>> "sch.default_schedule()" in page()
    True
    """
    schedule = Schedule(parse(COPY))
    *_, inner = schedule.tile("i", "j", sizes=(8, 16))
    schedule.vectorize(inner)
    tiled, cpu = schedule.trace, default_trace(CPU)
    values = {
        "exact": to_python(tiled),
        "folded": to_python(tiled, fold=True),
        "json": to_json(tiled),
        "error": _error(),
        "matmul": MATMUL.strip(),
        "default": to_python(cpu, fold=True),
        "level": to_python(cpu.ungrouped(0), fold=True),
        "cpu": to_python(cpu),
        "gpu": to_python(default_trace(GPU)),
    }
    text = _PAGE
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _error() -> str:
    """Return the message of a composite step that fails in the middle."""
    schedule = Schedule(parse(COPY))
    try:
        schedule.tile("i", "j", sizes=(8, 0))
    except StepError as error:
        return str(error)
    raise TypeError("tile applied a split by 0")


if __name__ == "__main__":
    sys.stdout.write(page())
