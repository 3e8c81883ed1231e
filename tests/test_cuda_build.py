"""Every kernel compiles for CUDA, also where there is no GPU to run it on."""

from __future__ import annotations

import pytest

from tangere.cli.shared.kernels import ROOMS
from tools.cuda_build import compile_for_cuda, units

pytestmark = [pytest.mark.slow, pytest.mark.release]


@pytest.mark.parametrize("room", ROOMS)
def test_every_kernel_of_a_room_compiles_for_cuda(room):
    refused = {}
    for name, kernel in units(room):
        try:
            compile_for_cuda(kernel)
        except Exception as error:  # Warp raises what the compiler says
            refused[name] = str(error)
    assert not refused
