"""Rooflines: measured and predicted kernels below the peak rates of the machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..display import Table
from ..errors import TilewrightError
from .measurement_records import MeasurementRecords
from .protocol_runs import KernelRule, KernelTime, Measurement, Roof

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class RooflineError(TilewrightError):
    """A roofline without measured kernels or peak rates."""

    title = "Missing roofline"


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """A kernel in a roofline.

    Parameters
    ----------
    kernel : str
        The name of the kernel.
    intensity : float
        The operations per byte of the arguments.
    gflops : float
        The operations per nanosecond.
    state : str
        The id of the version of the schedule.
    share : float
        The share of the measured call; 0 for predictions and other versions.
    bound : str
        The peak that limits a measured kernel: ``operations`` or the name of a level; empty if
        unknown.
    roof : float or None
        The attained share of that peak.
    """

    kernel: str
    intensity: float
    gflops: float
    state: str
    share: float = 0.0
    bound: str = ""
    roof: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Roofline:
    """The measured and predicted kernels of a program below the peak rates of the machine.

    ``print`` and notebooks show a table; :meth:`figure` returns a picture.

    Parameters
    ----------
    roof : Roof
        The peak rates.
    title : str
        The measured function, its sizes, and the conditions.
    measured : tuple of RooflinePoint
        The kernels of the measurement, slowest first.
    predicted : tuple of RooflinePoint
        Their predictions, and that of the traced kernel at the head if the head is not measured.
    path : tuple of RooflinePoint
        One kernel at the measured versions from the root to the head, if there are several.

    Examples
    --------
    >>> from tilewright.workbench.protocol_runs import RoofLevel
    >>> roof = Roof(
    ...     "fma", 1, 100.0, [RoofLevel("L2 cache", 1 << 20, 80.0), RoofLevel("memory", 0, 10.0)]
    ... )
    >>> measured = RooflinePoint("matmul", 16.0, 50.0, "v1", 1.0, "operations", 0.5)
    >>> line = Roofline(
    ...     roof, "matmul at n = 64", (measured,), (RooflinePoint("matmul", 16.0, 80.0, "v1"),)
    ... )
    >>> print(line)
    matmul at n = 64
    kernel      FLOP/byte    GFLOP/s    predicted    % of roof  limit
    --------  -----------  ---------  -----------  -----------  ----------
    matmul             16         50           80           50  operations
    peaks: 100 GFLOP/s (fma on f32, 1 thread), L2 cache 80 GB/s, memory 10 GB/s
    >>> [trace.name for trace in line.figure().data]
    ['L2 cache: 80 GB/s', 'memory: 10 GB/s', 'measured', 'predicted']
    """

    roof: Roof
    title: str
    measured: tuple[RooflinePoint, ...]
    predicted: tuple[RooflinePoint, ...] = ()
    path: tuple[RooflinePoint, ...] = ()

    def figure(self) -> Figure:
        """Return the picture as a ``plotly.graph_objects.Figure``.

        Measured kernels are filled, predicted ones hollow. The area of a measured kernel shows its
        share of the time.
        """
        from plotly.graph_objects import Figure

        from .roofline_figure import layout, traces

        return Figure(traces(self), layout(self))

    def table(self) -> Table:
        """Return the measured kernels with their predictions as a table."""
        predicted = {(p.kernel, p.state): p.gflops for p in self.predicted}
        rows = tuple(
            (
                p.kernel, p.intensity, p.gflops, predicted.get((p.kernel, p.state)),
                None if p.roof is None else 100.0 * p.roof, p.bound,
            )
            for p in self.measured
        )  # fmt: skip
        columns = ("kernel", "FLOP/byte", "GFLOP/s", "predicted", "% of roof", "limit")
        return Table(columns, rows, self.title, (peaks_text(self.roof),))

    def __str__(self) -> str:
        """Return the table as text."""
        return str(self.table())

    def _repr_html_(self) -> str:
        """Return the table as static HTML."""
        return self.table().to_html()

    def __repr__(self) -> str:
        """Return the title and the number of kernels."""
        return f"<Roofline of {self.title}: {len(self.measured)} kernels>"


def peaks_text(roof: Roof) -> str:
    """Return the peak rates as one line of text.

    Examples
    --------
    >>> peaks_text(Roof("fma", 2, 100.0, []))
    'peaks: 100 GFLOP/s (fma on f32, 2 threads)'
    """
    threads = "1 thread" if roof.threads == 1 else f"{roof.threads} threads"
    head = f"peaks: {roof.gflops:.3g} GFLOP/s ({roof.instruction} on f32, {threads})"
    return ", ".join([head, *(f"{v.name} {v.gbytes:.3g} GB/s" for v in roof.levels)])


def roofline_of(
    measurement: Measurement | None,
    *,
    records: MeasurementRecords | None = None,
    states: Sequence[str] = (),
    kernel: str = "",
    rule: KernelRule | None = None,
) -> Roofline:
    """Return the roofline of a measurement.

    Parameters
    ----------
    measurement : Measurement or None
        The measurement.
    records : MeasurementRecords, optional
        The measurements of other versions.
    states : sequence of str
        The ids of the versions from the root to the head.
    kernel : str
        The kernel whose path to draw; by default the slowest one.
    rule : KernelRule, optional
        The predicted rates of a kernel at the head.

    Raises
    ------
    RooflineError
        If there is no measurement, or one without peak rates or known kernels.
    """
    measured = () if measurement is None else tuple(_measured(measurement))
    if measurement is None or measurement.roof is None or not measured:
        raise RooflineError(
            "there is no measurement of kernels with known operations and peak rates",
            hint="measure the program in the workbench, on a CPU",
        )
    known = {point.kernel for point in measured}
    if kernel and kernel not in known:
        raise RooflineError(
            f"kernel {kernel!r} was not measured", hint=f"kernels are {', '.join(sorted(known))}"
        )
    traced = kernel or measured[0].kernel
    path = () if records is None else tuple(_path(measurement, records, states, traced))
    predicted = [*_predicted(measurement), *_at_head(measurement, rule, states)]
    title = f"{measurement.function} at {measurement.shapes}, {measurement.conditions}"
    return Roofline(
        measurement.roof, title, measured, tuple(predicted), path if len(path) > 1 else ()
    )


def _rated(measurement: Measurement) -> Iterable[tuple[KernelTime, float, float]]:
    """Yield the kernels that compute, with their intensity and operations per nanosecond."""
    for kernel in measurement.kernels:
        if kernel.gflops and kernel.gbytes:
            yield kernel, kernel.gflops / kernel.gbytes, kernel.gflops


def _measured(measurement: Measurement) -> Iterable[RooflinePoint]:
    for kernel, intensity, gflops in _rated(measurement):
        yield RooflinePoint(
            kernel.function, intensity, gflops, measurement.state, kernel.share,
            kernel.bound or "", kernel.roof,
        )  # fmt: skip


def _predicted(measurement: Measurement) -> Iterable[RooflinePoint]:
    for kernel, intensity, _ in _rated(measurement):
        if kernel.predicted:
            yield RooflinePoint(kernel.function, intensity, kernel.predicted, measurement.state)


def _at_head(
    measurement: Measurement, rule: KernelRule | None, states: Sequence[str]
) -> Iterable[RooflinePoint]:
    """Yield the prediction at the head, unless the head is the measured version."""
    head = states[-1] if states else measurement.state
    if rule is not None and rule.gflops and rule.gbytes and head != measurement.state:
        yield RooflinePoint(rule.function, rule.gflops / rule.gbytes, rule.gflops, head)


def _path(
    shown: Measurement, records: MeasurementRecords, states: Sequence[str], kernel: str
) -> Iterable[RooflinePoint]:
    """Yield a kernel at the versions that were measured under the same conditions."""
    wanted = shown.function, shown.shapes, shown.conditions
    newest = {
        record.state: record
        for record in records.view().items
        if (record.function, record.shapes, record.conditions) == wanted
    }
    for state in states:
        rates = newest[state].kernels if state in newest else []
        for rate in rates:
            if rate.function == kernel and rate.gflops and rate.gbytes:
                yield RooflinePoint(kernel, rate.gflops / rate.gbytes, rate.gflops, state)
