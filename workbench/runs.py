"""Compilations and measurements of a session, as jobs."""

from __future__ import annotations

from ..codegen.measure.measure_options import MeasureOptions
from ..errors import TilewrightError
from . import protocol
from .durations import duration
from .editor import Editor
from .jobs import JobCanceledError, Progress
from .measurement_records import MeasurementRecords, Record
from .protocol import Tone
from .protocol_runs import Measurement, Roof
from .rates import with_rates, with_roof
from .serialization import ProtocolError
from .shown import Profile

_TONES: dict[bool, Tone] = {True: "good", False: "bad"}


class Runs(Editor):
    """An editor that compiles and measures its program."""

    records: MeasurementRecords

    @property
    def measure_options(self) -> MeasureOptions:
        """The options of the next measurement."""
        return self.shown.measure_options

    @measure_options.setter
    def measure_options(self, options: MeasureOptions) -> None:
        self._bench.check(options)
        self.shown.measure_options = options

    def measure_options_view(self) -> protocol.MeasureOptions:
        """Return the options for the browser, with the maximum number of threads."""
        options = self.measure_options
        return protocol.MeasureOptions(
            options.caches, options.threads, self._bench.threads, options.pin, options.budget
        )

    def _compile(self) -> None:
        """Start a job that compiles the program and compares it with the interpreter."""
        self._check_idle()
        head, function = self.schedule.head, self.entry
        samples = self.samples(function)
        root = next(n for n in self.schedule.history if n.parent is None).state.module

        def work(progress: Progress) -> None:
            verdict = self._bench.verify(head, root, function.name, samples, progress)
            self.history_view.record_verdict(head.id, agrees=verdict.agrees)
            self.shown.verdict = verdict
            result = "matches" if verdict.agrees else "differs from"
            self._announce(f"Compiled: {result} the interpreter", _TONES[verdict.agrees])

        self.jobs.start("Compile", work)

    def _measure(self) -> None:
        """Start a job that measures the entire program."""
        self._check_idle()
        head, function = self.schedule.head, self.entry
        samples, options = self.samples(function), self.measure_options

        def work(progress: Progress) -> None:
            roof = self._roof(options, progress)
            measurement = self._bench.measure(head, function.name, samples, progress, options)
            compiled = self.rules.program(head.state)
            measurement = with_rates(measurement, compiled.module, self.shown.samples, roof)
            measurement = self._plausible(measurement, options, progress)
            with self.lock:
                self.rules.record(measurement, head.state, compiled.module.functions)
                self._show(self.records.add(measurement, compiled))
                self._announce_measurement(measurement)

        self.jobs.start("Measure", work)

    def _measure_kernel(self, name: str) -> None:
        """Start a job that measures one kernel in isolation, at the sizes of its caller."""
        self._check_idle()
        head, function = self.schedule.head, self.state.module.prim(name)
        samples, options = self.samples(function), self.measure_options

        def work(progress: Progress) -> None:
            roof = self._roof(options, progress)
            measurement = self._bench.measure_kernel(head, name, samples, progress, options)
            measurement = with_rates(measurement, head.state.module, self.shown.samples, roof)
            measurement = self._plausible(measurement, options, progress)
            with self.lock:
                self.rules.record(measurement, head.state, {})
                self._show(self.records.add(measurement, None))
                self._announce_measurement(measurement)

        self.jobs.start(f"Measure {name}", work)

    def _plausible(
        self, measurement: Measurement, options: MeasureOptions, progress: Progress
    ) -> Measurement:
        """Measure the roof again if a kernel exceeds it: the machine was busy at that time."""
        if (
            measurement.roof is None
            or max((k.roof or 0.0 for k in measurement.kernels), default=0.0) <= 1.0
        ):
            return measurement
        roof = self._roof(options, progress, again=True)
        return measurement if roof is None else with_roof(measurement, roof)

    def _roof(
        self, options: MeasureOptions, progress: Progress, *, again: bool = False
    ) -> Roof | None:
        """Return the peak rates of the machine; if they cannot be measured, report the error."""
        try:
            return self._bench.roof(options, progress, again=again)
        except JobCanceledError:
            raise
        except TilewrightError as error:
            with self.lock:
                self._add_problem(error, "Measure")
            return None

    def _measure_roof(self) -> None:
        """Start a job that measures the peak rates of the machine again."""
        self._check_idle()
        options = self.measure_options

        def work(progress: Progress) -> None:
            roof = self._bench.roof(options, progress, again=True)
            if roof is None:
                raise ProtocolError("the peak rates of a CPU are measured, not those of a GPU")
            with self.lock:
                shown = self.shown.measurement
                self.records.set_roof(roof)
                if shown is not None and shown.roof and shown.roof.threads == roof.threads:
                    self.shown.measurement = with_roof(shown, roof)
                self._announce(f"Measured: at most {roof.gflops:.0f} GFLOP/s", "good")

        self.jobs.start("Measure the peak rates", work)

    def _show(self, record: Record) -> None:
        """Show a measurement; the graph keeps the colors of the last one of an entire call."""
        self.shown.measurement = record.measurement
        if record.compiled is not None:
            self.shown.profile = Profile(record.measurement, record.compiled)

    def _show_measurement(self, key: str) -> None:
        record = self.records.get(key)
        if record is None:
            raise ProtocolError(
                f"no measurement {key!r} is kept", hint="choose one of the list in Kernels"
            )
        self._show(record)

    def _announce_measurement(self, measurement: Measurement) -> None:
        time = duration(measurement.median)
        self._announce(f"Measured: {measurement.function} takes {time}", "good")
