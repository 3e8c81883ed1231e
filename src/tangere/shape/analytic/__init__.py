"""Bodies given by formulas: cylinders, spheres, capsules, boxes, cones, convex hulls."""

from tangere.shape.analytic.bodies import (
    CONE,
    CYLINDER,
    HULL,
    ROUND,
    Analytic,
    AnalyticShape,
    Box,
    Capsule,
    Cone,
    ConvexMesh,
    Cylinder,
    Sphere,
)
from tangere.shape.analytic.column import column_of
from tangere.shape.analytic.placed_body import (
    Hulls,
    PlacedBody,
    across,
    bounds_of,
    hull_tables,
    one_of,
    place,
    reach_of,
    support_of,
)

__all__ = [
    "CONE",
    "CYLINDER",
    "HULL",
    "ROUND",
    "Analytic",
    "AnalyticShape",
    "Box",
    "Capsule",
    "Cone",
    "ConvexMesh",
    "Cylinder",
    "Hulls",
    "PlacedBody",
    "Sphere",
    "across",
    "bounds_of",
    "column_of",
    "hull_tables",
    "one_of",
    "place",
    "reach_of",
    "support_of",
]
