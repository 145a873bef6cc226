"""The commands ``show`` and ``replay``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...errors import Json
from ...ir import script
from ...ir.graph.nodes import GraphFunc
from ...ir.module import Function
from ...schedules import Schedule
from ...schedules.text import step_json
from ..serialization import to_plain
from ..symbols import samples_of, symbols_of, symbols_view
from .command import (
    Command,
    CommandError,
    Output,
    chosen_target,
    program_arguments,
    target_arguments,
    trust_argument,
    writing,
)
from .programs import chosen_function, load_program, load_schedule, load_trace


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    program_arguments(parser, required=False)
    parser.add_argument("--function", metavar="NAME", help="function to print (default: all)")
    parser.add_argument(
        "--list",
        action="store_true",
        help="print only the level, name, and symbols of each function",
    )
    parser.add_argument("--after", metavar="PASS", help="print the program after this pass")
    parser.add_argument(
        "--kernel", metavar="NAME", help="with --after: the kernel to print (default: all)"
    )
    parser.add_argument(
        "--diff", action="store_true", help="with --after: print the change by the pass"
    )
    parser.add_argument("--passes", action="store_true", help="list the passes in order")
    target_arguments(parser)
    parser.set_defaults(target="")


def _show(options: argparse.Namespace) -> Output:
    if options.passes:
        for name in ("after", "kernel", "diff", "function", "list"):
            if getattr(options, name) not in (None, False):
                raise CommandError(f"--{name} does not apply to --passes")
        return _show_passes(options)
    if options.program is None:
        raise CommandError("no program", hint="name a file, or list the passes with --passes")
    if options.after is not None:
        return _show_after(options)
    for name in ("kernel", "diff"):
        if getattr(options, name) not in (None, False):
            raise CommandError(f"--{name} requires --after PASS")
    schedule = load_schedule(options)
    module = schedule.module
    chosen = [chosen_function(module, options.function)] if options.function else list(module)
    facts: list[Json] = [_facts(schedule, function) for function in chosen]
    if options.list:
        text = "\n".join(map(_line, chosen))
    else:
        text = "\n\n\n".join(script.to_text(function, module=module) for function in chosen)
    return Output(text, {"functions": facts})


def _show_passes(options: argparse.Namespace) -> Output:
    """List the passes of a target, or of all targets."""
    from ...codegen.stages import stage_table, stages_of

    stages = stages_of(chosen_target(options) if options.target else None)
    return Output(str(stage_table(stages)), {"passes": [stage.to_json() for stage in stages]})


def _show_after(options: argparse.Namespace) -> Output:
    """Print the program after a pass, or the change by the pass."""
    from ...codegen.lowered import lower
    from ...codegen.stages import find_stage

    for name in ("function", "list"):
        if getattr(options, name):
            raise CommandError(
                f"--{name} does not apply to --after", hint="choose a function with --kernel NAME"
            )
    options.target = options.target or "cpu"
    target = chosen_target(options)
    find_stage(options.after, target)  # A misspelled pass is reported before the file is read.
    schedule = load_schedule(options, target)
    lowered = lower(schedule, target, stop_after=options.after, kernel=options.kernel)
    if not options.diff:
        return Output(str(lowered), lowered.to_json())
    changes: list[Json] = [
        {"name": name, "diff": function.diff()} for name, function in lowered.functions.items()
    ]
    data: dict[str, Json] = {"stage": lowered.stage, "target": str(target), "functions": changes}
    return Output(lowered.diff(), data)


def _line(function: Function) -> str:
    level = "graph" if isinstance(function, GraphFunc) else "loop "
    symbols = ", ".join(symbol.name for symbol in symbols_of(function))
    return f"{level}  {function.name}" + (f"  [{symbols}]" if symbols else "")


def _facts(schedule: Schedule, function: Function) -> Json:
    samples = samples_of(schedule.module, function, {})
    return {
        "name": function.name,
        "level": "graph" if isinstance(function, GraphFunc) else "loop",
        "text": script.to_text(function, module=schedule.module),
        "symbols": to_plain(symbols_view(function, samples)),
    }


SHOW = Command("show", "print a program, also after a pass of the compiler", _show_arguments, _show)


def _replay_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "program", help="model (.onnx, .pt2) or program text (any other file; - is standard input)"
    )
    parser.add_argument("trace", help="saved trace to replay")
    trust_argument(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the resulting program to this file"
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="compare the results before and after the trace in the interpreter",
    )


def _replay(options: argparse.Namespace) -> Output:
    """Replay a trace; if a step does not apply, report it and return exit code 1."""
    schedule = Schedule(load_program(options.program, trust=options.trust))
    trace = load_trace(options.trace)
    outcome = schedule.replay(trace)
    text = script.to_text(schedule.module)
    lines = [f"{outcome.done} of {len(trace)} steps applied"]
    lines += [f"changed: {change}" for change in outcome.changes]
    data: dict[str, Json] = {
        "applied": outcome.done,
        "steps": len(trace),
        "changes": [str(change) for change in outcome.changes],
        "pending": [step_json(step) for step in outcome.pending],
        "error": outcome.error.to_json() if outcome.error else None,
        "text": text,
    }
    if outcome.error is not None:
        lines.append(f"step {outcome.done} ({outcome.pending[0].op}): {outcome.error}")
    agrees = True
    if options.verify:
        verification = schedule.verify()
        agrees = verification.ok
        lines.append(str(verification))
        data["verified"] = agrees
    if options.output:
        with writing(options.output):
            Path(options.output).write_text(text + "\n", encoding="utf-8")
        lines.append(f"written to {options.output}")
    elif outcome.error is None and not options.verify:
        lines += ["", text]
    return Output("\n".join(lines), data, 0 if outcome.error is None and agrees else 1)


REPLAY = Command("replay", "apply a saved trace to a program", _replay_arguments, _replay)
