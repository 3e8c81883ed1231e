"""Addresses that commands print are whole, with their token, and can be clicked: nothing clings to them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from click.testing import CliRunner

from tangere.cli import main
from tangere.motion import Linear
from tangere.scene import Scene
from tangere.shape import generate
from tangere.view import Viewer

pytest.importorskip("viser", reason="the viewer needs the extra [view]")


def printed(monkeypatch, *words: object) -> tuple[list[str], Viewer]:
    """Addresses that a command prints, and the page that it opened."""
    opened = []
    monkeypatch.setattr(Viewer, "wait", lambda self: opened.append(self))
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code in (0, 1), result.output
    return re.findall(r"http://[^\s]*", result.output), opened[0]


def test_every_command_prints_the_address_with_its_token_and_a_blank_after_it(tmp_path, monkeypatch):
    ball, floor = generate.icosphere(1), generate.sheet(2, size=(4.0, 4.0))
    ball = ball.replace(vertices=ball.vertices + [0.0, 0.0, 3.0])
    for name, mesh in (("ball", ball), ("low", ball.replace(vertices=ball.vertices - [0, 0, 4.0])), ("floor", floor)):
        mesh.save(tmp_path / f"{name}.ply")
    poses = "t,x,y,z,qw,qx,qy,qz\n10,0,0,0,1,0,0,0\n14,0,0,-4,1,0,0,0\n"
    (tmp_path / "poses.csv").write_text(poses)
    Scene.of(ball.moving(Linear(np.asarray(ball.vertices) - [0.0, 0.0, 1.0])), floor).save(tmp_path / "scene.npz")
    commands = (
        ("view", tmp_path / "scene.npz"),
        ("first-contact", tmp_path / "ball.ply", tmp_path / "floor.ply", "--to", tmp_path / "low.ply", "--view"),
        (
            "check",
            tmp_path / "ball.ply",
            "--against",
            tmp_path / "floor.ply",
            "--path",
            tmp_path / "poses.csv",
            "--view",
        ),
    )
    for words in commands:
        addresses, viewer = printed(monkeypatch, *words)
        assert addresses == [viewer.url]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}", viewer.url)
    # the last page is that of a path with a clock of its own: 2 m of 4 in 4 s from t = 10
    first, last = viewer._slider.min, viewer._slider.max
    assert (first, last) == (10.0, 14.0)
    assert viewer._slider.value == pytest.approx(12.0, abs=0.02)
    assert "first contact at t = 1" in viewer.summary()
