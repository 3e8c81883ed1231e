"""Which features are nearer than a distance, at one instant."""

from tangere.query.proximity.api import find_near, proximity
from tangere.query.proximity.contact_buffer import ContactBuffer
from tangere.query.proximity.detector import Detector
from tangere.query.proximity.exclusion import Exclusion

__all__ = [
    "ContactBuffer",
    "Detector",
    "Exclusion",
    "find_near",
    "proximity",
]
