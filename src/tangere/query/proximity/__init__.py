"""Which features are nearer than a distance, at one instant."""

from tangere.query.proximity.api import find_near, proximity
from tangere.query.proximity.contact_buffer import ContactBuffer
from tangere.query.proximity.detector import Detector
from tangere.query.proximity.exclusion import Exclusion
from tangere.query.proximity.posed import PosedColumns, PosedContacts, PosedProximity, ReducedContacts, reduce

__all__ = [
    "ContactBuffer",
    "Detector",
    "Exclusion",
    "PosedColumns",
    "PosedContacts",
    "PosedProximity",
    "ReducedContacts",
    "find_near",
    "proximity",
    "reduce",
]
