"""What every test gets: fixed seeds, sizes that shrink with TANGERE_EFFORT, and the data folder when there is one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

#: How hard to try: 1 is the usual size of samples; the run with bounds checks uses a tenth.
EFFORT = float(os.environ.get("TANGERE_EFFORT", "1"))

_examples = {
    "deadline": None,
    "max_examples": max(5, round(100 * EFFORT)),
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("fixed", derandomize=True, database=None, **_examples)
settings.register_profile("explore", **_examples)
settings.load_profile("fixed")  # `pytest --hypothesis-profile=explore` looks for new examples instead


@pytest.fixture
def effort() -> Callable[..., int]:
    """`effort(100_000)` is that many, less when TANGERE_EFFORT is below 1, and never below `least`."""
    return lambda count, least=10: max(min(least, count), round(count * EFFORT))


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same ones on every run."""
    return np.random.default_rng(20261115)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of public query sets and meshes that TANGERE_DATA names."""
    folder = os.environ.get("TANGERE_DATA")
    if not folder:
        pytest.skip("TANGERE_DATA does not name a folder of query sets and meshes")
    return Path(folder)


def _devices() -> list:
    from tangere.runtime import choose_device

    return ["cpu", pytest.param("cuda:0", marks=pytest.mark.cuda)] if choose_device(None).is_cuda else ["cpu"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `device` runs on every kind of device there is."""
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", _devices())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test of CUDA kernels is skipped where there are none."""
    if item.get_closest_marker("cuda") is not None and len(_devices()) == 1:
        pytest.skip("there is no CUDA device")


#: What asks the library as a user does: the kernels behind it have tests of their own.
_USE = ("cli", "view", "scene", "compat", "test_examples.py", "test_package.py", "test_coming_from.py")
#: Rooms whose kernels take minutes to compile and run with bounds checks: `make test-slow` does that.
_LONG = ("soft", "crowd", "cells", "dynamics", "needle", "robot")
_QUERIES = ("query", "geometry", "published")
_LONG_QUERIES = ("test_rigid", "test_manifold", "test_terrain", "test_interval", "test_screw", "test_proximity")
_LONG_QUERIES += ("test_cpu_broad_phase", "test_parallel_sort", "test_representative", "test_frontier", "test_leaving")
_LONG_QUERIES += ("test_least_clearance", "test_largest_step", "test_redon_recession", "test_path_check")
_LONG_QUERIES += ("test_posed", "test_prepared_first_contact", "test_redon_dynamics", "test_chain_layout")
_LONG_QUERIES += ("test_every_pair",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say what the run with bounds checks leaves out: commands, pictures, examples, and what would take too long."""
    here = Path(__file__).parent
    for item in items:
        place = item.path.relative_to(here).parts
        if place[0] in _USE:
            item.add_marker(pytest.mark.release)
        if place[0] in _LONG or (place[0] in _QUERIES and item.path.name.startswith(_LONG_QUERIES)):
            item.add_marker(pytest.mark.long_in_debug)
