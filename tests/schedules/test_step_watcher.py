"""The function that is called after every step, also inside of composite steps."""

from __future__ import annotations

import threading

import pytest

from tilewright.codegen.build.worker_pool import CancelToken
from tilewright.codegen.compiler import compile
from tilewright.codegen.errors import CompileCanceledError
from tilewright.errors import TilewrightError
from tilewright.ir.script import parse
from tilewright.schedules.rules import apply_defaults
from tilewright.schedules.step_watcher import watching

from tests.schedules.helpers import MATMUL, schedule


def test_every_step_inside_of_composite_steps_is_reported():
    sch, seen = schedule(MATMUL), []
    with watching(seen.append):
        apply_defaults(sch)
    changes = [step for step in sch.trace.steps if not step.op.startswith("get_")]
    assert len(seen) >= len(changes) > 10
    assert seen[0] is not sch.module
    count = len(seen)
    sch.get_block("mm", "matmul")
    assert len(seen) == count


def test_an_error_of_the_watcher_ends_all_composite_steps():
    sch = schedule(MATMUL)
    stopped = TilewrightError("stopped by the caller")

    def stop(_module):
        raise stopped

    with pytest.raises(TilewrightError) as caught, watching(stop):
        apply_defaults(sch)
    assert caught.value is stopped
    assert len(sch.trace) == 0


def test_steps_of_other_threads_are_not_reported():
    seen = []
    other = threading.Thread(target=lambda: apply_defaults(schedule(MATMUL)))
    with watching(seen.append):
        other.start()
        other.join()
    assert seen == []


def test_scheduling_reports_its_progress_and_can_be_canceled():
    text = MATMUL.replace("24", "23")
    reported = []
    compile(parse(text), progress=lambda fraction, message: reported.append((fraction, message)))
    scheduling = [fraction for fraction, message in reported if message.startswith("scheduled")]
    assert len(scheduling) > 10
    assert scheduling == sorted(scheduling)
    cancel = CancelToken()
    with pytest.raises(CompileCanceledError):
        compile(
            parse(MATMUL.replace("24", "25")),
            cancel=cancel,
            progress=lambda _fraction, message: message.startswith("scheduled") and cancel.cancel(),
        )
