"""How distances, clearances and times of first contact change with poses, motions, joints and vertices."""

from tangere.query.gradients.api import clearance, distance, distance_status, through, time
from tangere.query.gradients.jax_functions import jax_clearance, jax_distance, jax_time
from tangere.query.gradients.result import BodyGradients, Gradients, GradientStatus
from tangere.query.gradients.torch_functions import torch_clearance, torch_distance, torch_time

__all__ = [
    "BodyGradients",
    "GradientStatus",
    "Gradients",
    "clearance",
    "distance",
    "distance_status",
    "jax_clearance",
    "jax_distance",
    "jax_time",
    "through",
    "time",
    "torch_clearance",
    "torch_distance",
    "torch_time",
]
