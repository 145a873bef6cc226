"""Error messages of the four loaders: the same text for the same invalid call.

The loaders are the executable in this process, the exported library called from C, its Python
loader, and the JavaScript loader of the WebAssembly module.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Formatter

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.c_messages import (
    IN_C,
    IN_JAVASCRIPT,
    IN_PYTHON,
    OF_UPDATES,
    OF_WEBGPU,
    ON_PAGES,
    c_functions,
    loader_table,
)
from tilewright.codegen.export.link import NATIVE
from tilewright.codegen.export.web import PARTS
from tilewright.codegen.messages import Message
from tilewright.errors import TilewrightError

from tests.codegen.export.test_shared import PROGRAMS

PAGE = ("web.mjs", "values.mjs", *(f"web_{part}.mjs" for part in PARTS))
"""The sources of the loader of models for WebGPU."""

TEXT = """
n = symbols("n", lower=0, upper=64)
m = symbols("m", lower=1)

@prim_func
def add(x: Buffer[(n, 4), f32], y: Buffer[(n * 2,), f32], k: Int, total: InOut[(n, 4), f32]):
    for i in range(n):
        for j in range(4):
            total[i, j] = total[i, j] + x[i, j] * y[i * 2] * f32(k)

@prim_func
def gather(x: Buffer[(n, 4), f32], at: Buffer[(m,), i64], y: Out[(m, 4), f32]):
    for i in range(m):
        for j in range(4):
            with block("take"):
                vi, vj = spatial(i), spatial(j)
                with checked(at[vi], 0, n) as row:
                    y[vi, vj] = x[row, vj]

@graph_func
def main(x: Tensor[(m, 4), f32]):
    fact(m <= 8, "few rows", at="model.py:1", by="entry_check")
    y = relu(x)
    return y
"""
ALL = frozenset({"executable", "c", "python", "javascript"})
NOT_JAVASCRIPT = ALL - {"javascript"}
"""The loaders for strided, misaligned or read-only arrays, which JavaScript does not have."""
IN_X = r"function 'add', parameter 'x' (Tensor((n, 4), f32)): "
IN_TOTAL = r"function 'add', parameter 'total' (Tensor((n, 4), f32)): "


def ones(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.ones(shape, dtype)


def misaligned() -> np.ndarray:
    return np.zeros(3 * 4 * 4 + 2, np.uint8)[2:].view(np.float32).reshape(3, 4)


def read_only() -> np.ndarray:
    array = ones(3, 4)
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class Case:
    """An invalid call: its arguments, its error, and the loaders that can make it."""

    function: str
    arguments: tuple[object, ...]
    code: int
    message: str
    loaders: frozenset[str] = ALL


def adding(code: int, message: str, loaders: frozenset[str] = ALL, **changes: object) -> Case:
    """Return a call of ``add`` with some arguments replaced."""
    valid = {"x": ones(3, 4), "y": ones(6), "k": 1, "total": ones(3, 4)}
    return Case("add", tuple((valid | changes).values()), code, message, loaders)


SHARED = ones(3, 4)
CASES = {
    "dtype": adding(
        1, IN_X + "expected dtype f32, got f64", x=ones(3, 4, dtype="float64")
    ),
    "big_endian": adding(
        1, IN_X + "expected dtype f32, got >f4", frozenset({"executable", "python"}),
        x=ones(3, 4).astype(">f4"),
    ),
    "rank": adding(2, IN_X + "expected rank 2, got rank 1 (shape (12,))", x=ones(12)),
    "strides": adding(
        4,
        IN_X + "expected compact row-major elements, got strides (1, 3) (in elements) "
        "of shape (3, 4)",
        NOT_JAVASCRIPT,
        x=ones(4, 3).T,
    ),
    "alignment": adding(
        5, IN_X + "expected an address that is a multiple of 4 bytes", NOT_JAVASCRIPT,
        x=misaligned(),
    ),
    "read_only": adding(
        6, IN_TOTAL + "the function writes this parameter (inout), but the argument is read-only",
        frozenset({"executable", "python"}), total=read_only(),
    ),
    "dimension": adding(
        3, IN_X + "dimension 1 of shape (3, 5): expected 4, got 5", x=ones(3, 5)
    ),
    "symbol": adding(
        3, IN_TOTAL + "dimension 0 of shape (2, 4): expected n = 3 from the other arguments, got 2",
        total=ones(2, 4),
    ),
    "term": adding(
        3, "function 'add', parameter 'y' (Tensor((n * 2,), f32)): dimension 0 of shape (7,): "
        "expected n * 2 = 6 (with n = 3 from the other arguments), got 7",
        y=ones(7),
    ),
    "alias": adding(
        8, IN_TOTAL + "'total' (inout) shares memory with 'x' (in)", x=SHARED, total=SHARED
    ),
    "bound": adding(
        9, "function 'add': symbol out of range: n <= 64 is false for n = 65",
        x=ones(65, 4), y=ones(130), total=ones(65, 4),
    ),
    "fact": Case(
        "main", (ones(9, 4),), 9,
        "function 'main': the program assumes m <= 8, which is false for m = 9",
    ),
    "kernel": Case(
        "gather", (ones(3, 4), np.array([0, 5])), 13,
        "function 'gather', kernel 'gather' (binding 'run_gather'): at: integer read from memory "
        "is out of range in block 'take', in checked(at[i], 0, n), line 10 of 'gather': "
        "with checked(at[vi], 0, n) as row: (value 5, exclusive upper bound 3)",
    ),
    "least": Case(
        "gather", (ones(3, 4), np.array([0, -1])), 13,
        "function 'gather', kernel 'gather' (binding 'run_gather'): at: integer read from memory "
        "is out of range in block 'take', in checked(at[i], 0, n), line 10 of 'gather': "
        "with checked(at[vi], 0, n) as row: (value -1, least value 0)",
    ),
    "integer": adding(
        1, "function 'add', parameter 'k' (i64): expected an integer, got float",
        frozenset({"executable", "python"}), k=1.5,
    ),
    "count": Case(
        "main", (), 0,
        "function 'main': number of arguments: expected 1, got 0: main(x: Tensor((m, 4), f32))",
        ALL - {"c"},
    ),
}  # fmt: skip


class Tensor(ctypes.Structure):
    """``tw_tensor`` of the header."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class Error(ctypes.Structure):
    """``tw_error`` of the header."""

    _fields_ = (
        ("code", ctypes.c_int32),
        ("parameter", ctypes.c_int32),
        ("message", ctypes.c_char * 504),
    )


ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Runtime(ctypes.Structure):
    """``tw_runtime`` of the header."""

    _fields_ = (
        ("size", ctypes.c_int64), ("version", ctypes.c_int64), ("context", ctypes.c_void_p),
        ("alloc", ALLOC), ("free", FREE), ("parallel", ctypes.c_void_p),
        ("threads", ctypes.c_int64), ("flags", ctypes.c_uint64),
    )  # fmt: skip


