"""What a kernel becomes for a GPU: PTX, and machine code where the assembler is installed."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass

from .ptxas import AssemblerMissingError, Resources

_LENGTHS = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Image:
    """One kernel's PTX, its machine code for ``arch``, and what that takes of a GPU.

    Without the assembler there is no machine code: the driver assembles the PTX itself.

    Examples
    --------
    >>> image = Image("sm_80", "// PTX", b"ELF", Resources(registers=8))
    >>> Image.from_bytes(image.to_bytes()) == image
    True
    """

    arch: str
    ptx: str
    cubin: bytes = b""
    resources: Resources | None = None

    @property
    def loadable(self) -> bytes:
        """What the driver takes: machine code, or else PTX."""
        return self.cubin or self.ptx.encode() + b"\0"

    def machine_code(self) -> bytes:
        """Give the machine code.

        Raises
        ------
        AssemblerMissingError
            If the image was made without the assembler.
        """
        if not self.cubin:
            raise AssemblerMissingError(
                f"there is only PTX for {self.arch}: ptxas was not installed when it was made",
                hint="pip install nvidia-cuda-nvcc, then compile again",
            )
        return self.cubin

    def to_bytes(self) -> bytes:
        """Store."""
        used = None if self.resources is None else asdict(self.resources)
        header = json.dumps({"arch": self.arch, "resources": used}, sort_keys=True).encode()
        ptx = self.ptx.encode()
        return _LENGTHS.pack(len(header), len(ptx)) + header + ptx + self.cubin

    @classmethod
    def from_bytes(cls, data: bytes) -> Image:
        """Read back what :meth:`to_bytes` gave."""
        first, second = _LENGTHS.unpack_from(data)
        start = _LENGTHS.size + first
        header = json.loads(data[_LENGTHS.size : start])
        used = header["resources"]
        return cls(
            header["arch"],
            data[start : start + second].decode(),
            data[start + second :],
            None if used is None else Resources(**used),
        )
