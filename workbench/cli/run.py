"""The commands ``compile``, ``run`` and ``bench``."""

from __future__ import annotations

import argparse
import time
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ...codegen.measure.measure_options import MeasureOptions
from ...errors import Json
from ...ir.loop.nodes import BufferParam, PrimFunc
from ...ir.module import Array, Function
from ...progress import progress_of
from ...schedules import Schedule
from ..bench import Bench, as_tuple
from ..inputs import sample_inputs, shapes_text
from ..jobs import Progress
from ..protocol import Measurement, Verdict
from ..protocol_runs import KernelTime
from ..serialization import to_plain
from ..symbols import samples_of, symbols_of
from .command import (
    Command,
    CommandError,
    Output,
    chosen_sizes,
    chosen_target,
    natural,
    program_arguments,
    size_arguments,
    target_arguments,
    writing,
)
from .programs import InputFileError, chosen_function, is_file, load_schedule, missing_file

if TYPE_CHECKING:
    from ...codegen import Executable


_NPZ: Final = "write arrays of numbers with np.savez(path, name=array)"


def _build(options: argparse.Namespace) -> tuple[Schedule, Executable, float]:
    from ...codegen import compile

    target = chosen_target(options)
    schedule = load_schedule(options, target)
    started = time.perf_counter()
    executable = compile(schedule.state, target, verbose=bool(options.verbose))
    return schedule, executable, time.perf_counter() - started


def _samples(options: argparse.Namespace, schedule: Schedule, function: Function) -> dict[str, int]:
    samples = dict(samples_of(schedule.module, function, {}))
    return samples | chosen_sizes(options, symbols_of(function))


def _verbose_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="write phases and kernels with their times to standard error",
    )


def _compile_arguments(parser: argparse.ArgumentParser) -> None:
    program_arguments(parser)
    target_arguments(parser)
    _verbose_argument(parser)
    parser.add_argument(
        "--emit",
        choices=("llvm", "assembly", "sass"),
        help="print this text instead: LLVM IR, assembly, or GPU machine code (sass)",
    )
    parser.add_argument(
        "--kernel", metavar="NAME", help="kernel to print with --emit (default: the host flow)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the artifact to this file")


def _compile(options: argparse.Namespace) -> Output:
    from ...codegen.nvidia import resource_table

    _, executable, seconds = _build(options)
    if options.emit:
        emitters = {
            "llvm": executable.llvm,
            "assembly": executable.assembly,
            "sass": executable.sass,
        }
        text = emitters[options.emit](options.kernel)
        return Output(text, {"kernel": options.kernel, options.emit: text})
    artifact = executable.artifact
    sizes = {n: len(data) for n, data in (*artifact.objects.items(), *artifact.images.items())}
    lines = [f"compiled for {executable.target} in {seconds:.2f} s"]
    lines += [f"  {size:>9,} B  {name or '(host flow)'}" for name, size in sorted(sizes.items())]
    compiled = sorted(artifact.images) if executable.target.is_cuda else []
    used = {name: executable.image(name).resources for name in compiled}
    lines += ["", resource_table(used)] if used else []
    if options.output:
        data = artifact.to_bytes()
        with writing(options.output):
            Path(options.output).write_bytes(data)
        lines.append(f"written to {options.output} ({len(data):,} B)")
    return Output(
        "\n".join(lines),
        {
            "seconds": seconds,
            "target": str(executable.target),
            "objects": dict(sizes),
            "resources": {n: None if r is None else asdict(r) for n, r in used.items()},
        },
    )


COMPILE = Command("compile", "compile a program", _compile_arguments, _compile)


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    program_arguments(parser)
    target_arguments(parser)
    _verbose_argument(parser)
    size_arguments(parser)
    parser.add_argument(
        "--inputs",
        metavar="FILE.npz",
        help="arguments by parameter name (default: random arguments)",
    )
    parser.add_argument(
        "--save", metavar="FILE.npz", help="write the results and the states to this file"
    )
    parser.add_argument(
        "--seed", type=natural, default=0, help="seed of the random arguments (default: 0)"
    )


def _run(options: argparse.Namespace) -> Output:
    schedule, executable, _ = _build(options)
    function = chosen_function(schedule.module, options.function)
    if options.inputs:
        arguments = _load_arguments(Path(options.inputs), function)
        source = options.inputs
    else:
        samples = _samples(options, schedule, function)
        arguments = sample_inputs(function, samples, options.seed)
        source = f"random arguments, {shapes_text(samples)}"
    chosen = executable[function.name]
    results = as_tuple(chosen.invoke(arguments))
    names = _result_names(function, len(results))
    if options.save:
        arrays = cast("dict[str, Any]", dict(zip(names, results, strict=True)))
        pairs = zip(chosen.spec.params, arguments, strict=True)
        arrays |= {p.name: a for p, a in pairs if p.access == "state" and p.name not in arrays}
        with writing(options.save):
            np.savez(options.save, **arrays)
    summaries = [_summary(name, array) for name, array in zip(names, results, strict=True)]
    lines = [f"{function.name}: {source}", *map(_summary_line, summaries)]
    return Output("\n".join(lines), {"function": function.name, "results": cast("Json", summaries)})


