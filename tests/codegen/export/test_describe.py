"""The description of an export: hashes, metadata, alignments, storages, and the C note."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.export.describe import (
    checked_metadata,
    custom_section,
    description_source,
    program_facts,
)
from tilewright.codegen.export.errors import ExportError
from tilewright.codegen.export.inspection import read_description
from tilewright.ir.dtype import f32
from tilewright.ir.module import Constant

from tests.codegen.export.conftest import TEXT, build


def test_the_hashes_are_those_of_the_functions_and_of_the_trace():
    module, other = build(), tw.parse(TEXT.replace("n <= 64", "n <= 63"))
    facts = program_facts(module, module)
    assert facts["trace"] == ""
    assert program_facts(other, other)["program"] != facts["program"]
    constants = {k: Constant(c.shape, f32, lambda s=c.shape: np.ones(s, np.float32))
                 for k, c in module.constants.items()}  # fmt: skip
    same = tw.parse(TEXT, constants=constants)  # other weights are the same program
    assert program_facts(same, same)["program"] == facts["program"]
    schedule = tw.Schedule(module)
    assert program_facts(schedule, schedule.module) == facts
    schedule.default_schedule()
    scheduled = program_facts(schedule, schedule.module)
    assert len(str(scheduled["trace"])) == 64
    assert scheduled["program"] != facts["program"]


def test_metadata_is_text():
    assert list(checked_metadata({"version": "1", "license": "MIT"})) == ["license", "version"]
    assert checked_metadata(None) == {}
    with pytest.raises(ExportError, match="metadata 'version': 1 is not text"):
        checked_metadata({"version": 1})  # type: ignore[dict-item]


def test_a_description_has_alignments_and_storages(exported):
    main, scores, _ = read_description(exported).facts["functions"]
    assert [p["alignment"] for p in main["params"]] == [4, 4]
    assert [s["name"] for s in scores["storages"]]
    assert all("*" in s["bytes"] or s["bytes"].isdecimal() for s in scores["storages"])


def test_the_note_in_c_contains_the_text():
    text = json.dumps({"name": 'a "b" \\ %', "long": "x" * 9001})
    note, body, function = description_source("m", text)
    lines = [json.loads(line) for line in body.removesuffix("};").splitlines()]
    assert "".join(lines) == text
    assert f", text[{-(-(len(text) + 1) // 4) * 4}];" in note
    assert "m_describe(void)" in function


@pytest.mark.parametrize("size", [1, 117, 200, 20_000])
def test_a_section_of_webassembly_has_the_size_of_its_text(tmp_path, size):
    path = tmp_path / "a.wasm"
    facts = {"schema": 1, "abi": 2, "name": "x" * size}
    path.write_bytes(b"\0asm\x01\0\0\0" + custom_section(json.dumps(facts)))
    assert read_description(path).facts == facts
