"""The page of a recorded run, driven by its own methods."""

from __future__ import annotations

import socket

import pytest

from tangere.shape import generate
from tangere.soft import Body, Recorder, Simulation
from tangere.view import ReplayViewer

pytest.importorskip("viser", reason="the viewer needs the extra [view]")


def test_a_replay_tells_seconds_and_the_contacts_of_the_frame_that_is_shown():
    floor = generate.sheet(8, size=(3.0, 3.0))
    under = Body(floor.replace(vertices=floor.vertices - [0.0, 0.0, 0.1]), fixed=True, name="floor")
    simulation = Simulation([Body(generate.sheet(8), name="sheet"), under], device="cpu", distance=0.05)
    recorder = Recorder(simulation)
    recorder()
    counts = [0]
    for _ in range(2):
        simulation.run(steps=4)
        recorder()
        counts.append(len(simulation.contacts))
    assert len(set(counts)) > 1
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with ReplayViewer(recorder.recording(), port=port) as viewer:
        for moment, count in zip((0.0, 0.5, 1.0), counts, strict=True):
            viewer.set_time(moment)
            assert viewer._slider.value == pytest.approx(0.16 * moment)
            assert viewer.summary().split("  \n") == [f"t = {0.16 * moment:.2f} s of 0.16 s", f"{count} contacts"]
        assert viewer._slider.label == "time [s]"
        assert not hasattr(viewer, "_show_points")  # the balls at contacts have switches of their own
