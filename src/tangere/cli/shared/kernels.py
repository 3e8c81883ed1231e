"""All kernels of the library, room by room, compiled before anybody waits for them.

Method: most kernels stand in a module and are compiled without being asked anything; those that are made on demand
        (for a kind of primitive, of body, of neighbour) by asking each question about something tiny (`first_calls`).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import warp as wp

from tangere.cli.shared.first_calls import FIRST_CALLS
from tangere.runtime import choose_device, load

#: Rooms from the bottom up; the documents as printed are not on the main road.
ROOMS = (
    "runtime",
    "geometry",
    "motion",
    "shape",
    "bvh",
    "broad_phase",
    "query",
    "scene",
    "cells",
    "dynamics",
    "soft",
    "crowd",
    "needle",
    "robot",
    "assembly",
    "hand",
    "view",
    "compat",
)
#: Modules of C++ for the CPU that stand in no folder of that name: trees for SIMD lanes, the thread pool.
_LANES = ("tangere.bvh.wide.", "tangere.bvh.eights.", "tangere.runtime.thread_pool.")
#: What Warp writes when it has compiled something.
_COMPILED = {".o", ".cubin", ".ptx"}


def warm_devices(device: str | None) -> list[wp.Device]:
    """The device asked for; None means the CPU and, if present, CUDA."""
    if device is not None:
        return [choose_device(device)]
    return [wp.get_device("cpu"), *([choose_device("cuda")] if wp.is_cuda_available() else [])]


def runs_on(name: str, *, cuda: bool) -> bool:
    """Whether the kernels of a module are for CUDA, or for the CPU: not those of a twin for the other."""
    if not cuda:
        return "cuda" not in name.split(".")
    return "cpu" not in name.split(".") and not name.startswith(_LANES)


def compilations(devices: list[wp.Device]) -> list[tuple[str, str, Callable[[], object]]]:
    """All there is to compile: room, what, and the call that does it; one that was done before takes no time."""
    found: list[tuple[str, str, Callable[[], object]]] = []
    for room in ROOMS:
        for device in devices:
            for name, kernels in modules_with_kernels(room):
                if runs_on(name, cuda=device.is_cuda):
                    short = name.removeprefix(f"tangere.{room}.")
                    found.append((room, short, partial(_load_all, kernels, device)))
    for device in devices:
        for room, calls in FIRST_CALLS.items():
            found += [(room, name, partial(ask, device.alias)) for name, ask in calls]
    return found


def modules_with_kernels(room: str) -> Iterator[tuple[str, list[wp.Kernel]]]:
    """The modules of a room that have kernels of their own, with one kernel of each unit that Warp compiles."""
    package = importlib.import_module(f"tangere.{room}")
    names = [
        package.__name__,
        *(found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
    ]
    for name in names:
        values = vars(importlib.import_module(name)).values()
        units = {value.module.name: value for value in values if isinstance(value, wp.Kernel)}
        kernels = [kernel for kernel in units.values() if kernel.func.__module__ == name]
        if kernels:
            yield name, kernels


def _load_all(kernels: list[wp.Kernel], device: wp.Device) -> None:
    for kernel in kernels:
        load(kernel, device)


def compiled_files() -> set[Path]:
    """What Warp keeps on disk of kernels that are compiled."""
    wp.init()
    folder = Path(wp.config.kernel_cache_dir)
    return {path for path in folder.rglob("*") if path.suffix in _COMPILED}
