"""Compilations and measurements of a session, as jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..codegen.measure.measure_options import MeasureOptions
from ..durations import duration
from ..errors import TilewrightError
from ..ir.module import Function
from ..schedules.history import Node
from . import protocol
from .default_rules import path_to
from .editor import Editor
from .given_inputs import given_inputs
from .jobs import JobCanceledError, Progress
from .measurement_records import MeasurementRecords, Record
from .protocol_runs import Measurement, Roof
from .protocol_steps import Tone
from .rates import with_rates, with_roof
from .requests import EditSizeSet, Run
from .roofline import Roofline, roofline_of
from .serialization import ProtocolError
from .session_document import Profile
from .size_sets import SizeSetError
from .symbols import samples_of

_TONES: dict[bool, Tone] = {True: "good", False: "bad"}


class Runs(Editor):
    """An editor that compiles and measures its program."""

    records: MeasurementRecords

    @property
    def measure_options(self) -> MeasureOptions:
        """The options of the next measurement."""
        return self.document.measure_options

    @measure_options.setter
    def measure_options(self, options: MeasureOptions) -> None:
        self._bench.check(options)
        self.document.measure_options = options

    def measure_options_view(self) -> protocol.MeasureOptions:
        """Return the options for the browser, with the maximum number of threads."""
        options = self.measure_options
        return protocol.MeasureOptions(
            options.caches, options.threads, self._bench.threads, options.pin, options.budget
        )

    def _run(self, request: Run) -> None:
        """Start the job of a request of a page."""
        self._check_idle()
        self._bench.use_page(self.client)
        match request:
            case Run(action="measure", function=name) if name:
                self._measure_kernel(name)
            case Run(action="measure"):
                self._measure()
            case Run(action="measure_sets"):
                self._measure_sets()
            case Run(action="roof"):
                self._measure_roof()
            case _:
                self._compile()

    def _compile(self) -> None:
        """Start a job that compiles the program and compares it with the interpreter."""
        self._check_idle()
        head, function = self.schedule.head, self.entry
        samples = self.samples(function)
        root = next(n for n in self.schedule.history if n.parent is None).state.module

        def work(progress: Progress) -> None:
            verdict = self._bench.verify(head, root, function.name, samples, progress)
            self.history_view.record_verdict(head.id, agrees=verdict.agrees)
            self.document.verdict = verdict
            result = "matches" if verdict.agrees else "differs from"
            self._announce(f"Compiled: {result} the interpreter", _TONES[verdict.agrees])

        self._start("Compile", work)

    def _measure(self) -> None:
        """Start a job that measures the entire program."""
        self._check_idle()
        head, function, options = self.schedule.head, self.entry, self.measure_options
        chosen = dict(self.document.samples)

        def work(progress: Progress) -> None:
            self._announce_measurement(self._measured(head, function, chosen, progress, options))

        self._start("Measure", work)

    def _measure_sets(self) -> None:
        """Start a job that measures the entire program with each set of sizes."""
        self._check_idle()
        head, function, options = self.schedule.head, self.entry, self.measure_options
        sets = self.document.size_sets
        if not sets.sizes:
            raise SizeSetError("there is no set of sizes", hint="name the sample sizes as a set")
        chosen = [
            (name, {**self.document.samples, **sets.chosen(name, function)}) for name in sets.sizes
        ]

        def work(progress: Progress) -> None:
            for index, (name, sizes) in enumerate(chosen):
                done, title = index / len(chosen), f"{name}, set {index + 1} of {len(chosen)}"

                def report(
                    fraction: float, message: str, done: float = done, title: str = title
                ) -> None:
                    within = done + max(0.0, fraction) / len(chosen)
                    progress.report(within, f"{title}: {message}")

                self._measured(head, function, sizes, progress.within(report), options)
                self.refresh()
            self._announce(f"Measured {len(chosen)} sets of sizes", "good")

        self._start("Measure all sets of sizes", work)

    def _measured(
        self,
        head: Node,
        function: Function,
        chosen: Mapping[tuple[str, str], int],
        progress: Progress,
        options: MeasureOptions,
    ) -> Measurement:
        """Measure the entire program at sample values, and keep and show the measurement."""
        samples = samples_of(head.state.module, function, chosen)
        roof = self._roof(options, progress)
        measurement = self._bench.measure(head, function.name, samples, progress, options)
        compiled = self.rules.program(head.state)
        measurement = with_rates(measurement, compiled.module, chosen, roof)
        measurement = self._plausible(measurement, options, progress)
        with self.lock:
            self.rules.record(measurement, head.state, compiled.module.functions)
            self._show(self.records.add(measurement, compiled))
        return measurement

    def _edit_size_set(self, request: EditSizeSet) -> None:
        sets, entry = self.document.size_sets, self.entry
        match request.action:
            case "add":
                sets = sets.added(request.name, self.samples(entry), entry)
            case "remove":
                sets = sets.removed(request.name)
            case "use":
                self.document.samples = {
                    **self.document.samples,
                    **sets.chosen(request.name, entry),
                }
        self.document.size_sets = sets

    def set_inputs(self, inputs: Sequence[object]) -> None:
        """Run the entry function with these inputs while the sample sizes are theirs."""
        entry = self.entry
        self._bench.given, sizes = given_inputs(entry, inputs)
        chosen = {(entry.name, symbol): size for symbol, size in sizes.items()}
        self.document.samples = {**self.document.samples, **chosen}

    def add_size_set(self, name: str, sizes: Mapping[str, int]) -> None:
        """Add a named set of sizes of the entry function."""
        self.document.size_sets = self.document.size_sets.added(name, sizes, self.entry)

    def _measure_kernel(self, name: str) -> None:
        """Start a job that measures one kernel in isolation, at the sizes of its caller."""
        self._check_idle()
        head, function = self.schedule.head, self.state.module.prim(name)
        samples, options = self.samples(function), self.measure_options

        def work(progress: Progress) -> None:
            roof = self._roof(options, progress)
            measurement = self._bench.measure_kernel(head, name, samples, progress, options)
            measurement = with_rates(measurement, head.state.module, self.document.samples, roof)
            measurement = self._plausible(measurement, options, progress)
            with self.lock:
                self.rules.record(measurement, head.state, {})
                self._show(self.records.add(measurement, None))
                self._announce_measurement(measurement)

        self._start(f"Measure {name}", work)

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
            self.refresh()
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
                shown = self.document.measurement
                self.records.set_roof(roof)
                if shown is not None and shown.roof and shown.roof.threads == roof.threads:
                    self.document.measurement = with_roof(shown, roof)
                self._announce(f"Measured: at most {roof.gflops:.0f} GFLOP/s", "good")

        self._start("Measure the peak rates", work)

    def roofline(self, kernel: str = "") -> Roofline:
        """Return the shown measurement below the peak rates, with the path of one kernel.

        Parameters
        ----------
        kernel : str
            The kernel; by default the open one if it was measured, else the slowest one.

        Raises
        ------
        RooflineError
            If there is no measurement with peak rates, or the kernel was not measured.
        """
        with self.lock:
            shown, states = self.document.measurement, [n.id for n in path_to(self.schedule)]
            measured = {k.function for k in shown.kernels} if shown is not None else set[str]()
            traced = kernel or (self.view.open if self.view.open in measured else "")
            return roofline_of(
                shown, records=self.records, states=states, kernel=traced, rule=self.rule()
            )

    def _show(self, record: Record) -> None:
        """Show a measurement; the graph keeps the colors of the last one of an entire call."""
        self.document.measurement = record.measurement
        if record.compiled is not None:
            self.document.profile = Profile(record.measurement, record.compiled)

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
