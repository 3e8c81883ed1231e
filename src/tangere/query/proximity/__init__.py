"""Which features are nearer than a distance, at one instant."""

from tangere.query.proximity.detector import Detector
from tangere.query.proximity.exclusion import Exclusion
from tangere.query.proximity.meshes import proximity
from tangere.query.proximity.stages import Detection, detect

__all__ = ["Detection", "Detector", "Exclusion", "detect", "proximity"]
