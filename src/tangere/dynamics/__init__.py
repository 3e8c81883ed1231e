"""What happens next: rigid parts that touch, slide and bounce, and never interpenetrate."""

from tangere.dynamics.body import Body
from tangere.dynamics.energy import RigidEnergy
from tangere.dynamics.joint import WorldJoint
from tangere.dynamics.material import ContactMaterial
from tangere.dynamics.stepping.report import WorldTruncation
from tangere.dynamics.world import World
from tangere.dynamics.world_body import WorldBody

__all__ = ["Body", "ContactMaterial", "RigidEnergy", "World", "WorldBody", "WorldJoint", "WorldTruncation"]
