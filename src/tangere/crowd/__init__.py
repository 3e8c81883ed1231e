"""Crowds: agents that go to their goals and keep clear of each other, in cells that adapt to them."""

from tangere.crowd import scenarios
from tangere.crowd.agents.step_kernel import Behaviour
from tangere.crowd.bodies import Body, Cage, box, chain, deformable, rigid
from tangere.crowd.environment import cell_edges, cell_triangles, wall_edges, wall_quads
from tangere.crowd.floor import (
    Building,
    CountingLine,
    Door,
    FloorObstacle,
    FloorPlan,
    FloorRun,
    FloorSimulation,
    Sheet,
    Stage,
    Stairs,
    grid_density,
    load_plan,
    posed,
    voronoi_density,
)
from tangere.crowd.navigation.planning import Planner
from tangere.crowd.navigation.street_map import StreetMap
from tangere.crowd.observation import Observation
from tangere.crowd.obstacles import Obstacle
from tangere.crowd.simulation import Simulation
from tangere.crowd.steering.bubbles import Bubbles
from tangere.crowd.steering.collision_free_speed import CollisionFreeSpeed
from tangere.crowd.steering.orca import Orca
from tangere.crowd.steering.social_force import SocialForce
from tangere.crowd.trajectories import Recorder, Trajectories, check_format

__all__ = [
    "Behaviour",
    "Body",
    "Bubbles",
    "Building",
    "Cage",
    "CollisionFreeSpeed",
    "CountingLine",
    "Door",
    "FloorObstacle",
    "FloorPlan",
    "FloorRun",
    "FloorSimulation",
    "Observation",
    "Obstacle",
    "Orca",
    "Planner",
    "Recorder",
    "Sheet",
    "Simulation",
    "SocialForce",
    "Stage",
    "Stairs",
    "StreetMap",
    "Trajectories",
    "box",
    "cell_edges",
    "cell_triangles",
    "chain",
    "check_format",
    "deformable",
    "grid_density",
    "load_plan",
    "posed",
    "rigid",
    "scenarios",
    "voronoi_density",
    "wall_edges",
    "wall_quads",
]
