"""The notebook widget: a session displayed by an anywidget."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, cast

import anywidget
import traitlets

from ..calls import checked_call
from ..ir.loop.nodes import PrimFunc
from ..ir.module import Module
from ..schedules import Schedule
from ..schedules.targets import program_target
from ..target.target import Target
from .assets import STATIC, asset
from .page.benches import bench_of
from .page.channel import Pages
from .page.kernel_loop import probe_of_kernel
from .protocol import Update
from .protocol_gpu import GpuCall
from .roofline import Roofline
from .serialization import Plain, to_plain, update_to_plain
from .session import Session
from .snapshot import snapshot_html, snapshot_text


class Workbench(anywidget.AnyWidget):
    """A notebook widget that displays, transforms, compiles and measures a program.

    Parameters
    ----------
    program : Module, PrimFunc or Schedule
        The program to edit. Steps applied in cells and in the widget share one history.
    target : str or Target, optional
        The target to compile for.
    height : int
        The height in pixels; by default the height follows the window.
    inputs : sequence, optional
        The arguments of a call, to compile and measure with: integers, and arrays of NumPy or with
        DLPack. Their shapes determine the sizes; at other sizes the inputs are random.
    sizes : Mapping of str to Mapping, optional
        Named sets of sizes, such as ``{"short": {"s": 16}, "long": {"s": 512}}``. The program can
        be measured with each of them.

    Examples
    --------
    >>> import tilewright as tw
    >>> mod = tw.parse('''
    ... @prim_func
    ... def twice(x: Buffer[(8,), f32], y: Out[(8,), f32]):
    ...     for i in range(8):
    ...         with block("y"):
    ...             vi = spatial(i)
    ...             y[vi] = x[vi] + x[vi]
    ... ''')
    >>> wb = tw.Workbench(mod)
    >>> wb.schedule.module is mod
    True
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    _height = traitlets.Int(0).tag(sync=True)
    _id = traitlets.Unicode().tag(sync=True)
    """The id of the widget's model, by which the browser finds the model in a notebook."""
    _saved = traitlets.Unicode().tag(sync=True)
    """The last state, in widgets that the browser creates from a saved notebook."""

    @checked_call
    def __init__(
        self,
        program: Module | PrimFunc | Schedule,
        target: str | Target | None = None,
        *,
        height: int = 0,
        inputs: Sequence[object] | None = None,
        sizes: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        """Start a session; nothing is compiled until it is requested."""
        if isinstance(program, PrimFunc):
            program = Module().with_functions(program)
        chosen = program_target(program, target)
        schedule = program if isinstance(program, Schedule) else Schedule(program, chosen)
        self.pages = Pages(self._call_page, probe_of_kernel())
        bench = bench_of(chosen, self.pages)
        self.session = Session(schedule, bench, publish=self._publish, pages=self.pages)
        if inputs is not None:
            self.session.set_inputs(inputs)
        for name, values in (sizes or {}).items():
            self.session.add_size_set(name, values)
        model_id = uuid.uuid4().hex
        super().__init__(
            _esm=asset(STATIC / "widget.js"),
            _css=asset(STATIC / "widget.css"),
            _height=height,
            _id=model_id,
            model_id=model_id,
        )
        self.on_msg(self._receive)

    @property
    def schedule(self) -> Schedule:
        """The schedule of the session."""
        return self.session.schedule

    def roofline(self, kernel: str = "") -> Roofline:
        """Return the kernels of the shown measurement below the peak rates of the machine.

        Parameters
        ----------
        kernel : str
            The kernel whose path through the measured versions of the branch is part of the
            result; by default the open one if it was measured, else the slowest one.

        Returns
        -------
        Roofline
            Measured and predicted kernels; ``print`` shows a table, and ``.figure()`` returns a
            picture as a ``plotly.graph_objects.Figure``.

        Raises
        ------
        RooflineError
            If the program was not measured on a CPU, or the kernel was not measured.
        """
        return self.session.roofline(kernel)

    def _receive(self, _widget: Any, content: dict[str, Any], buffers: list[memoryview]) -> None:
        if content.get("type") == "gpu_answer":
            self.pages.receive(content, buffers)
        else:
            self.session.handle(content)

    def _call_page(self, call: GpuCall, buffers: list[bytes]) -> None:
        self.send(cast("Plain", to_plain(call)), buffers)

    def _publish(self, update: Update, buffers: list[bytes]) -> None:
        self.send(update_to_plain(update), buffers)

    def _repr_mimebundle_(self, **kwargs: object) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the widget and the static output for notebooks without a kernel."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if bundle is not None else ({}, {})
        static = {
            "text/plain": snapshot_text(self.session),
            "text/html": snapshot_html(self.session),
        }
        return {**static, **data, "text/plain": static["text/plain"]}, metadata
