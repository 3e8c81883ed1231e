"""People on floor plans: exits, sources, queues, lines, and what is measured of them."""

from tangere.crowd.floor.floor_obstacles import FloorObstacle, posed
from tangere.crowd.floor.measures import CountingLine, grid_density, voronoi_density
from tangere.crowd.floor.plans.building import Building, Stairs, load_plan
from tangere.crowd.floor.plans.floor_plan import FloorPlan
from tangere.crowd.floor.plans.narrow_doors import Door
from tangere.crowd.floor.plans.sheets import Sheet
from tangere.crowd.floor.records import FloorRun
from tangere.crowd.floor.simulation import FloorSimulation
from tangere.crowd.floor.stages import Stage

__all__ = [
    "Building",
    "CountingLine",
    "Door",
    "FloorObstacle",
    "FloorPlan",
    "FloorRun",
    "FloorSimulation",
    "Sheet",
    "Stage",
    "Stairs",
    "grid_density",
    "load_plan",
    "posed",
    "voronoi_density",
]
