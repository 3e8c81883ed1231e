"""What tests of bodies that are cut get."""

from __future__ import annotations

from functools import partial

import pytest

from tangere.soft import step
from tangere.soft.cutting import cuts
from tangere.soft.incremental import InPlaceUpdate
from tangere.soft.safe_step.patches import Patches
from tangere.soft.solver.cuda.sweeps import CudaSweeps


@pytest.fixture(params=["here", "with a mirror"])
def road(request, monkeypatch) -> str:
    """Bodies are updated in place here; or as for a GPU, where kernels on the host write into copies that are sent."""
    if request.param == "with a mirror":
        monkeypatch.setattr(step, "Patches", partial(Patches, per_feature=True))
        monkeypatch.setattr(step, "CpuSweeps", CudaSweeps)
        monkeypatch.setattr(cuts, "InPlaceUpdate", partial(InPlaceUpdate, apart=True))
    return request.param
