"""The object cache: keys, damaged entries, eviction, and concurrent writers."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.build.build_objects import build_objects
from tilewright.codegen.build.object_cache import (
    DEFAULT_LIMIT,
    CacheFolderWarning,
    CacheLimitError,
    DiskCache,
    default_cache,
    default_folder,
)
from tilewright.codegen.build.worker_pool import WorkerPool
from tilewright.codegen.compiler import BuildOptions, build
from tilewright.ir.dtype import f32
from tilewright.ir.graph.builder import GraphBuilder
from tilewright.ir.graph.nodes import TensorInfo
from tilewright.ir.module import Constant, Module
from tilewright.ir.symbolic import as_expr
from tilewright.target.target import Target

from tests.codegen.runtime.helpers import chain

TEXT = "define i32 @f() {\n  ret i32 7\n}\n"


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


def only_entry(cache: DiskCache) -> Path:
    (path,) = cache.folder.glob("??/*")
    return path


class NoPool(WorkerPool):
    """A pool that must not be used."""

    def run_all(self, *_args: object, **_options: object) -> list[bytes]:
        pytest.fail("compiled again")


def test_keys_depend_on_the_lengths_of_the_parts() -> None:
    assert DiskCache.key(b"ab", b"c") != DiskCache.key(b"a", b"bc")


def test_an_object_is_compiled_once(cache: DiskCache) -> None:
    target = Target("cpu")
    (first,) = build_objects([("f", TEXT)], target, store=cache).objects
    (second,) = build_objects([("f", TEXT)], target, store=cache, pool=NoPool()).objects
    assert first == second
    assert (cache.hits, cache.misses) == (1, 1)


def test_other_features_have_another_key(cache: DiskCache) -> None:
    build_objects([("f", TEXT)], Target("cpu"), store=cache)
    build_objects([("f", TEXT)], Target("cpu", features=("avx2",)), store=cache)
    assert cache.statistics().entries == 2


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign"])
def test_a_damaged_entry_is_compiled_again(cache: DiskCache, damage: str) -> None:
    target = Target("cpu")
    (first,) = build_objects([("f", TEXT)], target, store=cache).objects
    path = only_entry(cache)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    changed = {"cut": data[:-9], "flip": data, "empty": b"", "foreign": b"something else"}
    path.write_bytes(bytes(changed[damage]))
    (second,) = build_objects([("f", TEXT)], target, store=cache).objects
    assert first == second
    assert cache.get(path.name) == first


def test_the_oldest_entries_are_evicted_first(cache: DiskCache) -> None:
    for k in range(6):
        cache.put(f"{k:02}key", bytes(1000))
        os.utime(cache.folder / f"{k:02}" / f"{k:02}key", (k, k))
    cache.limit = 5000
    assert cache.get("00key") is not None
    removed = cache.evict()
    assert removed == 2
    assert cache.get("00key") is not None
    assert cache.get("01key") is None
    assert cache.statistics().bytes <= 5000


def test_writing_evicts_entries(cache: DiskCache) -> None:
    cache.limit = 50_000
    for k in range(200):
        cache.put(f"{k:03}", bytes(1000))
    assert cache.statistics().bytes <= 55_000


def test_clear(cache: DiskCache) -> None:
    for k in range(5):
        cache.put(f"{k:02}", b"x")
    assert cache.clear() == 5
    assert cache.statistics().entries == 0
    assert cache.get("01") is None


def test_a_folder_that_cannot_be_written_is_not_an_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = DiskCache(blocked / "cache")
    cache.put("key", b"value")
    assert cache.get("key") is None


PLACED = {
    "pipe": lambda path: os.mkfifo(path, 0o600),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "link to nothing": lambda path: path.symlink_to("missing"),
    "folder of another kind": lambda path: os.mknod(path, 0o600 | stat.S_IFSOCK),
    "file that others can write": lambda path: (path.write_bytes(b""), path.chmod(0o666)),
}


@pytest.mark.parametrize("kind", PLACED)
def test_an_entry_that_is_not_a_private_file_is_replaced(cache: DiskCache, kind: str) -> None:
    cache.put("key", b"value")
    path = only_entry(cache)
    path.unlink()
    PLACED[kind](path)
    assert cache.get("key") is None
    assert not os.path.lexists(path)
    cache.put("key", b"value")
    assert cache.get("key") == b"value"


def test_an_entry_under_another_key_is_removed(cache: DiskCache) -> None:
    cache.put("first", b"first")
    path = only_entry(cache)
    cache.put("fikey", b"second")
    path.replace(path.with_name("fikey"))
    assert cache.get("fikey") is None
    assert not os.path.lexists(path.with_name("fikey"))


def test_the_folder_is_private(cache: DiskCache) -> None:
    cache.put("key", b"value")
    assert {p.stat().st_mode & 0o777 for p in (cache.folder, cache.folder / "ke")} == {0o700}
    assert only_entry(cache).stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_can_write_is_not_used(cache: DiskCache) -> None:
    cache.put("key", b"value")
    cache.folder.chmod(0o777)
    with pytest.warns(CacheFolderWarning, match="is not used: other users can write") as caught:
        assert cache.get("key") is None
    assert cache.get("key") is None  # without a second warning
    assert len(caught) == 1
    cache.put("other", b"value")
    assert cache.statistics().entries == 1


HAMMER = """
import sys
from pathlib import Path
from tilewright.codegen.build.object_cache import DiskCache

