"""People on floor plans: exits, sources, queues, lines, and what is measured of them."""

from tangere.crowd.floor.floor_plan import FloorPlan
from tangere.crowd.floor.measures import CountingLine, grid_density, voronoi_density
from tangere.crowd.floor.narrow_doors import Door
from tangere.crowd.floor.records import FloorRun
from tangere.crowd.floor.simulation import FloorSimulation
from tangere.crowd.floor.stages import Stage

__all__ = [
    "CountingLine",
    "Door",
    "FloorPlan",
    "FloorRun",
    "FloorSimulation",
    "Stage",
    "grid_density",
    "voronoi_density",
]
