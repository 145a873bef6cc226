"""The memory of processes that run an exported MiniLM: the part ``memory`` of ``exports``.

A C program and plain Python map the packed weights, open the model without verification, and call
it. *Private* is the memory that each process has alone (private dirty pages), *arena* the peak of
the bytes that the library allocated. The share of a process in memory that several processes map is
its proportional set size (PSS).
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import tilewright as tw
from tilewright.codegen.export.link import run_linker

from .harness import table

PROGRAMS = Path(__file__).parents[1] / "codegen" / "export" / "programs"
CALLS, SHAPE = 20, (1, 32)
STARTS, PROCESSES = 9, 4
MB = 1e6
PRIVATE, SHARE, FILE = 6 * MB, 8 * MB, 1.05 * 90 * MB
"""The limits: private bytes beside the arena, private share of a process, bytes of the file."""


def rollup(pid: int, field: str) -> int:
    """Return a field of the memory map of a process in bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def built(folder: Path) -> list[str]:
    """Compile the C program and return its command without the path of the results."""
    made = folder / "memory"
    run_linker(["cc", "-O1", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{folder}",
                str(PROGRAMS / "memory.c"), f"-L{folder}", "-lminilm", f"-Wl,-rpath,{folder}",
                "-o", str(made)])  # fmt: skip
    return [str(made), str(folder / "minilm.safetensors")]


def started(command: Sequence[str], out: Path) -> tuple[subprocess.Popen[str], list[float]]:
    """Start a program, and return it and its figures once it has called the model."""
    numbers = [str(n) for n in (CALLS, *SHAPE)]
    process = subprocess.Popen(
        [*command, str(out), *numbers],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    return process, list(map(float, process.stdout.readline().split()))


def ended(process: subprocess.Popen[str]) -> None:
    """Let a program end."""
    process.communicate()
    if process.returncode:
        message = f"the program ended with {process.returncode}"
        raise RuntimeError(message)


def c_process(folder: Path, work: Path, starts: int) -> dict[str, float]:
    """Return the medians of the figures of one C process at a time."""
    command, rows = built(folder), list[list[float]]()
    for _ in range(starts):
        process, figures = started(command, work / "c")
        rows.append([*figures, rollup(process.pid, "Private_Dirty")])
        ended(process)
    mapped, opened, first, call, arena, private = map(statistics.median, zip(*rows, strict=True))
    return {
        "map_us": mapped,
        "open_us": opened,
        "first_call_us": first,
        "call_us": call,
        "first_call_ratio": statistics.median(row[2] / row[3] for row in rows),
        "arena_bytes": arena,
        "private_bytes": private,
    }


def python_process(folder: Path, work: Path, starts: int) -> dict[str, float]:
    """Return the medians of the figures of one Python process at a time."""
    command = [sys.executable, "-I", str(PROGRAMS / "memory.py"), str(folder)]
    rows: list[list[float]] = []
    for _ in range(starts):
        process, figures = started(command, work / "python")
        rows.append(figures)
        ended(process)
    opened, first, call, gained = map(statistics.median, zip(*rows, strict=True))
    return {"open_us": opened, "first_call_us": first, "call_us": call, "private_bytes": gained}


def together(folder: Path, work: Path) -> int:
    """Return the sum of the proportional set sizes of processes that run at the same time."""
    command = built(folder)
    with ExitStack() as stack:
        processes = []
        for k in range(PROCESSES):
            process, _ = started(command, work / f"c{k}")
            stack.callback(ended, process)
            processes.append(process)
        return sum(rollup(p.pid, "Pss") for p in processes)


def results(folder: Path, out: Path) -> bytes:
    """Return the bytes of the results of the C program."""
    process, _ = started(built(folder), out)
    ended(process)
    return out.read_bytes()


def measure_memory(module: tw.Module, work: Path, starts: int = STARTS) -> dict[str, float]:
    """Export the model with packed and with plain weights, measure, and print the table.

    The figures of one process are the medians of ``starts`` processes.
    """
    target = tw.Target("cpu", threads=1)
    packed, plain = (
        tw.export(
            module, work / layout, target=target, kind="shared", name="minilm", weights=layout
        ).directory
        for layout in ("packed", "plain")
    )
    file = packed / "minilm.safetensors"
    size = file.stat().st_size
    in_c, in_python = c_process(packed, work, starts), python_process(packed, work, starts)
    pss, equal = together(packed, work), results(packed, work / "a") == results(plain, work / "b")
    opened = readable(file)
    mb = f"{in_c['arena_bytes'] / MB:.1f}"
    rows: list[tuple[str, float, float, str]] = [
        ("C: private MB beside the arena", (in_c["private_bytes"] - in_c["arena_bytes"]) / MB,
         PRIVATE / MB, f"arena {mb} MB"),
        ("Python: private MB since load, beside the arena",
         (in_python["private_bytes"] - in_c["arena_bytes"]) / MB, PRIVATE / MB, f"arena {mb} MB"),
        (f"PSS of {PROCESSES} C processes, MB", pss / MB,
         (1.1 * size + PROCESSES * SHARE) / MB, f"file {size / MB:.1f} MB"),
        ("open, trusted and warm, ms", in_c["open_us"] / 1e3, 2.0,
         f"map {in_c['map_us'] / 1e3:.2f} ms before"),
        ("first call / median call", in_c["first_call_ratio"], 1.5,
         f"median {in_c['call_us'] / 1e3:.2f} ms"),
        ("weights file, MB", size / MB, FILE / MB, f"{opened} tensors read by safetensors"),
        ("results that differ from plain weights", float(not equal), 0.0, ""),
    ]  # fmt: skip
    table(
        f"Memory of exported MiniLM after {CALLS} calls of {SHAPE[0]}x{SHAPE[1]}",
        ("figure", "measured", "limit", "reached", "note"),
        [
            [name, f"{value:.2f}", f"{limit:.2f}", "yes" if value <= limit else "no", note]
            for name, value, limit, note in rows
        ],
    )
    figures = {f"c_{k}": v for k, v in in_c.items()}
    figures |= {f"python_{k}": v for k, v in in_python.items()}
    return figures | {"pss_bytes": pss, "weights_bytes": size, "equal_to_plain": float(equal)}


def readable(file: Path) -> int:
    """Return the number of tensors that the package ``safetensors`` reads from a file."""
    from safetensors.numpy import load_file

    tensors = load_file(file)
    return sum(bool(np.size(a)) for a in tensors.values())
