"""Errors of runs on the GPU of a page."""

from __future__ import annotations

from ...codegen.errors import DeviceUnavailableError, LaunchError, OutOfMemoryError
from ...codegen.runtime.webgpu.kernel import RejectedShaderError
from ...errors import TilewrightError
from ..protocol_gpu import GpuErrorKind, GpuFailure


class PageGpuMissingError(DeviceUnavailableError):
    """A page without a GPU, or whose GPU lacks a feature; the message states the reason."""

    title = "Missing GPU in the browser"


class PageNotAskedError(TilewrightError):
    """A page in which the user has not asked for a run since it was loaded."""

    title = "Page without a request"


class PageClosedError(TilewrightError):
    """A page that was closed, left, or reloaded during a run, or that does not answer."""

    title = "Closed page"


class SecondPageError(TilewrightError):
    """Two pages that answer under the name of one client."""

    title = "Two pages"


class PageGpuLostError(TilewrightError):
    """A GPU that the browser took from the page, for example after a long kernel."""

    title = "Lost GPU of the page"


class PageMessageError(TilewrightError):
    """An answer of a page that does not conform to the protocol, or does not fit its call."""

    title = "Invalid answer of the page"


def error_of(failure: GpuFailure) -> TilewrightError:
    """Return the error of a call that failed in the page.

    Examples
    --------
    >>> print(error_of(GpuFailure("old", "Chrome 90 has no WebGPU", "Chrome")).message)
    Chrome 90 has no WebGPU
    """
    kind, message = failure.kind, failure.message
    match kind:
        case "insecure" | "old" | "disabled" | "no_adapter" | "no_feature" | "module":
            return PageGpuMissingError(message, hint=_HINTS[kind], details={"kind": kind})
        case "not_requested":
            return PageNotAskedError(message)
        case "closed":
            return PageClosedError(message, hint="open the notebook again, and run in its page")
        case "lost":
            return PageGpuLostError(
                message,
                hint="run again, which opens the GPU again; a browser stops kernels that take "
                "several seconds, so choose smaller sizes or a faster schedule",
            )
        case "shader":
            return RejectedShaderError(
                f"the browser rejects the shader of kernel {failure.subject!r}: {message}",
                where=f"kernel {failure.subject!r}",
                hint="this is a bug in the code generator; report it with the program",
            )
        case "memory":
            return OutOfMemoryError(
                f"the GPU of the page is out of memory: {message}", hint="choose smaller sizes"
            )
        case "invalid":
            return LaunchError(f"the browser rejects an operation: {message}")


_ELSEWHERE = "choose another target, such as this machine's GPU or the emulator"
_HINTS: dict[GpuErrorKind, str] = {
    "insecure": "forward the port of the server with `ssh -L` and open it as localhost, or choose "
    "another target",
    "old": f"update the browser, or {_ELSEWHERE}",
    "disabled": f"enable WebGPU and reload the page, or {_ELSEWHERE}",
    "no_adapter": f"install a driver, or {_ELSEWHERE}",
    "no_feature": 'compile for Target("webgpu", where="browser") without this feature',
    "module": "reload the page; an extension or a policy of the browser may block modules",
}
