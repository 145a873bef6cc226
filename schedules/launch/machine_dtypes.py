"""Operations that need a machine type, which some dtypes lack."""

from __future__ import annotations

from ...ir.kernel_errors import MissingDTypeError
from ...ir.loop.nodes import Block, Buffer


def require_machine_dtype(
    buffer: Buffer, block: Block, function: str, action: str, emulation: str
) -> None:
    """Check that machines compute with the dtype of a buffer.

    Parameters
    ----------
    buffer : Buffer
        The buffer.
    block : Block
        The block that accesses it.
    function : str
        The name of the function.
    action : str
        The operation, such as ``"atomic update"``.
    emulation : str
        How the operation could be emulated.

    Raises
    ------
    MissingDTypeError
        If no machine register holds elements of the dtype.
    """
    dtype = buffer.dtype
    if dtype.is_machine:
        return
    raise MissingDTypeError(
        f"no target has an {action} of dtype {dtype}, the dtype of {buffer.name!r}; it would be "
        f"emulated by {emulation}",
        where=f"block {block.name!r} of function {function!r}",
        hint=f"accumulate in dtype {dtype.compute.name if dtype.is_float else 'i32'}, and convert "
        f"the result to {dtype} in another block",
        parts=(buffer.name, block.name),
    )
