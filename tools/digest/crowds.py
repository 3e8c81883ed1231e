"""Questions to simulations of crowds."""

from __future__ import annotations

from typing import Any

import numpy as np

import tangere as tg
from tools import words
from tools.digest.answers import Book, section


def _crowd_state(book: Book, case: str, simulation: Any) -> None:
    """Where everybody is, and in which cells."""
    found = {"positions": words.crowd_positions(simulation), "velocities": words.crowd_velocities(simulation)}
    found |= {"cells": simulation.cells, "arrived": simulation.arrived, "operations": np.array(simulation.operations)}
    found |= {"leaves": simulation.map.leaves, "levels": simulation.map.levels[simulation.map.leaves]}
    if len(simulation.bodies):
        found["particles"] = words.crowd_particles(simulation)
    book.keep(case, found)
    book.ask(f"{case}.observed", simulation.observe)


@section
def crowd(book: Book) -> None:
    """Steps of every scenario, with bodies, ORCA, obstacles and detours."""
    make = words.scenarios
    scenes = {
        "corridor": lambda: make.corridor(120, 6, length=60.0, width=24.0, device="cpu"),
        "planet": lambda: make.planet(80, 4, device="cpu"),
        "circle": lambda: make.circle(80, 8, size=80.0, device="cpu"),
        "snake": lambda: make.snake(150, 1, device="cpu"),
        "field": lambda: make.field(200, device="cpu"),
        "city": lambda: make.city(60, 2, blocks=2, device="cpu"),
        "knot": lambda: make.knot(80, 4, device="cpu"),
        "potatoid": lambda: make.potatoid(80, 4, device="cpu"),
        "swarm": lambda: make.swarm(120, device="cpu"),
    }
    for name, start in book.some(scenes.items(), 2):
        simulation = start()
        book.keep(f"{name}.start", {"positions": words.crowd_positions(simulation)})
        words.crowd_step(simulation, book.size(50, 8))
        _crowd_state(book, name, simulation)
    orca = make.field(book.size(200, 60), behaviour=tg.crowd.Orca(range=1.5), device="cpu")
    words.crowd_step(orca, book.size(50, 6))
    _crowd_state(book, "orca", orca)
    if book.quick:
        return
    _crowd_obstacles(book)
    start = make.corridor(60, 4, length=48.0, width=24.0, device="cpu", seed=3)
    run = words.crowd_run(start, 2.0, 0.5)
    names = ("times", "positions", "velocities", "particles", "bodies", "set_off", "arrived")
    book.keep("trajectories", {name: getattr(run, name) for name in names})
    book.keep("measures", run.measures)
    apart = make.field(
        150, separate=True, behaviour=tg.crowd.Bubbles(range=1.5, view=200.0, field="distance"), device="cpu"
    )
    words.crowd_step(apart, 40)
    _crowd_state(book, "separate", apart)


def _crowd_obstacles(book: Book) -> None:
    """Detours around obstacles that come and go; groups, chains and bodies that give way."""
    grid = words.quad_grid(6, 6, size=6.0, device="cpu")
    bubbles = tg.crowd.Bubbles(range=1.5, cohesion=0.5)
    simulation = tg.crowd.Simulation(grid, behaviour=bubbles, adaptive=words.Density(8, 4), adapt_every=5)
    across = np.stack(np.meshgrid(np.linspace(2, 34, 9), np.linspace(2, 34, 9)), axis=-1).reshape(-1, 2)
    simulation.add_points(across, goals=across[::-1].copy(), groups=np.arange(81) % 5)
    outline = np.array([[1.2, 0.0], [0.6, 0.5], [-0.6, 0.5], [-1.2, 0.0], [-0.6, -0.5], [0.6, -0.5]])
    soft_body = tg.crowd.deformable(outline, plastic_yield=0.05, plastic_creep=1.0, plastic_max=0.2)
    for body, start in ((soft_body, (6.0, 17.0)), (tg.crowd.chain(4, 2.0, 1.0), (30.0, 25.0))):
        simulation.add_bodies(body, [start], headings=[[1.0, 0.2]], goals=[[[18.0, 18.0], [3.0, 3.0]]], repeat=True)
    obstacle = tg.crowd.Obstacle(simulation, [18.0, 18.0], 4.0)
    for step, centre in enumerate(([18.0, 18.0], [20.0, 16.0], [24.0, 12.0])):
        obstacle.move(centre)
        words.crowd_step(simulation, 20)
        book.keep(f"obstacle{step}.cells", obstacle.cells)
        book.ask(f"obstacle{step}.rerouted", simulation.reroute)
        _crowd_state(book, f"obstacle{step}", simulation)
    simulation.retarget([3, 5, 8], across[:3])
    book.ask("plan", simulation.plan, across[:12], across[::-1][:12].copy(), clearance=0.5, penalty=0.2)
    obstacle.remove()
    words.crowd_step(simulation, 20)
    _crowd_state(book, "removed", simulation)
    wall = words.quad_grid(8, 8, size=4.0, device="cpu")
    centres = wall.numpy("centre")[wall.leaves]
    wall.block("cell", wall.leaves[(np.abs(centres[:, 0] - 14.0) < 1.0) & (centres[:, 1] < 24.0)])
    planned = tg.crowd.Planner(wall, clearance=0.4).routes([[2.0, 2.0], [9.0, 6.0]], [[30.0, 2.0], [20.0, 4.0]])
    book.keep("planner", planned)
    around = tg.crowd.Simulation(wall, behaviour=tg.crowd.Orca(range=1.5))
    starts = np.stack(np.meshgrid(np.linspace(2, 8, 5), np.linspace(2, 12, 6)), axis=-1).reshape(-1, 2)
    around.add_points(starts, goals=starts + (20.0, 0.0), radius=0.25)
    words.crowd_step(around, 60)
    _crowd_state(book, "around", around)
    wide = tg.crowd.Simulation(words.quad_grid(4, 4, size=12.0, device="cpu"), whole_edges=True, dt=0.05)
    wide.add_bodies(tg.crowd.box(4.0, 2.0), [[24.0, 24.0]], headings=[[1.0, 0.0]], goals=[[[40.0, 24.0]]])
    wide.add_points(starts + 20.0, goals=starts + 4.0)
    words.crowd_step(wide, 30)
    _crowd_state(book, "whole_edges", wide)
    cage = tg.crowd.Cage(outline, book.rng("cage").uniform(-0.4, 0.4, (30, 3)))
    book.ask("cage", cage.follow, outline * (1.2, 0.8))
