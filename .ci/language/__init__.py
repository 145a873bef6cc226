"""Checker of the project's vocabulary: `.venv/bin/python .ci/language [paths...]`."""
