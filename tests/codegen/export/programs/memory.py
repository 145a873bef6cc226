"""memory.py DIRECTORY OUT CALLS BATCH LENGTH: memory.c in Python.

Prints the microseconds of load, of the first call, and the median of the others, then the private
dirty bytes that the process gained since the state before load.
"""

import statistics
import sys
import time
from pathlib import Path

sys.modules["tilewright"] = None  # imports of it fail
sys.path.insert(0, sys.argv[1])

import numpy as np  # noqa: E402
from minilm import load  # noqa: E402  # the loader of the exported directory


def private_dirty():
    """Return the private dirty bytes of this process."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))


calls, batch, length = map(int, sys.argv[3:6])
k = np.arange(batch * length)
ids = (1000 + k * 7919 % 29000).reshape(batch, length)
mask = (k % length < length - k // length).astype(np.int64).reshape(batch, length)
before = private_dirty()
begin = time.perf_counter()
model = load(verify="trusted")
opened = time.perf_counter() - begin
times = []
for _ in range(calls):
    begin = time.perf_counter()
    results = model.main(ids, mask)
    times.append(time.perf_counter() - begin)
gained = private_dirty() - before
with Path(sys.argv[2]).open("wb") as out:
    for result in results:
        result.tofile(out)
figures = (opened, times[0], statistics.median(times[1:]))
sys.stdout.write(f"{' '.join(str(1e6 * t) for t in figures)} {gained}\n")
