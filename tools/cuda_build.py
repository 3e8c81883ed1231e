"""Do the kernels compile for CUDA? Asked without a GPU: Warp brings NVIDIA's compiler along.

python -m tools.cuda_build                 # every room
python -m tools.cuda_build query soft      # some of them

Kernels that are made on demand are made by asking each question about something tiny on the CPU first. What only a GPU
can show, that they run there and agree, is for `make test-gpu`.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from collections.abc import Iterator

import warp as wp

from tangere.cli.shared.first_calls import FIRST_CALLS
from tangere.cli.shared.kernels import ROOMS, modules_with_kernels, runs_on

__all__ = ["compile_for_cuda", "main", "units"]

#: Compute capability 9.0, Hopper.
ARCHITECTURE = 90


def units(room: str) -> Iterator[tuple[str, wp.Kernel]]:
    """What Warp compiles by itself, of the kernels of a room that run on CUDA: a name, and one kernel of it."""
    for _ in modules_with_kernels(room):  # which imports them
        pass
    for _, ask in FIRST_CALLS.get(room, ()):
        ask("cpu")
    found: dict[str, wp.Kernel] = {}
    for kernel in (each for each in gc.get_objects() if isinstance(each, wp.Kernel)):
        home = kernel.func.__module__
        if home.startswith(f"tangere.{room}.") and runs_on(home, cuda=True) and not kernel.is_generic:
            found.setdefault(f"{home}: {kernel.module.name}", kernel)
    yield from sorted(found.items())


def compile_for_cuda(kernel: wp.Kernel) -> None:
    """Compile the unit that a kernel belongs to; raises where the compiler refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        wp.compile_aot_module(kernel.module, arch=ARCHITECTURE, module_dir=folder)


def main(rooms: list[str]) -> int:
    """Compile what was asked for; the exit code is 1 where something was refused."""
    refused = 0
    for room in rooms or ROOMS:
        for name, kernel in units(room):
            begin = time.perf_counter()
            try:
                compile_for_cuda(kernel)
            except Exception as error:
                refused += 1
                print(f"{name}: REFUSED: {error}", flush=True)
            else:
                print(f"{name}: {time.perf_counter() - begin:.1f} s", flush=True)
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
