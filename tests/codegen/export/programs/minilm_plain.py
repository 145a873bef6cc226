"""minilm_plain.py DIRECTORY OUT REPEATS (BATCH LENGTH)...: minilm.c in Python."""

import sys
import time
from pathlib import Path

sys.modules["tilewright"] = None  # imports of it fail
sys.path.insert(0, sys.argv[1])

import numpy as np  # noqa: E402
from minilm import load  # noqa: E402  # the loader of the exported directory

model, repeats = load(), int(sys.argv[3])
numbers = list(map(int, sys.argv[4:]))
with Path(sys.argv[2]).open("wb") as out:
    for batch, length in zip(numbers[::2], numbers[1::2], strict=True):
        k = np.arange(batch * length)
        ids = (1000 + k * 7919 % 29000).reshape(batch, length)
        mask = (k % length < length - k // length).astype(np.int64).reshape(batch, length)
        for result in model.main(ids, mask):
            result.tofile(out)
begin = time.perf_counter()
for _ in range(repeats):
    model.main(ids, mask)
if repeats:
    sys.stdout.write(f"{(time.perf_counter() - begin) * 1e6 / repeats}\n")