cache, seed = DiskCache(Path(sys.argv[1]), limit=40_000), int(sys.argv[2])
for k in range(300):
    key = f"{(k * 7 + seed) % 20:02}key"
    if cache.get(key) not in (None, key.encode() * 500):
        sys.exit(3)
    cache.put(key, key.encode() * 500)
"""


def test_many_processes_at_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", HAMMER, str(tmp_path), str(k)]) for k in range(4)
    ]
    assert [p.wait(60) for p in processes] == [0] * 4
    assert not list(tmp_path.glob("??/.new-*"))


def test_many_threads_at_once(cache: DiskCache) -> None:
    wrong: list[str] = []

    def work(seed: int) -> None:
        for k in range(100):
            key = f"{(k + seed) % 10:02}"
            if cache.get(key) not in (None, key.encode() * 99):
                wrong.append(key)
            cache.put(key, key.encode() * 99)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_environment_sets_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "here"))
    monkeypatch.setenv("TILEWRIGHT_CACHE_LIMIT", "123")
    assert default_cache().folder == tmp_path / "here"
    assert default_cache().limit == 123
    monkeypatch.delenv("TILEWRIGHT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "tilewright"


def test_equal_modules_and_targets_have_equal_bytes(tmp_path: Path) -> None:
    target = Target("cpu")
    artifacts = [
        build(chain(4), target, BuildOptions(store=DiskCache(tmp_path / str(k))))[0].to_bytes()
        for k in range(2)
    ]
    assert artifacts[0] == artifacts[1]


@pytest.mark.parametrize("folded", [True, False])
def test_folded_weights_are_part_of_the_key(
    folded: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same model with other weights must not use the folded constants of the first one."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))

    def scaled(value: float) -> Module:
        b = GraphBuilder("main")
        info = TensorInfo((as_expr(4),), f32)
        x, scale = b.param("x", info), b.constant("scale", info)
        factor = b.emit("multiply", scale, scale) if folded else scale
        weight = Constant((4,), f32, lambda: np.full(4, value, np.float32))
        graph = b.finish([b.emit("multiply", x, factor)])
        return Module().with_functions(graph).with_constants({"scale": weight})

    first, other, again = (tw.compile(scaled(value)) for value in (2.0, 3.0, 2.0))
    x = np.ones(4, np.float32)
    expected = [4.0, 9.0, 4.0] if folded else [2.0, 3.0, 2.0]
    assert [exe(x)[0] for exe in (first, other, again)] == expected
    assert again.cached
    assert other.cached


@pytest.mark.parametrize("text", ["1GB", "-1", "1e9", "9" * 30])
def test_an_invalid_limit_is_rejected(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_LIMIT", text)
    with pytest.raises(CacheLimitError, match="expected a number of bytes, got") as caught:
        default_cache()
    assert caught.value.where == "environment variable TILEWRIGHT_CACHE_LIMIT"


def test_an_empty_limit_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_LIMIT", "")
    assert default_cache().limit == DEFAULT_LIMIT
