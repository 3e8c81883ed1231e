"""What happens next: rigid parts that touch, slide and bounce, and never interpenetrate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tangere.dynamics.body import Body
from tangere.dynamics.energy import RigidEnergy
from tangere.dynamics.joint import WorldJoint
from tangere.dynamics.material import ContactMaterial
from tangere.dynamics.stepping.events import WorldImpacts
from tangere.dynamics.stepping.report import WorldTruncation
from tangere.dynamics.world import World
from tangere.dynamics.world_body import WorldBody
from tangere.dynamics.world_copies import WorldCopies

if TYPE_CHECKING:
    from tangere.dynamics import scenes
    from tangere.dynamics.drawing import arrows, force_arrows, size_of
    from tangere.dynamics.recording import Recorder, Recording

__all__ = [
    "Body",
    "ContactMaterial",
    "Recorder",
    "Recording",
    "RigidEnergy",
    "World",
    "WorldBody",
    "WorldCopies",
    "WorldImpacts",
    "WorldJoint",
    "WorldTruncation",
    "arrows",
    "force_arrows",
    "scenes",
    "size_of",
]


def __getattr__(name: str) -> Any:
    """What a step does without is loaded when it is asked for: recordings, drawings, ready scenes."""
    if name in ("Recorder", "Recording"):
        import tangere.dynamics.recording as module
    elif name in ("arrows", "force_arrows", "size_of"):
        import tangere.dynamics.drawing as module
    elif name == "scenes":
        import tangere.dynamics.scenes as module

        return module
    else:
        raise AttributeError(f"module 'tangere.dynamics' has no attribute {name!r}")
    return getattr(module, name)
