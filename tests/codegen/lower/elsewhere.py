"""Elementwise kernels on other CPUs, linked once into a program and run in an emulator."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.codegen.export.link import link_wasm, run_linker
from tilewright.codegen.llvm import compile_text, emit_module
from tilewright.codegen.lower import LoweredKernel, lower_kernel
from tilewright.ir.dtype import from_numpy
from tilewright.ir.loop.nodes import PrimFunc
from tilewright.ir.packing import storage_of, unpack
from tilewright.ir.symbolic import evaluate
from tilewright.target.target import Target

from tests.codegen.export.test_cross import emulator

Arrays = list[np.ndarray]
Runner = Callable[[Mapping[str, Arrays]], dict[str, Arrays]]

MAIN = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t table[32] = {1, 1};

static void *take(FILE *from, size_t bytes) {
  void *address = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (!address || (from && fread(address, 1, bytes, from) != bytes)) exit(3);
  return address;
}

%(prototypes)s

int main(int count, char **arguments) {
  FILE *from = fopen(arguments[1], "rb"), *to = fopen(arguments[2], "wb");
  if (count != 3 || !from || !to) return 2;
%(calls)s
  return fclose(to);
}
"""


def in_memory(array: np.ndarray) -> np.ndarray:
    """Return an array as in memory, where packed elements share bytes."""
    dtype = from_numpy(array.dtype)
    return storage_of(array, dtype) if dtype.is_packed else array


@dataclass(frozen=True, slots=True)
class Kernels:
    """Functions and their lowered forms by name, and their target."""

    functions: Mapping[str, PrimFunc]
    artifacts: Mapping[str, LoweredKernel]
    target: Target

    @classmethod
    def lowered(cls, functions: Sequence[PrimFunc], target: Target) -> Kernels:
        artifacts = {f.name: lower_kernel(f, target) for f in functions}
        return cls({f.name: f for f in functions}, artifacts, target)

    def link(self, folder: Path) -> Runner:
        """Return a runner of all kernels on their inputs in one process."""
        text = emit_module([a.function for a in self.artifacts.values()], self.target)
        made = folder / "kernels.o"
        made.write_bytes(compile_text(text, self.target))
        if self.target.arch == "wasm32":
            link_wasm([made], folder / "kernels.wasm", [*self.artifacts, "__heap_base"])
            return lambda inputs: self._run_in_wasmtime(folder / "kernels.wasm", inputs)
        return lambda inputs: self._run_emulated(made, inputs)

    def _outputs(self, name: str, inputs: Arrays) -> Arrays:
        """Return arrays for the results as in memory, where packed elements share bytes."""
        buffers = self.functions[name].buffer_params[len(inputs) :]
        return [in_memory(np.zeros(inputs[0].shape, b.dtype.numpy)) for b in buffers]

    def _scratch(self, name: str, inputs: Arrays) -> int | None:
        """Return the bytes of the scratch argument of a kernel on one thread, if it has one."""
        artifact = self.artifacts[name]
        if artifact.scratch is None:
            return None
        known = dict.fromkeys(artifact.symbols, inputs[0].size)
        if artifact.threads is not None:
            known[artifact.threads] = 1
        return int(evaluate(artifact.scratch, known))

    def _elements(self, name: str, outputs: Arrays, shape: tuple[int, ...]) -> Arrays:
        """Return results with one element per item."""
        dtypes = [b.dtype for b in self.functions[name].buffer_params[-len(outputs) :]]
        return [
            unpack(a, shape, t) if t.is_packed else a for a, t in zip(outputs, dtypes, strict=True)
        ]

    def _run_emulated(self, made: Path, inputs: Mapping[str, Arrays]) -> dict[str, Arrays]:
        outputs = {name: self._outputs(name, arrays) for name, arrays in inputs.items()}
        prototypes, calls = [], []
        for name, ins in inputs.items():
            outs = outputs[name]
            pointers = ", ".join(["void *"] * (1 + len(ins) + len(outs)))
            scratch = self._scratch(name, ins)
            last = ", void *" if scratch is not None else ""
            prototypes.append(f"int32_t {name}({pointers}, int64_t{last});")
            taken = [f"take(from, {in_memory(a).nbytes})" for a in ins]
            made_here = [f"take(0, {a.nbytes})" for a in outs]
            arguments = ", ".join(f"p[{k}]" for k in range(len(ins) + len(outs)))
            calls.append(f"  {{ void *p[] = {{{', '.join(taken + made_here)}}};")
            room = f", take(0, {scratch})" if scratch is not None else ""
            calls.append(f"    if ({name}(table, {arguments}, {ins[0].size}{room})) return 4;")
            for k, a in enumerate(outs, len(ins)):
                calls.append(f"    fwrite(p[{k}], 1, {a.nbytes}, to);")
            calls.append("  }")
        folder = made.parent
        words = {"prototypes": "\n".join(prototypes), "calls": "\n".join(calls)}
        (folder / "main.c").write_text(MAIN % words)
        arch, program = self.target.arch, folder / "program"
        run_linker(
            [
                "cc", "-target", f"{arch}-linux-musl", "-static", "-O1", "-std=c11",
                str(folder / "main.c"), str(made), "-o", str(program),
            ]
        )  # fmt: skip
        with (folder / "in").open("wb") as file:
            for arrays in inputs.values():
                for a in arrays:
                    file.write(in_memory(a).tobytes())
        command = [emulator(arch), program, folder / "in", folder / "out"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.returncode, done.stderr)
        with (folder / "out").open("rb") as file:
            for arrays in outputs.values():
                for a in arrays:
                    a[...] = np.frombuffer(file.read(a.nbytes), a.dtype)
            assert not file.read(1)
        return {n: self._elements(n, outputs[n], inputs[n][0].shape) for n in outputs}

    def _run_in_wasmtime(self, made: Path, inputs: Mapping[str, Arrays]) -> dict[str, Arrays]:
        import wasmtime

        store = wasmtime.Store()
        code = wasmtime.Module.from_file(store.engine, str(made))
        assert not [f"{i.module}.{i.name}" for i in code.imports]
        exports = wasmtime.Instance(store, code, []).exports(store)
        memory = exports["memory"]
        base = exports["__heap_base"].value(store)
        found: dict[str, Arrays] = {}
        for name, ins in inputs.items():
            outs, top = self._outputs(name, ins), (base + 63) // 64 * 64
            addresses = [top]
            top += 256
            given = [in_memory(a) for a in ins]
            for a in (*given, *outs):
                addresses.append(top)
                top += (a.nbytes + 127) // 64 * 64
            scratch = self._scratch(name, ins)
            rooms = [] if scratch is None else [top]
            top += scratch or 0
            memory.grow(store, max(0, (top - memory.data_len(store) + 65535) // 65536))
            memory.write(store, np.array([1, 1] + [0] * 30, np.int64).tobytes(), addresses[0])
            for address, a in zip(addresses[1:], given, strict=False):
                memory.write(store, a.tobytes(), address)
            assert exports[name](store, *addresses, ins[0].size, *rooms) == 0
            for address, a in zip(addresses[1 + len(ins) :], outs, strict=True):
                a[...] = np.frombuffer(memory.read(store, address, address + a.nbytes), a.dtype)
            found[name] = self._elements(name, outs, ins[0].shape)
        return found
