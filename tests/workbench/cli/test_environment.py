"""The commands ``lab``, ``cache`` and ``doctor``."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from tilewright.target.host import HOST_FEATURES
from tilewright.workbench.cli.environment import diagnose, lab_command


def test_cache_counts_and_clears(run, monkeypatch, tmp_path: Path, matmul: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWRIGHT_CACHE_LIMIT", "4096")
    assert run("cache", "--json").data["entries"] == 0
    (tmp_path / "cache" / "ab").mkdir(parents=True)
    (tmp_path / "cache" / "ab" / "abcd").write_bytes(b"x" * 100)
    assert run("cache", "info", "--json").data == {
        "folder": str(tmp_path / "cache"),
        "entries": 1,
        "bytes": 100,
        "limit": 4096,
    }
    assert run("cache", "clear", "--json").data == {"removed": 1}


def test_doctor_checks_the_requirements(run, monkeypatch) -> None:
    monkeypatch.delenv(HOST_FEATURES, raising=False)
    ran = run("doctor", "--json")
    found = {finding["name"]: finding for finding in ran.data["findings"]}
    assert ran.code == 0
    assert found["compile and run"]["found"] == "works"
    assert found["processor"]["ok"]
    assert "feature cap" not in found


def test_doctor_reports_a_cap_of_the_detected_features(monkeypatch) -> None:
    monkeypatch.setenv(HOST_FEATURES, "avx2")
    found = {finding.name: finding for finding in diagnose()}
    assert found["feature cap"].ok
    assert (
        found["feature cap"].found == "TILEWRIGHT_HOST_FEATURES=avx2 hides all features beyond avx2"
    )
    assert "(avx2)" in found["processor"].found


def test_doctor_reports_an_unknown_cap(run, monkeypatch) -> None:
    monkeypatch.setenv(HOST_FEATURES, "avx1024")
    ran = run("doctor")
    assert ran.code == 1
    assert "!!  feature cap" in ran.out
    assert "TILEWRIGHT_HOST_FEATURES='avx1024' does not name a feature set" in ran.out


def test_lab_command_line() -> None:
    options = Namespace(path="notebooks", port=9999, no_browser=True)
    command = lab_command(options)
    assert command[1:4] == ["-m", "jupyterlab", "notebooks"]
    assert {"--port=9999", "--no-browser"} <= set(command)
