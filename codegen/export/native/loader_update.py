"""Replacement of weights: a part of the Python loader, whose names it uses.

An export with replaceable weights contains the text after the marker; it replaces a line of
``loader.py``.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from .loader import NAME, StatefulModel, _Error, _raise
from .loader_weights import _Weights


# @BEGIN@
class OpenModel(StatefulModel):
    """An open model whose weights can be replaced."""

    def update(self, weights: str | Path | None = None, *, expected_sha256: str | None = None):
        """Replace the weights of later calls; calls may be running.

        ``weights`` is a file that ``tilewright weights pack`` has made, by default the file at the
        path of the present weights, which another process may have replaced by rename.
        ``expected_sha256`` is that of the tensors, which the header of the file contains. States
        keep their weights until they are reset. Raises ModelError, and keeps the weights, if the
        file does not fit the model.
        """
        with self._updating:
            path = self._weights.path if weights is None else Path(weights)
            new = _Weights(
                path, None, copy=self._copies, expected=expected_sha256, verify=self._verify
            )
            error = _Error()
            code = self._symbol(f"{NAME}_update")(
                self._model, ctypes.c_void_p(new.address), ctypes.c_int64(new.array.size), None,
                ctypes.byref(error),
            )  # fmt: skip
            _raise(code, error)
            self._earlier.append(self._weights)
            self._weights = new
            in_use = self._symbol(f"{NAME}_weights_in_use")
            self._earlier = [
                old for old in self._earlier if in_use(self._model, ctypes.c_void_p(old.address))
            ]
