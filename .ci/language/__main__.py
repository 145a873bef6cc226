"""Entry point of `.venv/bin/python .ci/language`."""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path

signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # so that `| head` ends it quietly
# The folder is run as a program, so its parent has to be importable for relative imports to work.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.exit(importlib.import_module("language.cli").main(sys.argv[1:]))
