"""The GPU of a page, which a workbench provides while it loads an executable."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.artifact import Artifact
from tilewright.codegen.errors import DeviceUnavailableError
from tilewright.codegen.runtime.webgpu.device import opened_device
from tilewright.codegen.runtime.webgpu.pages import used_page

from tests.codegen.runtime.webgpu.test_device import COPY

BROWSER = tw.Target("webgpu", where="browser")


def test_an_executable_is_loaded_for_the_page_of_its_thread() -> None:
    exe = tw.compile(tw.parse(COPY), BROWSER)
    with pytest.raises(DeviceUnavailableError, match="in the page of a workbench"):
        exe(np.ones(3, np.float32))
    with used_page(opened_device()):
        assert exe.device is opened_device()
    np.testing.assert_array_equal(exe(np.ones(3, np.float32)), np.full(3, 2))


def test_an_artifact_keeps_the_location() -> None:
    artifact = tw.compile(tw.parse(COPY), BROWSER).artifact
    assert Artifact.from_bytes(artifact.to_bytes()).target == BROWSER
