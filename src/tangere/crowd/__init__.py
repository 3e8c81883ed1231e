"""Crowds: agents that go to their goals and keep clear of each other, in cells that adapt to them."""

from tangere.crowd import scenarios
from tangere.crowd.bodies import Body, Cage, box, chain, deformable, rigid
from tangere.crowd.bubbles import Bubbles
from tangere.crowd.drawing import plot_measures, top_view
from tangere.crowd.observing import Surroundings
from tangere.crowd.obstacles import Obstacle
from tangere.crowd.orca import Orca
from tangere.crowd.planning import Planner
from tangere.crowd.simulation import Simulation
from tangere.crowd.stepping import Behaviour
from tangere.crowd.street_map import load_streets
from tangere.crowd.trajectories import Trajectories

__all__ = [
    "Behaviour",
    "Body",
    "Bubbles",
    "Cage",
    "Obstacle",
    "Orca",
    "Planner",
    "Simulation",
    "Surroundings",
    "Trajectories",
    "box",
    "chain",
    "deformable",
    "load_streets",
    "plot_measures",
    "rigid",
    "scenarios",
    "top_view",
]
