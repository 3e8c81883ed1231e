"""The examples of the pages about crowds run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

PAGES = Path(__file__).parents[2] / "docs"


def example(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    """The names a page's first Python example leaves."""
    monkeypatch.syspath_prepend(tmp_path)
    code = re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(encoding="utf-8"), re.DOTALL)[0]
    # Warp reads functions from their file.
    (tmp_path / "printed_example.py").write_text(code, encoding="utf-8")
    names: dict = {}
    exec(compile(code, str(tmp_path / "printed_example.py"), "exec"), names)
    return names


def test_the_crowd_of_the_systems_page_runs(tmp_path, monkeypatch):
    names = example("systems/cells-and-crowds.md", tmp_path, monkeypatch)
    walked = names["simulation"].positions[:, :2] - names["starts"]
    assert np.median(walked[:, 0]) > 10.0
    assert len(names["result"].measures["stalling"]) == 21


def test_a_behaviour_of_ones_own_brings_agents_past_each_other(tmp_path, monkeypatch):
    simulation = example("rooms/crowd.md", tmp_path, monkeypatch)["simulation"]
    assert np.isfinite(simulation.arrived).all()
    np.testing.assert_allclose(simulation.positions[:, 0], [20.0, 4.0], atol=0.6)
