"""Objects in notebook cells: static HTML that a saved notebook shows, and text beside it."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient

from tests.static_html import check_static

PROGRAM = '''
import numpy as np
import tilewright as tw

mod = tw.parse("""
n = symbols("n", lower=1)

@prim_func
def scale(x: Buffer[(n, 8), f32], y: Out[(n, 8), f32]):
    for i in range(n):
        for j in range(8):
            with block("y"):
                vi, vj = spatial(i), spatial(j)
                y[vi, vj] = x[vi, vj] * 2.0
""")
sch = tw.Schedule(mod)
i, j = sch.get_loops(sch.get_block("y"))
sch.vectorize(j)
exe = tw.compile(sch, "cpu")
x = np.ones((4, 8), np.float32)
'''

CELLS = {
    "mod": "def scale",
    "mod.prim('scale')": "def scale",
    "sch": "vectorized(8)",
    "sch.trace": "sch.vectorize",
    "sch.history": "sch.vectorize",
    "sch.diff()": "vectorized(8)",
    "sch.suggest(i)": "split",
    "sch.verify()": "bit for bit",
    "sch.show()": "def scale",
    "sch.show(highlight='i')": "def scale",
    "sch.show(i)": "loops inside",
    "exe": "machine code",
    "exe.explain()": "kernels of scale",
    "exe.explain('scale', {'n': 4})": "bytes of arguments at n = 4",
    "exe.memory({'n': 4})": "without sharing",
    "exe.profile(x, function='scale')": "median of 5 calls",
    "tw.measure(exe, x, budget=0.1)": "not checked",
}


@pytest.fixture(scope="module")
def outputs() -> dict[str, list]:
    """Return the outputs of each cell."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in (PROGRAM, *CELLS)]
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return {cell.source: cell.outputs for cell in notebook.cells}


@pytest.mark.parametrize("source", CELLS)
def test_a_cell_shows_static_html(outputs, source):
    output = outputs[source][-1]
    assert CELLS[source] in check_static(output.data["text/html"])
    assert output.data["text/plain"]
