"""Access to the checker under `.ci/language`, which is not part of the package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / ".ci"))
