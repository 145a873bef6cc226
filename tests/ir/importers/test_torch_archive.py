"""Exported programs in files: nothing in them is executed before it is verified."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tilewright.ir.importers.torch_archive import UnverifiedArchiveError, verify_archive
from tilewright.workbench.cli import main

from tests.ir.importers.models import single_threaded

MODEL = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
INPUTS = "data/sample_inputs/model.pt"
CODE = "__import__('os').mkdir('EXECUTED')"

Damage = Callable[[dict[str, bytes]], None]


@cache
def records() -> dict[str, bytes]:
    """Return the records of a program with symbolic sizes, weights, constants, and wrappers."""
    torch = single_threaded()

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 5)
            self.constant = torch.ones(5)

        def forward(self, x: Any, y: Any) -> Any:
            found = torch.cat([self.linear(x) + self.constant, y], 0)
            with torch.no_grad():
                found = found.softmax(-1)
            return {"found": found, "size": x.shape[0] * 2 + torch.zeros(3)}

    dynamic = torch.export.Dim.DYNAMIC
    shapes = {"x": {0: dynamic}, "y": {0: dynamic}}
    inputs = torch.zeros(4, 3), torch.zeros(6, 5)
    file = io.BytesIO()
    torch.export.save(torch.export.export(Model(), inputs, dynamic_shapes=shapes), file)
    with zipfile.ZipFile(file) as archive:
        return {n.partition("/")[2]: archive.read(n) for n in archive.namelist()}


def saved(path: Path, content: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(f"archive/{name}", data)
    return path


def changed(record: str, change: Callable[[Any], Any]) -> Damage:
    """Return a change of the JSON data of a record."""

    def damage(content: dict[str, bytes]) -> None:
        data = json.loads(content[record])
        change(data)
        content[record] = json.dumps(data).encode()

    return damage


def everywhere(field: str, value: object) -> Damage:
    """Replace all values of a field of the program."""

    def replace(data: Any) -> None:
        if isinstance(data, dict):
            for key, inner in data.items():
                data[key] = value if key == field else inner
                replace(inner)
        if isinstance(data, list):
            for inner in data:
                replace(inner)

    return changed(MODEL, replace)


def graph_of(data: Any) -> Any:
    return data["graph_module"]["graph"]


def signature_of(data: Any) -> Any:
    return data["graph_module"]["module_call_graph"][0]["signature"]


def hidden_in_metadata(data: Any) -> None:
    """Hide an expression in a value whose name is that of a field with free text."""
    values = graph_of(data)["tensor_values"]
    values["metadata"] = json.loads(json.dumps(values["x"]))
    values["metadata"]["sizes"][0] = {"as_expr": {"expr_str": CODE}}


def in_weights(change: Callable[[Any], None], record: str = WEIGHTS) -> Damage:
    return changed(record, lambda data: change(next(iter(data["config"].values()))))


class Exploit:
    """An object whose unpickling executes code."""

    def __reduce__(self) -> Any:
        return eval, (CODE,)


def spec(**context: object) -> str:
    tree = {"type": "builtins.dict", "context": json.dumps(context), "children_spec": []}
    return json.dumps([1, tree])


def pickled(record: str, config: str = "") -> Damage:
    file_name = record.rpartition("/")[2]

    def damage(content: dict[str, bytes]) -> None:
        import torch

        file = io.BytesIO()
        torch.save(Exploit(), file)
        content[record] = file.getvalue()
        if config:
            in_weights(lambda entry: entry.update(path_name=file_name), config)(content)

    return damage


HOSTILE: dict[str, Damage] = {
    "expression": everywhere("expr_str", CODE),
    "expression in a list": everywhere("expr_str", [CODE]),
    "expression of unlimited size": everywhere("expr_str", "Pow(9, Pow(9, Pow(9, 9)))"),
    "expression with a string": everywhere("expr_str", "Symbol('a'), Lambda('b')"),
    "expression under the name of free text": changed(MODEL, hidden_in_metadata),
    "guard": changed(MODEL, lambda d: d.update(guards_code=[CODE])),
    "guard with a method": changed(
        MODEL, lambda d: d.update(guards_code=["L['x'].save('f') == 1"])
    ),
    "guard with a quote": changed(
        MODEL, lambda d: d.update(guards_code=["L['x\"); exit(); (\"'].size()[0] == 1"])
    ),
    "function of Python": everywhere("target", "torch.os.system"),
    "function of the operator module": everywhere("target", "_operator.attrgetter"),
    "library": everywhere("target", "torch.ops.load_library"),
    "method of an operator": everywhere("target", "torch.ops.aten.add.py_impl"),
    "file operator": everywhere("target", "torch.ops.aten.from_file.default"),
    "function as an argument": changed(
        MODEL,
        lambda d: graph_of(d)["nodes"][0]["inputs"].append(
            {"name": "f", "arg": {"as_operator": "torch.os.system"}, "kind": 1}
        ),
    ),
    "name with code": everywhere("name", f"x\n{CODE}\n"),
    "parameter name with code": changed(
        MODEL, lambda d: signature_of(d).update(forward_arg_names=[f"x={CODE}"])
    ),
    "module of an enumeration": changed(
        MODEL,
        lambda d: signature_of(d).update(
            in_spec=spec(__enum__=True, fqn="antigravity:A", name="B")
        ),
    ),
    "module of default values": changed(
        MODEL,
        lambda d: signature_of(d).update(
            in_spec=spec(
                default_factory_module="os", default_factory_name="getcwd", dict_context=[]
            )
        ),
    ),
    "range that is text": everywhere("min_val", CODE),
    "pickled weight": in_weights(lambda entry: entry.update(use_pickle=True)),
    "pickled constant": in_weights(lambda entry: entry.update(use_pickle=1), CONSTANTS),
    "custom object": pickled("data/constants/custom_obj_0", CONSTANTS),
    "opaque object": pickled("data/constants/opaque_obj_0", CONSTANTS),
    "sample inputs": pickled(INPUTS),
    "weights of an older format": pickled("data/weights/model.pt"),
    "constants of an older format": pickled("data/constants/model.pt"),
    "compiled code": lambda content: content.update({"data/aotinductor/m/m.so": b"\x7fELF"}),
    "unknown record": lambda content: content.update({"code.py": CODE.encode()}),
    "second program": lambda content: content.update(
        {"models/other.json": json.dumps({"expr_str": CODE}).encode()}
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_archive_that_executes_code_is_rejected(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = dict(records())
    HOSTILE[name](content)
    assert content != records()
    path = saved(tmp_path / "evil.pt2", content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnverifiedArchiveError, match="--trust"):
        verify_archive(path)
    assert main(["show", str(path)]) == 1
    assert capsys.readouterr().err.startswith("Unverified exported program: ")
    assert not (tmp_path / "EXECUTED").exists()


def test_records_outside_of_the_folder_of_the_archive_are_rejected(tmp_path: Path) -> None:
    path = saved(tmp_path / "evil.pt2", records())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("version", "1.0")
        archive.writestr("serialized_constants.pt", CODE)
    with pytest.raises(UnverifiedArchiveError, match="'version' outside of its folder"):
        verify_archive(path)


def test_the_expression_is_executed_with_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = dict(records())
    everywhere("expr_str", "__import__('os').mkdir('EXECUTED') or 1")(content)
    path = saved(tmp_path / "evil.pt2", content)
    monkeypatch.chdir(tmp_path)
    assert main(["show", str(path)]) == 1
    assert not (tmp_path / "EXECUTED").exists()
    assert main(["show", "--trust", str(path)]) == 1
    assert (tmp_path / "EXECUTED").exists()


def test_a_program_that_torch_export_saved_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path / "program.pt2", records())
    verify_archive(path)
    assert main(["show", str(path)]) == 0
    assert "def main(" in capsys.readouterr().out


def test_a_damaged_program_is_a_named_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (b"", b"[", b"[" * 100_000, b"[]", b'{"graph_module": 5}', b"\xff"):
        path = saved(tmp_path / "damaged.pt2", records() | {MODEL: text})
        assert main(["show", str(path)]) == 1
        assert capsys.readouterr().err.startswith("Invalid input file: ")
