"""The Python loader and the file of the weights: written, truncated, replaced, missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.codegen.export.test_loader import plain


@pytest.fixture
def copy(exported: Path, tmp_path: Path) -> Path:
    shutil.copytree(exported, tmp_path / "small")
    return tmp_path / "small"


SETUP = """
        import os
        from pathlib import Path
        x, y = np.ones((5, 24), "f"), np.ones((5, 40), "f")
        def error(call):
            try:
                return call()
            except ModelError as problem:
                return problem
"""


def run(folder: Path, code: str) -> list[str]:
    done = plain(folder, SETUP + code)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_file_that_was_replaced_by_rename_remains_mapped(copy):
    path = copy / "small.safetensors"
    lines = run(copy, f"""
        model = load(watch=True)
        wanted = model.main(x, y)
        path = Path({str(path)!r})
        print(model.check_weights())
        Path("{path}.new").write_bytes(bytes(path.stat().st_size))
        os.replace("{path}.new", path)
        print(model.check_weights())
        print(np.array_equal(model.main(x, y)[0], wanted[0]))
        path.unlink()
        print(model.check_weights())
        print(np.array_equal(model.main(x, y)[0], wanted[0]))
    """)  # fmt: skip
    assert lines == ["False", "True", "True", "False", "True"]


def test_a_file_that_was_truncated_or_rewritten_is_an_error(copy):
    path = copy / "small.safetensors"
    lines = run(copy, f"""
        model, plain, copied = load(watch=True), load(), load(copy_weights=True)
        path = Path({str(path)!r})
        facts, data = path.stat(), path.read_bytes()
        print(facts.st_ino, facts.st_size)
        with path.open("r+b") as file:
            file.truncate(100)
        print(error(lambda: model.main(x, y)))
        print(error(plain.check_weights))
        with path.open("r+b") as file:
            file.write(data)
        os.utime(path, ns=(0, 5))
        print(error(lambda: model.main(x, y=y)))
        os.utime(path, ns=(0, facts.st_mtime_ns))
        print(len(model.main(x, y)))
        path.write_bytes(b"")
        print(copied.check_weights(), len(copied.main(x, y)))
    """)  # fmt: skip
    inode, size = lines[0].split()
    head = f"{path}: the mapped file (inode {inode}) was written:"
    assert lines[1].startswith(f"{head} size {size} is now 100; replace files by rename")
    assert lines[2] == lines[1]
    assert lines[3].startswith(f"{head} modification time ")
    assert " is now 5; " in lines[3]
    assert lines[4:] == ["2", "False 2"]


def test_other_weights_require_a_replaceable_export(copy):
    lines = run(copy, """
        print(error(lambda: load(weights="other.safetensors")))
        print(error(lambda: load(expected_sha256="0")))
        print(hasattr(load(), "update"))
    """)  # fmt: skip
    other = "other weights require an export with weights='replaceable'"
    assert lines == [other, other, "False"]


def test_verified_files_are_not_read_again(copy):
    """Trusted files are compared by size and header; damaged elements are not found."""
    path, library = copy / "small.safetensors", copy / "libsmall.so"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    library.write_bytes(library.read_bytes()[:-1] + b"?")
    lines = run(copy, f"""
        print(error(lambda: load(verify="open")))
        print(len(load(verify="trusted").main(x, y)))
        print(error(lambda: load(verify="lazily")))
        path = Path({str(path)!r})
        data = path.read_bytes()
        path.write_bytes(data[:40] + b"?" + data[41:])
        print(error(lambda: load(verify="trusted")))
        path.write_bytes(data[:-1])
        print(error(lambda: load(verify="trusted")))
    """)  # fmt: skip
    assert lines[0] == f"{library}: the sha256 differs from that in the manifest"
    assert lines[1:4] == [
        "2",
        "verify: expected 'open' or 'trusted', got 'lazily'",
        "the header of the weights is not that of the exported file",
    ]
    assert f"expected {len(data)} bytes, got {len(data) - 1} bytes" in lines[4]
