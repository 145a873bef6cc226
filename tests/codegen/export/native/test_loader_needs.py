"""``model.needs`` of the Python loader."""

from __future__ import annotations

from tests.codegen.export.test_loader import plain


def test_shapes_by_name(exported):
    done = plain(exported, """
        model = load()
        print(model.needs("main", x=(5, 24), y=(5, 40))["results"])
        needs = model.needs("scores", x=(5, 1000))
        print(needs["results"], needs["exact"], needs["state_bytes"], needs["workspace_bytes"] > 0)
        for given in ({}, {"x": (5, 24)}, {"x": (5, 24), "y": (5, 40), "z": 1}):
            try: model.needs("main", **given)
            except ModelError as error: print(error)
        try: model.needs("main", x=(5, 23), y=(5, 40))
        except ModelError as error: print(error.code, error)
        try: model.needs("main", x=(5, "n"), y=(5, 40))
        except ModelError as error: print(error)
    """)  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["{'c': (5, 40), 'd': (5,)}", "{'s': (5, 1000)} True 0 True"]
    assert lines[2:5] == [
        "expected sizes of x, y, got none",
        "expected sizes of x, y, got x",
        "expected sizes of x, y, got x, y, z",
    ]
    assert lines[5].startswith("3 function 'main', parameter 'x'")
    assert "expected an integer, got str" in lines[6]
