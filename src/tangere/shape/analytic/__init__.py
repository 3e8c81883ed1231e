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
from tangere.shape.analytic.placed_body import (
    Hulls,
    PlacedBody,
    bounds_of,
    function_for_kind,
    hull_tables,
    perpendicular_to,
    place,
    support_of,
    support_value_of,
)
from tangere.shape.analytic.vertical_line import vertical_interval_of

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
    "bounds_of",
    "function_for_kind",
    "hull_tables",
    "perpendicular_to",
    "place",
    "support_of",
    "support_value_of",
    "vertical_interval_of",
]
