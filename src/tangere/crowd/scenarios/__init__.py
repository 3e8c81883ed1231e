"""The scenarios of the thesis, and an open field: each gives a simulation ready to run.

Spec: specs/pitiot-multiresolution-interactions 2.22 (generators), 2.23, 3.3.
"""

from tangere.crowd.scenarios.city import city
from tangere.crowd.scenarios.plane import circle, corridor, field, snake
from tangere.crowd.scenarios.space import coulomb_sphere, swarm
from tangere.crowd.scenarios.surfaces import knot, planet, potatoid

__all__ = [
    "circle",
    "city",
    "corridor",
    "coulomb_sphere",
    "field",
    "knot",
    "planet",
    "potatoid",
    "snake",
    "swarm",
]
