"""All measurements of a session, by history node, function, sizes, conditions, and machine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ..schedules import State
from . import protocol_runs
from .protocol_runs import KernelRate, Measurement, MeasurementRecord, Roof
from .rates import with_roof

Key: TypeAlias = "tuple[str, str, str, str, bool, tuple[tuple[str, str], ...]]"


@dataclass(frozen=True, slots=True)
class Record:
    """A measurement, and the scheduled program that ran if it is one of an entire call."""

    key: str
    measurement: Measurement
    compiled: State | None


@dataclass(slots=True)
class MeasurementRecords:
    """The newest measurement of each node, function, sizes, conditions, and machine."""

    revision: int = 0
    _records: dict[Key, Record] = field(default_factory=dict[Key, Record])

    def add(self, measurement: Measurement, compiled: State | None) -> Record:
        """Keep a measurement, instead of an earlier one under the same conditions."""
        self.revision += 1
        m = measurement
        machine = tuple(sorted((m.machine or {}).items()))
        key = m.state, m.function, m.shapes, m.conditions, m.emulated, machine
        self._records.pop(key, None)  # the newest record is the last one
        record = self._records[key] = Record(f"m{self.revision}", m, compiled)
        return record

    def set_roof(self, roof: Roof) -> None:
        """Compare the measurements of the same number of threads with a new roof."""
        self.revision += 1
        for key, record in self._records.items():
            if record.measurement.roof and record.measurement.roof.threads == roof.threads:
                again = with_roof(record.measurement, roof)
                self._records[key] = replace(record, measurement=again)

    def get(self, key: str) -> Record | None:
        """Return the record with a key, None if there is none."""
        return next((r for r in self._records.values() if r.key == key), None)

    def last(self, state: str) -> Record | None:
        """Return the newest record of a history node, one of an entire call first."""
        found = [r for r in self._records.values() if r.measurement.state == state]
        whole = [r for r in found if r.compiled is not None]
        return next(iter([*reversed(whole), *reversed(found)]), None)

    def time(self, state: str, function: str, shapes: str) -> float | None:
        """Return the newest median of a function at a state and sizes; None without one."""
        wanted = state, function, shapes
        found = (record.measurement for record in reversed(self._records.values()))
        same = (m for m in found if (m.state, m.function, m.shapes) == wanted)
        return next((m.median for m in same), None)

    def view(self) -> protocol_runs.MeasurementRecords:
        """Return the records for the browser, oldest first."""
        return protocol_runs.MeasurementRecords(list(map(_view, self._records.values())))


def _view(record: Record) -> MeasurementRecord:
    m = record.measurement
    return MeasurementRecord(
        key=record.key,
        state=m.state,
        function=m.function,
        shapes=m.shapes,
        conditions=m.conditions,
        microseconds=m.median,
        emulated=m.emulated,
        whole=record.compiled is not None,
        kernels=[
            KernelRate(k.function, k.gflops, k.gbytes)
            for k in m.kernels
            if k.gflops is not None and k.gbytes is not None
        ],
    )
