"""The scenarios of the thesis, and an open field: each gives a simulation ready to run; and `standards`.

The scenes: Pitiot 2015, section 8.3.2; in space section 9.1.1.
"""

from tangere.crowd.scenarios import standards
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
    "standards",
    "swarm",
]
