"""Arrays nobody can change: what makes sharing them between meshes, caches and threads safe."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["read_only", "read_only_copy"]


def read_only(array: np.ndarray) -> np.ndarray:
    """`array` itself, from now on not writeable; for arrays nobody else holds."""
    array.flags.writeable = False
    return array


def read_only_copy(array: np.ndarray, dtype: Any) -> np.ndarray:
    """`array` itself if it is contiguous, of this type and not writeable already, else a read-only copy."""
    if array.dtype == dtype and array.flags.c_contiguous and not array.flags.writeable:
        return array
    return read_only(np.array(array, dtype=dtype, order="C"))
