"""Crowd jobs: how does a scenario, or an evacuation of a floor plan, go with these people and this seed?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tangere.crowd import (
    Bubbles,
    CollisionFreeSpeed,
    FloorPlan,
    FloorRun,
    FloorSimulation,
    Orca,
    SocialForce,
    Trajectories,
    scenarios,
)
from tangere.fleet.columns import Column, ColumnKind
from tangere.fleet.kinds.job_kind import JobKind, check_one_of
from tangere.fleet.part_store import JobTools
from tangere.runtime import InputError, using_threads

_RULES = {"bubbles": Bubbles, "orca": Orca, "speed": CollisionFreeSpeed, "force": SocialForce}
_SCENARIOS = ("circle", "city", "corridor", "field", "knot", "planet", "potatoid", "snake", "swarm")
_OF_PLANS = ("exits", "dt", "speed", "radius")
_FRAMES = 0.5  #: between two measures of a scenario [s]


class CrowdJobs(JobKind):
    """A scenario of the crowd room, or people who leave a floor plan."""

    name = "crowd"
    columns: ClassVar[dict[str, Column]] = {
        "plan": Column(ColumnKind.FILE, "a floor plan: .wkt, .geojson or .json"),
        "exits": Column(ColumnKind.TEXTS, "where people leave it: boxes x0,y0,x1,y1 [m], WKT or GeoJSON"),
        "scenario": Column(ColumnKind.TEXT, f"or a scenario: {', '.join(_SCENARIOS)}"),
        "people": Column(ColumnKind.WHOLE, "how many, or points of a scenario"),
        "seconds": Column(ColumnKind.NUMBER, "how long, at most [s]"),
        "behaviour": Column(ColumnKind.TEXT, f"how they steer: {', '.join(_RULES)}"),
        "speed": Column(ColumnKind.NUMBER, "of people on a plan, mean [m/s]"),
        "radius": Column(ColumnKind.NUMBER, "of people on a plan [m]"),
        "dt": Column(ColumnKind.NUMBER, "of a step on a plan [s]"),
        "seed": Column(ColumnKind.WHOLE, "of what is random"),
    }
    answers: ClassVar[dict[str, Any]] = {
        "arrived": int,
        "last_arrival": float,
        "travel_time": float,
        "flow": float,
        "densest": float,
        "stalling": float,
        "overlaps": float,
        "deepest": float,
        "mean_speed": float,
    }
    fine = ("done",)

    def check(self, given: set[str]) -> None:
        """A plan and exits, or a scenario; how many, and how long."""
        check_one_of(self.name, given, ("plan", "exits", "people", "seconds"), ("scenario", "people", "seconds"))
        misplaced = set(_OF_PLANS) & given if "scenario" in given else set()
        if misplaced:
            raise InputError(f"jobs: the column {sorted(misplaced)[0]!r} does not go with the other columns")

    def cost(self, row: Mapping[str, Any], sizes: Mapping[str, int]) -> float:
        """By people and steps."""
        return 0.1 + 4e-7 * row["people"] * row["seconds"] / row.get("dt", 0.02)

    def answer(self, row: dict[str, Any], tools: JobTools) -> dict[str, Any]:
        """Who has arrived, and the measures of the run."""
        rule = row.get("behaviour", "speed" if "plan" in row else "bubbles")
        if rule not in _RULES:
            raise InputError(f"behaviour must be one of {', '.join(_RULES)}, not {rule!r}")
        with using_threads(tools.threads):
            if "plan" in row:
                return _plan_told(_evacuation(row, _RULES[rule](), tools))
            if row["scenario"] not in _SCENARIOS:
                raise InputError(f"scenario must be one of {', '.join(_SCENARIOS)}, not {row['scenario']!r}")
            make = getattr(scenarios, row["scenario"])
            simulation = make(row["people"], behaviour=_RULES[rule](), seed=row.get("seed", 0), device=tools.device)
            return _scenario_told(simulation.run(row["seconds"], record=_FRAMES))


def _evacuation(row: Mapping[str, Any], behaviour: Any, tools: JobTools) -> FloorRun:
    plan, given = FloorPlan.load(row["plan"]), {"dt": 0.02} | {name: row[name] for name in ("dt",) if name in row}
    simulation = FloorSimulation(plan, behaviour=behaviour, seed=row.get("seed", 0), device=tools.device, **given)
    aims = [simulation.add_exit(FloorPlan.area_of(area)) for area in row["exits"]]
    traits = {name: row[name] for name in ("radius", "speed") if name in row}
    simulation.add_people(row["people"], to=aims, **traits)
    return simulation.run(row["seconds"], until="empty", record=0.2)


def _plan_told(run: FloorRun) -> dict[str, Any]:
    left = np.isfinite(run.left)
    return {
        "status": "done",
        "arrived": int(left.sum()),
        "last_arrival": float(run.evacuation_time),
        "travel_time": float(run.travel_times[left].mean()) if left.any() else None,
        "flow": float(run.flow),
        "densest": float(np.nanmax(run.density(1.0))),
    }


def _scenario_told(run: Trajectories) -> dict[str, Any]:
    last = {name: float(values[-1]) for name, values in run.measures.items()}
    return {
        "status": "done",
        "arrived": int(np.isfinite(run.arrived).sum()),
        "last_arrival": float(run.arrived.max(initial=0.0)),
        "travel_time": run.travel_time,
        "stalling": last["stalling"],
        "overlaps": last["overlaps"],
        "deepest": last["deepest"],
        "mean_speed": last["speed"],
    }
