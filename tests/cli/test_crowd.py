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
