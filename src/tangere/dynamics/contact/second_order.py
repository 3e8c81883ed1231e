"""The second derivative of a gap: what a line through a moving contact does not see.

Question: how fast does the approach of two features change while their bodies go on steadily?
Method:   d^2 gap / dt^2 = n . [w_a x (w_a x r_a) - w_b x (w_b x r_b)] + 2 (v_a - v_b) . n', without accelerations,
          where the normal turns with the body that has the face, or with both edges.
Known as: the velocity-dependent terms of the non-penetration constraint (Redon 2002, equation 5.8).
"""

from __future__ import annotations

import warp as wp

from tangere.dynamics.solver import vec6d
from tangere.dynamics.state import angular_of, at_point
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

#: Sine of the least angle between edges whose normal has a rate.
LEAST_SINE = wp.constant(wp.float64(0.05))
#: Cosine of the largest angle between the normal of a contact and that of its edges.
SAME_NORMAL = wp.constant(wp.float64(0.999))


@wp.func
def edge_normal_rate(
    normal: wp.vec3d, edge_a: wp.vec3d, edge_b: wp.vec3d, spin_a: wp.vec3d, spin_b: wp.vec3d
) -> wp.vec3d:
    """How the normal of two turning edges changes; zero where they are almost parallel or meet at an end."""
    across = wp.cross(edge_a, edge_b)
    size = wp.length(across)
    along = wp.dot(across, normal)
    if size < LEAST_SINE or wp.abs(along) < SAME_NORMAL * size:
        return wp.vec3d()
    rate = wp.cross(wp.cross(spin_a, edge_a), edge_b) + wp.cross(edge_a, wp.cross(spin_b, edge_b))
    rate = rate * wp.sign(along)
    return (rate - normal * wp.dot(normal, rate)) / size


@wp.func
def gap_acceleration(
    kind: int,
    normal: wp.vec3d,
    arm_a: wp.vec3d,
    arm_b: wp.vec3d,
    motion_a: vec6d,
    motion_b: vec6d,
    edge_a: wp.vec3d,
    edge_b: wp.vec3d,
) -> wp.float64:
    """kappa [m/s^2] of a contact: kind 0 has its face on b, 1 on a, 2 is of two edges (unit vectors)."""
    spin_a = angular_of(motion_a)
    spin_b = angular_of(motion_b)
    bent = wp.cross(spin_a, wp.cross(spin_a, arm_a)) - wp.cross(spin_b, wp.cross(spin_b, arm_b))
    rate = wp.vec3d()
    if kind == 0:
        rate = wp.cross(spin_b, normal)
    elif kind == 1:
        rate = wp.cross(spin_a, normal)
    else:
        rate = edge_normal_rate(normal, edge_a, edge_b, spin_a, spin_b)
    approach = at_point(motion_a, arm_a) - at_point(motion_b, arm_b)
    return wp.dot(normal, bent) + wp.float64(2.0) * wp.dot(approach, rate)
