"""minilm_wasmtime.py DIRECTORY OUT REPEATS (BATCH LENGTH)...: as minilm.c, in wasmtime."""

import struct
import sys
import time
from pathlib import Path

import wasmtime

directory, repeats = Path(sys.argv[1]), int(sys.argv[3])
engine = wasmtime.Engine()
store = wasmtime.Store(engine)
module = wasmtime.Module.from_file(engine, str(directory / "minilm.wasm"))
exports = wasmtime.Instance(store, module, []).exports(store)
memory = exports["memory"]


def call(name, *words):
    return exports[f"minilm_{name}"](store, *words)


def put(data):
    address = call("alloc", len(data)) & 0xFFFFFFFF
    memory.write(store, data, address)
    return address


def word(address):
    return struct.unpack("<I", memory.read(store, address, address + 4))[0]


def tensor(values, shape):
    data, dims = put(struct.pack(f"<{len(values)}q", *values)), put(struct.pack("<2q", *shape))
    return put(struct.pack("<QiiiBBHQQQ", data, 1, 0, 2, 0, 64, 1, dims, 0, 0))


def checked(code):
    if code:
        raise SystemExit(bytes(memory.read(store, error + 8, error + 512)).split(b"\0")[0])


def results():
    checked(call("main", model, ids, mask, outputs, outputs + 8, error))
    return [word(outputs), word(outputs + 8)]


weights = (directory / "minilm.safetensors").read_bytes()
error, outputs, weights_address = put(bytes(512)), put(bytes(16)), put(weights)
checked(call("start", weights_address, len(weights), 0, outputs, error))
model = word(outputs)
numbers = list(map(int, sys.argv[4:]))
with Path(sys.argv[2]).open("wb") as out:
    for shape in zip(numbers[::2], numbers[1::2], strict=True):
        batch, length = shape
        count = range(batch * length)
        ids = tensor([1000 + k * 7919 % 29000 for k in count], shape)
        mask = tensor([int(k % length < length - k // length) for k in count], shape)
        for block, size in zip(results(), (4 * 384 * len(count), 4 * 384 * batch), strict=True):
            data = word(block + 32)
            out.write(memory.read(store, data, data + size))
            call("release", block)
begin = time.perf_counter()
for _ in range(repeats):
    for block in results():
        call("release", block)
if repeats:
    sys.stdout.write(f"{(time.perf_counter() - begin) * 1e6 / repeats}\n")
