"""`tangere crowd` runs scenarios, says how it went, and leaves pictures and trajectories."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import main


@pytest.mark.release
def test_a_corridor_leaves_its_pictures_and_trajectories(tmp_path):
    pytest.importorskip("matplotlib")
    command = ["crowd", "corridor", "--points", "40", "--bodies", "2", "--seconds", "1", "--save", "npz"]
    result = CliRunner().invoke(main, [*command, "--out", str(tmp_path), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert "40 points, 2 bodies" in result.output
    assert {path.name for path in tmp_path.iterdir()} == {"corridor.png", "corridor-measures.png", "corridor.npz"}
    with np.load(tmp_path / "corridor.npz") as file:
        assert file["positions"].shape == (3, 40, 3)


def test_what_does_not_go_together_is_told_in_a_sentence(tmp_path):
    for words, reason in (
        (["swarm", "--bodies", "3"], "have no shape"),
        (["swarm", "--behaviour", "orca"], "planar"),
        (["corridor", "--points", "100000"], "do not fit"),
    ):
        result = CliRunner().invoke(main, ["crowd", *words, "--out", str(tmp_path), "--device", "cpu"])
        assert result.exit_code == 2
        assert reason in result.output


@pytest.mark.release
def test_a_page_shows_a_crowd_and_an_obstacle_dragged_through_it():
    pytest.importorskip("viser")
    from tangere.cli.crowd_live import CrowdViewer
    from tangere.crowd.scenarios import corridor

    simulation = corridor(60, 2, length=60.0, width=24.0, device="cpu")
    before = len(simulation.map.leaves)
    with CrowdViewer(simulation) as viewer:
        assert viewer.run(3) == 3
        viewer.drag((30.0, 12.0, 0.0))
        viewer.run(2)
        assert len(simulation.map.leaves) > before
        assert "the obstacle blocks" in viewer.summary()
        viewer.drag((34.0, 12.0, 0.0))
        viewer.take_away()
        assert viewer.run(2) == 2
        assert not simulation.map.arrays.obstacle.numpy().any()