class Library:
    """The exported library, called by its C interface."""

    def __init__(self, directory: Path) -> None:
        self.library = ctypes.CDLL(str(directory / "liberrors.so"))
        manifest = json.loads((directory / "errors.json").read_text())
        self.results = {
            f["name"]: sum(r["param"] < 0 for r in f["results"]) for f in manifest["functions"]
        }
        libc = ctypes.CDLL(None)
        libc.aligned_alloc.restype = ctypes.c_void_p
        libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        libc.free.argtypes = [ctypes.c_void_p]
        libc.free.restype = None

        def allocate(_context: int, size: int, alignment: int) -> int:
            return libc.aligned_alloc(alignment, -(-size // alignment) * alignment)

        self.runtime = Runtime(
            ctypes.sizeof(Runtime), 2, None, ALLOC(allocate),
            FREE(lambda _, memory: libc.free(memory)), None, 1, 0,
        )  # fmt: skip
        self.model = ctypes.c_void_p()
        self.weights = (directory / "errors.safetensors").read_bytes()
        start = np.zeros(len(self.weights) + 16, np.uint8)
        offset = -start.ctypes.data % 16
        self.memory = start[offset : offset + len(self.weights)]
        self.memory[:] = np.frombuffer(self.weights, np.uint8)
        error = Error()
        code = self.library.errors_open(
            ctypes.byref(self.runtime), ctypes.c_void_p(self.memory.ctypes.data),
            ctypes.c_int64(len(self.weights)), ctypes.byref(self.model), ctypes.byref(error),
        )  # fmt: skip
        assert code == 0, error.message

    def error(self, case: Case) -> tuple[int, str]:
        owners: list[object] = []
        words = [self.word(argument, owners) for argument in case.arguments]
        results = [ctypes.c_void_p() for _ in range(self.results[case.function])]
        error = Error()
        code = getattr(self.library, f"errors_{case.function}")(
            self.model, *words, *map(ctypes.byref, results), ctypes.byref(error)
        )
        assert code == error.code
        return code, error.message.decode()

    @staticmethod
    def word(argument: object, owners: list[object]) -> object:
        if isinstance(argument, int):
            return ctypes.c_int64(argument)
        assert isinstance(argument, np.ndarray)
        shape = (ctypes.c_int64 * argument.ndim)(*argument.shape)
        strides = (ctypes.c_int64 * argument.ndim)(
            *(s // argument.itemsize for s in argument.strides)
        )
        owners += [argument, shape, strides]
        code, bits = {"i": 0, "f": 2}[argument.dtype.kind], 8 * argument.itemsize
        tensor = Tensor(
            argument.ctypes.data, 1, 0, argument.ndim, code, bits, 1,
            ctypes.addressof(shape), ctypes.addressof(strides), 0,
        )  # fmt: skip
        return ctypes.byref(tensor)


class Loaders:
    """The model in the four loaders; each method returns code and text of the error of a call."""

    def __init__(self, folder: Path) -> None:
        module = tw.parse(TEXT)
        self.executable_ = tw.compile(module)
        self.shared = tw.export(module, folder / "shared", name="errors").directory
        self.wasm = tw.export(module, folder / "wasm", name="errors", kind="wasm").directory
        self.library = Library(self.shared)
        spec = importlib.util.spec_from_file_location("errors", self.shared / "errors.py")
        assert spec is not None
        assert spec.loader is not None
        self.loader = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.loader)
        self.model = self.loader.load()

    def executable(self, case: Case) -> tuple[int, str]:
        with pytest.raises(TilewrightError) as caught:
            self.executable_[case.function](*case.arguments)
        error = caught.value
        return case.code, f"{error.where}: {error.message}"

    def c(self, case: Case) -> tuple[int, str]:
        return self.library.error(case)

    def python(self, case: Case) -> tuple[int, str]:
        with pytest.raises(self.loader.ModelError) as caught:
            getattr(self.model, case.function)(*case.arguments)
        return caught.value.code, str(caught.value)

    def javascript(self, case: Case) -> tuple[int, str]:
        name = next(n for n, c in CASES.items() if c is case)
        code, text = self.javascript_errors[name]
        return code, text

    @cached_property
    def javascript_errors(self) -> dict[str, tuple[int, str]]:
        node = shutil.which("node")
        assert node, "no node: `make test` finds or installs it"
        cases = {
            name: {"function": case.function, "arguments": _plain(case.arguments)}
            for name, case in CASES.items()
            if "javascript" in case.loaders
        }
        path = self.wasm.parent / "cases.json"
        path.write_text(json.dumps(cases))
        done = subprocess.run(
            [node, PROGRAMS / "errors.mjs", self.wasm, path],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def _plain(arguments: tuple[object, ...]) -> list[object]:
    """Return arguments as JSON; arguments that share memory refer to the first one."""
    plain: list[object] = []
    for k, argument in enumerate(arguments):
        same = next((j for j in range(k) if arguments[j] is argument), None)
        if isinstance(argument, np.ndarray) and same is not None:
            plain.append({"same": same})
        elif isinstance(argument, np.ndarray):
            data = argument.ravel().tolist()
            plain.append({"dtype": str(argument.dtype), "shape": argument.shape, "data": data})
        else:
            plain.append(argument)
    return plain


@pytest.fixture(scope="module")
def loaders(tmp_path_factory) -> Loaders:
    return Loaders(tmp_path_factory.mktemp("errors"))


@pytest.mark.parametrize("name", CASES)
def test_all_loaders_raise_the_same_error(loaders: Loaders, name: str) -> None:
    case = CASES[name]
    found = {loader: getattr(loaders, loader)(case) for loader in sorted(case.loaders)}
    assert found == dict.fromkeys(sorted(case.loaders), (case.code, case.message))


@pytest.mark.parametrize("message", IN_C, ids=lambda m: m.name)
def test_every_message_of_libraries_is_used_by_the_shim(message: Message) -> None:
    parts = ("shim.c", "open.c", "blocks.c")
    sources = "".join((NATIVE / part).read_text() for part in parts)
    generated = "fail_null_result(begin(error)"  # in the generated public functions
    assert f"fail_{message.name.lower()}(" in sources + generated


def test_every_message_of_replaceable_weights_is_used() -> None:
    sources = (NATIVE / "schema.c").read_text() + (NATIVE / "update.c").read_text()
    assert all(f"fail_{message.name.lower()}(" in sources for message in OF_UPDATES)


def test_every_message_of_models_for_webgpu_is_used() -> None:
    source = (NATIVE / "web.c").read_text()
    assert all(f"fail_{message.name.lower()}(" in source for message in OF_WEBGPU)


@pytest.mark.parametrize("message", [*IN_C, *OF_WEBGPU], ids=lambda m: m.name)
def test_c_functions_write_the_texts_of_the_templates(message: Message) -> None:
    (function,) = (f for f in c_functions(web=True) if f" fail_{message.name.lower()}(" in f)
    literals = [json.loads(text) for text in re.findall(r'put\(&w, (".*")\);', function)]
    fields = re.findall(r"\(&w, (\w+)\);", function)
    parts = list(Formatter().parse(message.template))
    assert literals == [literal for literal, *_ in parts if literal]
    assert fields == [field for _, field, *_ in parts if field is not None]
    assert f"TW_ERROR_{message.code.name});" in function


@pytest.mark.parametrize(
    ("files", "messages", "pattern"),
    [
        (("loader.py",), IN_PYTHON, r'(?:_error|_text)\(\s*"(\w+)"'),
        (("loader.mjs", "values.mjs"), IN_JAVASCRIPT, r'(?:failure|text)\("(\w+)"'),
        (PAGE, ON_PAGES, r'(?:failure|text)\("(\w+)"'),
    ],
    ids=["python", "javascript", "page"],
)
def test_loaders_contain_the_messages_that_they_use(
    files: tuple[str, ...], messages: tuple[Message, ...], pattern: str
) -> None:
    used = set(re.findall(pattern, "".join((NATIVE / file).read_text() for file in files)))
    assert used == set(json.loads(loader_table(messages)))
