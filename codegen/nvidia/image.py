"""Compiled GPU kernels: PTX, and machine code if the assembler is installed."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass

from .ptxas import AssemblerMissingError, Resources

_LENGTHS = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Image:
    """The PTX of a kernel, its machine code for ``arch``, and its resource usage.

    Without the assembler, the image has no machine code, and the driver assembles the PTX.

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
        """The input of the driver: machine code if available, else PTX."""
        return self.cubin or self.ptx.encode() + b"\0"

    def machine_code(self) -> bytes:
        """Return the machine code.

        Raises
        ------
        AssemblerMissingError
            If the image was made without the assembler.
        """
        if not self.cubin:
            raise AssemblerMissingError(
                f"the kernel image for {self.arch} contains only PTX, no machine code: ptxas was "
                "not installed when the kernel was compiled",
                hint="run 'pip install nvidia-cuda-nvcc', then compile again",
            )
        return self.cubin

    def to_bytes(self) -> bytes:
        """Return the serialized image."""
        used = None if self.resources is None else asdict(self.resources)
        header = json.dumps({"arch": self.arch, "resources": used}, sort_keys=True).encode()
        ptx = self.ptx.encode()
        return _LENGTHS.pack(len(header), len(ptx)) + header + ptx + self.cubin

    @classmethod
    def from_bytes(cls, data: bytes) -> Image:
        """Return the image of serialized bytes."""
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