def _load_arguments(path: Path, function: Function) -> tuple[Array | int, ...]:
    """Return the arguments in a file, in the order of the parameters."""
    if not is_file(path):
        raise missing_file("file", str(path))
    names = _parameter_names(function)
    if not zipfile.is_zipfile(path):
        raise InputFileError(
            "expected an .npz file, got a file that is not a ZIP archive or is truncated",
            where=str(path),
            hint=_NPZ,
        )
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive]
            if missing:
                raise CommandError(
                    f"the file does not contain {', '.join(missing)}",
                    where=str(path),
                    hint=f"parameters are {', '.join(names)}; the file contains "
                    f"{', '.join(archive) or 'nothing'}",
                )
            arrays = cast("Mapping[str, Array]", archive)
            return tuple(np.ascontiguousarray(arrays[name]) for name in names)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, zlib.error, MemoryError) as error:
        raise InputFileError(
            f"an array of the file cannot be read: {error}", where=str(path), hint=_NPZ
        ) from error


def _parameter_names(function: Function) -> list[str]:
    if isinstance(function, PrimFunc):
        buffers = [p for p in function.params if isinstance(p, BufferParam)]
        return [p.buffer.name for p in buffers if p.access != "out"]
    return [p.value.name for p in function.params]


def _result_names(function: Function, count: int) -> list[str]:
    names = () if isinstance(function, PrimFunc) else function.result_names
    return list(names) if len(names) == count else [f"result_{k}" for k in range(count)]


def _summary(name: str, array: Array) -> dict[str, Json]:
    values = array.astype(np.float64)
    return {
        "name": name,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "mean": float(values.mean()) if values.size else None,
        "min": float(values.min()) if values.size else None,
        "max": float(values.max()) if values.size else None,
    }


def _summary_line(summary: Mapping[str, Json]) -> str:
    head = f"  {summary['name']}: {summary['dtype']}{summary['shape']}"
    if summary["mean"] is None:
        return head
    return f"{head}  mean {summary['mean']:.6g}, min {summary['min']:.6g}, max {summary['max']:.6g}"


RUN = Command("run", "compile and run a function", _run_arguments, _run)


def _bench_arguments(parser: argparse.ArgumentParser) -> None:
    program_arguments(parser)
    target_arguments(parser)
    size_arguments(parser)
    parser.add_argument(
        "--caches",
        choices=("hot", "cold"),
        default="hot",
        help="hot: as left by the previous call; cold: flushed before each call (default: hot)",
    )
    parser.add_argument("--pin", action="store_true", help="pin each thread to a separate core")
    parser.add_argument(
        "--budget", type=float, default=1.5, help="maximum sampling time in seconds (default: 1.5)"
    )
    parser.add_argument(
        "--no-check",
        action="store_true",
        help="skip the comparison with the interpreter, which is slow",
    )


def _bench(options: argparse.Namespace) -> Output:
    target = chosen_target(options)
    measure_options = MeasureOptions(options.caches, pin=options.pin, budget=options.budget)
    schedule = load_schedule(options, target)
    function = chosen_function(schedule.module, options.function)
    samples = _samples(options, schedule, function)
    bench, head = Bench(target), schedule.head
    with progress_of("measuring") as report:
        measurement = bench.measure(head, function.name, samples, Progress(report), measure_options)
    verdict = None
    if not options.no_check:
        root = next(n for n in schedule.history if n.parent is None).state.module
        with progress_of("verifying") as report:
            verdict = bench.verify(head, root, function.name, samples, Progress(report))
    data = cast("dict[str, Json]", to_plain(measurement))
    verdict_data = None if verdict is None else to_plain(verdict)
    code = 1 if verdict is not None and not verdict.agrees else 0
    return Output(_table(measurement, verdict), {**data, "verdict": verdict_data}, code)


def _table(measurement: Measurement, verdict: Verdict | None) -> str:
    m = measurement
    summary = (
        f"{m.function} at {m.shapes}: median {m.median:.1f} µs of {len(m.samples)} calls, "
        f"95 % confidence interval {m.low:.1f} to {m.high:.1f}; compiled in {m.compile_ms:.0f} ms"
    )
    busy = "" if m.alone else "; another measurement ran at the same time"
    lines = [summary, f"conditions: {m.conditions}{busy}", *_verdict_lines(verdict)]
    lines.append(f"{'kernel':<40} {'calls':>5} {'µs':>11} {'share':>7}")
    return "\n".join([*lines, *_rows(m.kernels)])


def _verdict_lines(verdict: Verdict | None) -> list[str]:
    if verdict is None:
        return []
    result = "matches the interpreter" if verdict.agrees else "DIFFERS from the interpreter"
    return [f"{result}: {verdict.message}"]


def _rows(kernels: Sequence[KernelTime]) -> list[str]:
    return [
        f"{k.function:<40} {k.calls:>5} {k.microseconds:>11.1f} {k.share:>7.1%}" for k in kernels
    ]


BENCH = Command("bench", "measure a function and its kernels", _bench_arguments, _bench)
