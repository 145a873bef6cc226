"""The table of the error messages of calls."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from tilewright.codegen.export.link import NATIVE
from tilewright.codegen.messages import Code, Message, dtype_text, strides_text, term_text


def test_codes_are_those_of_the_header() -> None:
    header = (NATIVE / "tilewright.h").read_text(encoding="utf-8")
    codes = re.search(r"^/\* Error codes;.*\nenum \{\n([^}]*)\}", header, re.MULTILINE)
    assert codes is not None
    pairs = re.findall(r"\bTW_(?:ERROR_)?(\w+) = (\d+)", codes.group(1))
    assert {name: int(code) for name, code in pairs} == {c.name: int(c) for c in Code}


@pytest.mark.parametrize("message", Message, ids=lambda m: m.name)
def test_templates_have_named_fields_only(message: Message) -> None:
    parts = list(Formatter().parse(message.template))
    fields = [field for _, field, *_ in parts if field is not None]
    assert all(field.isidentifier() for field in fields)
    assert len(set(fields)) == len(fields)
    assert not any(spec or conversion for _, _, spec, conversion in parts)
    assert message.template.isascii()


def test_members_with_the_same_code_have_different_texts() -> None:
    assert list(Message.__members__) == [message.name for message in Message]


@pytest.mark.parametrize(
    ("dtype", "text"),
    [("bfloat16", "bf16"), ("bool", "bool"), ("torch.int8", "i8"), ("object", "object")],
)
def test_dtypes_have_the_names_of_annotations(dtype: str, text: str) -> None:
    assert dtype_text(dtype) == text


def test_strides_that_are_not_whole_elements() -> None:
    assert strides_text([6, 4], 4) == "(3/2, 1)"


def test_terms_name_at_most_the_recorded_symbols() -> None:
    assert term_text("a * b", 6, {"a": 2, "b": 3}) == (
        "a * b = 6 (with a = 2, b = 3 from the other arguments)"
    )
