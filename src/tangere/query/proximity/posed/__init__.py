"""Which features of rigid bodies, each posed, are nearer than a distance and hold them apart?"""

from tangere.query.proximity.posed.api import PosedProximity
from tangere.query.proximity.posed.details import PosedColumns
from tangere.query.proximity.posed.feature_keys import EDGE_EDGE, EDGE_VERTEX, VERTEX_EDGE, key_parts
from tangere.query.proximity.posed.features import MeshFeatures, patch_outlines
from tangere.query.proximity.posed.reduction import ReducedContacts, reduce
from tangere.query.proximity.posed.result import PosedContacts

__all__ = [
    "EDGE_EDGE",
    "EDGE_VERTEX",
    "VERTEX_EDGE",
    "MeshFeatures",
    "PosedColumns",
    "PosedContacts",
    "PosedProximity",
    "ReducedContacts",
    "key_parts",
    "patch_outlines",
    "reduce",
]
