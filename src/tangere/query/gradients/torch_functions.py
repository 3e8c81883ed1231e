"""Distances, clearances and times of contact that Torch differentiates. Torch is not installed with the library."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import warp as wp

from tangere.query.gradients.array_functions import (
    batch_shape,
    check_mesh,
    distance_slopes,
    motion_slopes,
    vertex_table,
)
from tangere.runtime import InputError, described, needs_extra
from tangere.shape import Moving
from tangere.shape.mesh import Mesh


def torch_distance(
    a: Mesh,
    b: Mesh,
    poses_a: Any,
    poses_b: Any = None,
    *,
    vertices_a: Any = None,
    vertices_b: Any = None,
    device: str | wp.Device | None = None,
) -> Any:
    """Distances of two meshes, as a tensor (…,) that knows its gradient. Needs Torch (extra [torch]).

    Where surfaces meet it is 0 and has no slope; ties have one of theirs (`tg.gradients.distance` marks both).

    Args:
        a, b: the meshes.
        poses_a, poses_b: where they are, tensors (…, 4, 4); None for b means where its vertices are. Gradients are by
            the numbers of the matrices, so they go on through whatever made rotations of them.
        vertices_a, vertices_b: tensors (vertices, 3) to put into the place of the meshes' vertices, where gradients by
            these are wanted.
        device: where to compute; None means CUDA if present.
    """
    torch = _torch()
    check_mesh(a, "a")
    check_mesh(b, "b")
    still = torch.eye(4, dtype=torch.float64)
    parts = {"poses_a": poses_a, "poses_b": still if poses_b is None else poses_b}
    for name, part in (parts | {"vertices_a": vertices_a, "vertices_b": vertices_b}).items():
        if part is not None and not isinstance(part, torch.Tensor):
            raise InputError(f"{name} must be a tensor, not {described(part)}")
    batch_shape(*((tuple(part.shape), (4, 4), name) for name, part in parts.items()))
    for name, part, mesh in (("vertices_a", vertices_a, a), ("vertices_b", vertices_b, b)):
        if part is not None and tuple(part.shape) != mesh.vertices.shape:
            raise InputError(f"{name} must have shape {mesh.vertices.shape}, not {tuple(part.shape)}")
    return _distance_function().apply(*parts.values(), vertices_a, vertices_b, a, b, device)


def torch_time(
    a: Mesh,
    b: Mesh | Moving,
    start: Any,
    displacement: Any,
    rotation: Any,
    *,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Any:
    """Times of first contact of `a.moving(tg.Twist(start, displacement, rotation))` with b, a tensor (…,): inf where
    free. Needs Torch (extra [torch]).

    Where there is no contact, at a start in contact and where bodies graze, the slope is zero: `tg.gradients.time`
    marks these.

    Args:
        a, b: a mesh, and what it moves past.
        start: tensor (…, 4, 4); gradients are by the numbers of the matrix.
        displacement, rotation: tensors (…, 3).
        device: where to compute; None means CUDA if present.
        options: of `tg.first_contact`: tolerance.
    """
    return _of_motion("time", a, b, start, displacement, rotation, device, options)


def torch_clearance(
    a: Mesh,
    b: Mesh | Moving,
    start: Any,
    displacement: Any,
    rotation: Any,
    *,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Any:
    """Least clearances of `a.moving(tg.Twist(start, displacement, rotation))` to b, a tensor (…,). Needs Torch.

    Args:
        a, b, start, displacement, rotation, device: as for `torch_time`.
        options: of `tg.least_clearance`: accuracy, cap.
    """
    return _of_motion("clearance", a, b, start, displacement, rotation, device, options)


def _of_motion(question: str, a: Any, b: Any, start: Any, way: Any, turn: Any, device: Any, options: Any) -> Any:
    torch = _torch()
    check_mesh(a, "a")
    named = {"start": (start, (4, 4)), "displacement": (way, (3,)), "rotation": (turn, (3,))}
    for name, (part, _) in named.items():
        if not isinstance(part, torch.Tensor):
            raise InputError(f"{name} must be a tensor, not {described(part)}")
    batch_shape(*((tuple(part.shape), end, name) for name, (part, end) in named.items()))
    return _motion_function().apply(start, way, turn, question, a, b, device, options)


def _torch() -> Any:
    with needs_extra("torch", "torch"):
        import torch  # pyright: ignore[reportMissingImports]
    return torch


def _array(tensor: Any) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def _summed(slope: Any, shape: Any) -> Any:
    """A slope of the shape that all parts were broadcast to, for a part that was."""
    return slope.sum_to_size(shape)


@cache
def _distance_function() -> Any:
    torch = _torch()

    class DistanceFunction(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any, poses_a: Any, poses_b: Any, vertices_a: Any, vertices_b: Any, a: Any, b: Any, device: Any
        ):
            meshes = [
                mesh if vertices is None else mesh.replace(vertices=_array(vertices).astype(np.float64))
                for mesh, vertices in ((a, vertices_a), (b, vertices_b))
            ]
            value, by_a, by_b, *corners = distance_slopes(*meshes, _array(poses_a), _array(poses_b), device)
            ctx.shapes, ctx.corners = (poses_a.shape, poses_b.shape), corners
            ctx.counts = tuple(len(mesh.vertices) for mesh in meshes)
            ctx.save_for_backward(torch.from_numpy(by_a).to(poses_a), torch.from_numpy(by_b).to(poses_b))
            return torch.from_numpy(np.array(value)).to(poses_a)

        @staticmethod
        def backward(ctx: Any, *grad_outputs: Any):
            weight = grad_outputs[0]
            by_poses = [
                _summed(weight[..., None, None] * slope, shape)
                for slope, shape in zip(ctx.saved_tensors, ctx.shapes, strict=True)
            ]
            by_vertices = [
                torch.from_numpy(vertex_table(corners, _array(weight), count)).to(weight) if wanted else None
                for corners, count, wanted in zip(ctx.corners, ctx.counts, ctx.needs_input_grad[2:4], strict=True)
            ]
            return *by_poses, *by_vertices, None, None, None

    return DistanceFunction


@cache
def _motion_function() -> Any:
    torch = _torch()

    class MotionFunction(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any, start: Any, way: Any, turn: Any, question: Any, a: Any, b: Any, device: Any, options: Any
        ):
            parts = start, way, turn
            value, *slopes = motion_slopes(question, a, b, *map(_array, parts), device, options)
            ctx.shapes = tuple(part.shape for part in parts)
            ctx.save_for_backward(*(torch.from_numpy(s).to(part) for s, part in zip(slopes, parts, strict=True)))
            return torch.from_numpy(np.array(value)).to(start)

        @staticmethod
        def backward(ctx: Any, *grad_outputs: Any):
            weight = grad_outputs[0]
            sides = [
                _summed(weight.reshape(*weight.shape, *[1] * (slope.ndim - weight.ndim)) * slope, shape)
                for slope, shape in zip(ctx.saved_tensors, ctx.shapes, strict=True)
            ]
            return *sides, None, None, None, None, None

    return MotionFunction
