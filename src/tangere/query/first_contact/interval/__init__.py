"""First contact by interval arithmetic: engine B of the thesis, and an engine for whatever offers bounds of a point."""

from tangere.query.first_contact.interval.any_motion import first_contact_by_bounds
from tangere.query.first_contact.interval.meshes import Front, IntervalContacts, first_contacts_by_intervals
from tangere.query.first_contact.interval.options import Counters, IntervalOptions
from tangere.query.first_contact.interval.primitives import edge_edge_by_intervals, vertex_face_by_intervals
from tangere.query.first_contact.interval.surfaces import SurfaceContact, surfaces_first_contact

__all__ = [
    "Counters",
    "Front",
    "IntervalContacts",
    "IntervalOptions",
    "SurfaceContact",
    "edge_edge_by_intervals",
    "first_contact_by_bounds",
    "first_contacts_by_intervals",
    "surfaces_first_contact",
    "vertex_face_by_intervals",
]
