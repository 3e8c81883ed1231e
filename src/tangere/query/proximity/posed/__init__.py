"""Which features of rigid bodies, each posed, are nearer than a distance and hold them apart?"""

from tangere.query.proximity.posed.api import PosedProximity
from tangere.query.proximity.posed.details import PosedColumns
from tangere.query.proximity.posed.reduction import ReducedContacts, reduce
from tangere.query.proximity.posed.result import PosedContacts

__all__ = ["PosedColumns", "PosedContacts", "PosedProximity", "ReducedContacts", "reduce"]
