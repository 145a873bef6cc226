"""Integer terms in C have the values of the terms."""

from __future__ import annotations

import itertools
import subprocess

from tilewright.codegen.export.c_terms import FUNCTIONS, c_term
from tilewright.codegen.export.link import run_linker
from tilewright.ir.symbolic import (
    all_of,
    any_of,
    ceildiv,
    eq,
    evaluate,
    maximum,
    minimum,
    ne,
    select,
    var,
)

VALUES = (-7, -1, 0, 1, 5, 64)


def test_terms_in_c_have_the_same_values(tmp_path):
    n, m = var("n"), var("m")
    conditions = [n <= m, n < 3, ne(n, m), eq(n, m), all_of(n <= m, m < 9), any_of(n < 0, m <= 1)]
    terms = [
        n, n * 4 - m + 7, n * m * 2, n // 3, n % 5, (n - 4) // -3, ceildiv(n, 8) * 256,
        minimum(n, m, 3), maximum(n, m * 2), *(select(c, n, m + 1) for c in conditions),
        (n + m) // maximum(m, 1),
    ]  # fmt: skip
    names = {n: "s[0]", m: "s[1]"}
    lines = [f'    printf("%lld\\n", (long long)({c_term(t, names)}));' for t in terms]
    rows = ", ".join(f"{{{a}, {b}}}" for a, b in itertools.product(VALUES, VALUES))
    program = "\n".join(
        [
            "#include <stdint.h>\n#include <stdio.h>", FUNCTIONS,
            f"static const int64_t rows[][2] = {{{rows}}};", "int main(void) {",
            f"  for (int k = 0; k < {len(VALUES) ** 2}; k++) {{", "    const int64_t *s = rows[k];",
            *lines, "  }", "  return 0;", "}",
        ]
    )  # fmt: skip
    source, made = tmp_path / "terms.c", tmp_path / "terms"
    source.write_text(program, encoding="utf-8")
    run_linker(["cc", "-O1", "-std=c11", str(source), "-o", str(made)])
    done = subprocess.run([made], capture_output=True, text=True, check=True)
    found = [int(line) for line in done.stdout.split()]
    wanted = [
        int(evaluate(term, {n: a, m: b}))
        for a, b in itertools.product(VALUES, VALUES)
        for term in terms
    ]
    assert found == wanted
