"""On a GPU: the same steps as on the CPU, hardly a word to the host, and lists that grow when they are too short."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from soft_oracle import overlaps
from tangere.runtime import choose_device
from tangere.soft import detection, scenes, truncation


@pytest.fixture
def cuda() -> str:
    if not choose_device(None).is_cuda:
        pytest.skip("there is no CUDA device")
    return "cuda"


@pytest.mark.parametrize("scene", [scenes.tori, scenes.knot], ids=["tori", "knot"])
def test_a_step_on_the_gpu_is_the_step_of_the_cpu(cuda, scene):
    """One step of each from the same state, again and again, within 1e-10 of the size of the scene."""
    there, here = scene(device=cuda), scene(device="cpu")
    size = here._assembly.whole.extent
    for _ in range(12):
        there.run(5)
        for body in range(len(here.bodies)):
            here.set_state(body, positions=there.positions(body), velocities=there.velocities(body))
        there.step()
        here.step()
        for body in range(len(here.bodies)):
            assert np.abs(there.positions(body) - here.positions(body)).max() <= 1e-10 * size
        assert there.rows.count == here.rows.count
        assert not overlaps(there)


def test_a_step_reads_back_a_few_counters_once(cuda, monkeypatch):
    simulation = scenes.tori(stiffness=1e3, device=cuda)
    simulation.run(80)
    reads = []
    plain = wp.array.numpy
    monkeypatch.setattr(wp.array, "numpy", lambda array: (reads.append(array.size * 4), plain(array))[1])
    for _ in range(20):
        simulation.step()
    assert max(reads) <= 64  # bytes
    assert len(reads) <= 20 + 5  # a crowded step may ask whether a few more rounds are needed


def test_lists_that_are_too_short_grow_and_the_step_is_done_again(cuda, monkeypatch):
    roomy = scenes.tori(stiffness=1e3, device=cuda)
    monkeypatch.setattr(detection, "LEAST_ROOM", 4)
    monkeypatch.setattr(truncation, "LEAST_ROOM", 4)
    tight = scenes.tori(stiffness=1e3, device=cuda)
    for _ in range(8):
        roomy.run(10)
        for body in range(2):
            tight.set_state(body, positions=roomy.positions(body), velocities=roomy.velocities(body))
        roomy.step()
        tight.step()
        assert tight.rows.count == roomy.rows.count
        assert np.abs(tight.positions(1) - roomy.positions(1)).max() < 1e-10
    assert tight._detection.touching.room > 4
