"""Warp, started quietly, and kernels loaded before they are used.

Importing this module imports Warp but touches no GPU: Warp starts with the first array or launch, or at once on a
machine without a CUDA driver, where it would otherwise complain on stderr.
Setting TANGERE_DEBUG=1 compiles every kernel with bounds checks (Warp's debug mode).
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import warp as wp

wp.config.log_level = wp.LOG_ERROR
# Warp keeps the address of a launch's tile memory in one static per module: two launches at once would share it.
wp.config.enable_tiles_in_stack_memory = None
if os.environ.get("TANGERE_DEBUG") == "1":
    wp.config.mode = "debug"

#: Options of every module whose kernels decide a contact: no gradients (half the compile time), and sums of products
#: rounded after each operation, so that error bounds and exact zeros hold alike on CPU and CUDA. Two operations of Warp
#: are fused all the same, on both: a product of two matrices, and `wp.ddot`. They keep the bounds, for they round less
#: often, and have the same bits everywhere. But a difference that is zero in numbers may not be so there: what decides
#: by a sign or by an exact zero is therefore written in numbers and vectors (tests/runtime/test_rounding.py).
SOUND = {"enable_backward": False, "fuse_fp": False, "fast_math": False}

#: CUDA threads per block: float64 kernels hold many registers (4 M queries decided with 256: 0.76 ms, with 128: 0.51).
BLOCK = 128

#: The part of a CUDA device's memory that may stay with the process for the next query.
KEPT_PART = 0.25

_NOTICE_AFTER_SECONDS = 0.5
_loaded: set[tuple[wp.Kernel, str]] = set()
_loading = threading.Lock()
_announced = False


def load(kernel: wp.Kernel, device: wp.Device) -> None:
    """Compile `kernel` for `device` unless that is done; says so on stderr, once, when it takes a while."""
    key = (kernel, device.alias)
    if key in _loaded:
        return
    with _loading, _notice():
        _keep_memory(device)
        wp.load_module(kernel.module, device=device, block_dim=BLOCK if device.is_cuda else None)
    _loaded.add(key)


def _keep_memory(device: wp.Device) -> None:
    """Let freed memory stay with the process: by default every synchronisation returns it to the driver."""
    if device.is_cuda and wp.is_mempool_enabled(device):
        kept = int(KEPT_PART * device.total_memory)
        if wp.get_mempool_release_threshold(device) < kept:
            wp.set_mempool_release_threshold(device, kept)


def _has_cuda_driver() -> bool:
    """Whether the driver library Warp looks for can be loaded; loading it touches no GPU."""
    for library in ["nvcuda.dll"] if sys.platform == "win32" else ["libcuda.so", "libcuda.so.1"]:
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return True
    return False


def _start_without_driver() -> None:
    """Start Warp with file descriptor 2 aside: its native code warns there of a missing driver at any log level."""
    try:
        stderr = os.dup(2)
    except OSError:  # a process without stderr has nobody to disturb
        wp.init()
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        wp.init()
    finally:
        os.dup2(stderr, 2)
        os.close(nowhere)
        os.close(stderr)


@contextmanager
def _notice() -> Iterator[None]:
    timer = threading.Timer(_NOTICE_AFTER_SECONDS, _announce)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _announce() -> None:
    global _announced
    if not _announced:
        _announced = True
        from rich.console import Console

        Console(stderr=True).print("[dim]tangere: compiling kernels (once)[/dim]")


def _keep_struct_dtypes() -> None:
    """Let every struct of Warp make its NumPy dtype once.

    Warp spells it anew for each array, with formats such as "3<f8", which NumPy reads by Python's parser. That takes a
    seventh of small queries, and where several threads do it at once Python 3.11 raises a SystemError now and then.
    """
    kind: Any = type(_Spelled)
    spell = kind.numpy_dtype

    def numpy_dtype(struct: Any) -> np.dtype:
        kept = struct.__dict__.get("numpy_dtype_kept")
        if kept is None:
            kept = struct.__dict__["numpy_dtype_kept"] = np.dtype(_read(spell(struct)))
        return kept

    kind.numpy_dtype = numpy_dtype


def _read(form: Any) -> Any:
    """A format without words for Python's parser: "3<f8" and "(3, 3)<f8" as dtypes, also within others."""
    if isinstance(form, dict):
        return {**form, "formats": [_read(part) for part in form["formats"]]}
    if isinstance(form, str) and (found := re.fullmatch(r"\(?([\d, ]+)\)?(\D.*)", form)):
        return np.dtype((found[2], tuple(int(n) for n in found[1].split(",") if n.strip())))
    return form


@wp.struct
class _Spelled:
    nothing: wp.int32


_keep_struct_dtypes()
if not _has_cuda_driver():
    _start_without_driver()
