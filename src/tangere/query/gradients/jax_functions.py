"""Distances, clearances and times of contact that JAX differentiates, compiled or in batches as well.

The host computes them, with their slopes at once; JAX is not installed with the library. Numbers
are as precise as JAX holds them: its option jax_enable_x64 makes that float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from tangere.query.gradients.array_functions import batch_shape, check_mesh, distance_slopes, motion_slopes
from tangere.runtime import InputError, described, needs_extra
from tangere.shape import Moving
from tangere.shape.mesh import Mesh


def jax_distance(
    a: Mesh,
    b: Mesh,
    poses_a: Any,
    poses_b: Any = None,
    *,
    vertices_a: Any = None,
    vertices_b: Any = None,
    device: str | wp.Device | None = None,
) -> Any:
    """Distances of two meshes, (…,), which JAX differentiates. Needs JAX (extra [jax]).

    Where surfaces meet it is 0 and has no slope; ties have one of theirs (`tg.gradients.distance` marks both).

    Args:
        a, b: the meshes.
        poses_a, poses_b: where they are, (…, 4, 4); None for b means where its vertices are. Gradients are by the
            numbers of the matrices, so they go on through whatever made rotations of them.
        vertices_a, vertices_b: (vertices, 3) to put into the place of the meshes' vertices, where gradients by these
            are wanted.
        device: where to compute; None means CUDA if present.
    """
    jax, jnp = _jax()
    check_mesh(a, "a")
    check_mesh(b, "b")
    poses_a = _reals(jnp, poses_a, "poses_a")
    poses_b = jnp.eye(4, dtype=poses_a.dtype) if poses_b is None else _reals(jnp, poses_b, "poses_b", poses_a.dtype)
    batch_shape((poses_a.shape, (4, 4), "poses_a"), (poses_b.shape, (4, 4), "poses_b"))
    vertices = [
        _reals(jnp, mesh.vertices if given is None else given, name, poses_a.dtype)
        for mesh, given, name in ((a, vertices_a, "vertices_a"), (b, vertices_b, "vertices_b"))
    ]
    for name, part, mesh in (("vertices_a", vertices[0], a), ("vertices_b", vertices[1], b)):
        batch_shape((part.shape, mesh.vertices.shape, name))
    own = vertices_a is None, vertices_b is None

    def on_host(one: Any, other: Any, va: Any, vb: Any) -> Any:
        front = np.broadcast_shapes(one.shape[:-2], other.shape[:-2])
        meshes = [
            mesh if is_own else mesh.replace(vertices=np.asarray(v, np.float64).reshape(-1, *v.shape[-2:])[0])
            for mesh, is_own, v in ((a, own[0], va), (b, own[1], vb))
        ]
        found = distance_slopes(*meshes, np.asarray(one), np.asarray(other), device)
        shapes = (front, (*front, 4, 4), (*front, 4, 4), (*front, 3, 4), (*front, 3, 4))
        return tuple(np.asarray(x, poses_a.dtype).reshape(s) for x, s in zip(found, shapes, strict=True))

    def asked(*parts: Any) -> Any:
        front = np.broadcast_shapes(parts[0].shape[:-2], parts[1].shape[:-2])
        shapes = (front, (*front, 4, 4), (*front, 4, 4), (*front, 3, 4), (*front, 3, 4))
        results = tuple(jax.ShapeDtypeStruct(shape, poses_a.dtype) for shape in shapes)
        return jax.pure_callback(on_host, results, *parts, vmap_method="broadcast_all" if all(own) else "sequential")

    def forward(*parts: Any) -> Any:
        value, *slopes = asked(*parts)
        return value, (slopes, parts)

    def backward(kept: Any, weight: Any) -> Any:
        (by_a, by_b, *corners), parts = kept
        by_poses = [
            _summed(jnp, weight[..., None, None] * slope, part.shape)
            for slope, part in zip((by_a, by_b), parts[:2], strict=True)
        ]
        by_vertices = []
        for records, part in zip(corners, parts[2:], strict=True):
            numbers = records[..., 0].astype(int).reshape(-1)
            slopes = jnp.where(numbers[:, None] >= 0, (weight[..., None, None] * records[..., 1:]).reshape(-1, 3), 0.0)
            by_vertices.append(jnp.zeros_like(part).at[jnp.maximum(numbers, 0)].add(slopes))
        return *by_poses, *by_vertices

    return _differentiable(jax, asked, forward, backward)(poses_a, poses_b, *vertices)


def jax_time(
    a: Mesh,
    b: Mesh | Moving,
    start: Any,
    displacement: Any,
    rotation: Any,
    *,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Any:
    """Times of first contact of `a.moving(tg.Twist(start, displacement, rotation))` with b, (…,), inf where free. Needs
    JAX (extra [jax]).

    Where there is no contact, at a start in contact and where bodies graze, the slope is zero: `tg.gradients.time`
    marks these.

    Args:
        a, b: a mesh, and what it moves past.
        start: (…, 4, 4); gradients are by the numbers of the matrix.
        displacement, rotation: (…, 3).
        device: where to compute; None means CUDA if present.
        options: of `tg.first_contact`: tolerance.
    """
    return _of_motion("time", a, b, (start, displacement, rotation), device, options)


def jax_clearance(
    a: Mesh,
    b: Mesh | Moving,
    start: Any,
    displacement: Any,
    rotation: Any,
    *,
    device: str | wp.Device | None = None,
    **options: Any,
) -> Any:
    """Least clearances of `a.moving(tg.Twist(start, displacement, rotation))` to b, (…,). Needs JAX.

    Args:
        a, b, start, displacement, rotation, device: as for `jax_time`.
        options: of `tg.least_clearance`: accuracy, cap.
    """
    return _of_motion("clearance", a, b, (start, displacement, rotation), device, options)


def _of_motion(question: str, a: Any, b: Any, given: tuple[Any, ...], device: Any, options: Any) -> Any:
    jax, jnp = _jax()
    check_mesh(a, "a")
    ends = (4, 4), (3,), (3,)
    names = "start", "displacement", "rotation"
    kind = _reals(jnp, given[0], names[0]).dtype
    parts = [_reals(jnp, part, name, kind) for part, name in zip(given, names, strict=True)]
    batch_shape(*((part.shape, end, name) for part, end, name in zip(parts, ends, names, strict=True)))

    def shapes_of(those: Any) -> Any:
        front = np.broadcast_shapes(those[0].shape[:-2], those[1].shape[:-1], those[2].shape[:-1])
        return front, (*front, 4, 4), (*front, 3), (*front, 3)

    def on_host(*those: Any) -> Any:
        found = motion_slopes(question, a, b, *map(np.asarray, those), device, options)
        return tuple(np.asarray(x, kind).reshape(s) for x, s in zip(found, shapes_of(those), strict=True))

    def asked(*those: Any) -> Any:
        results = tuple(jax.ShapeDtypeStruct(shape, kind) for shape in shapes_of(those))
        return jax.pure_callback(on_host, results, *those, vmap_method="broadcast_all")

    def forward(*those: Any) -> Any:
        value, *slopes = asked(*those)
        return value, (slopes, those)

    def backward(kept: Any, weight: Any) -> Any:
        slopes, those = kept
        return tuple(
            _summed(jnp, weight.reshape(*weight.shape, *[1] * (s.ndim - weight.ndim)) * s, part.shape)
            for s, part in zip(slopes, those, strict=True)
        )

    return _differentiable(jax, asked, forward, backward)(*parts)


def _jax() -> tuple[Any, Any]:
    with needs_extra("jax", "jax"):
        import jax  # pyright: ignore[reportMissingImports]
        import jax.numpy  # pyright: ignore[reportMissingImports]
    return jax, jax.numpy


def _reals(jnp: Any, given: Any, name: str, kind: Any = None) -> Any:
    """An array of numbers that are not whole: of their own kind, or of the one told."""
    try:
        array = jnp.asarray(given)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of numbers, not {described(given)}") from error
    if kind is None:
        kind = array.dtype if jnp.issubdtype(array.dtype, jnp.floating) else jnp.asarray(0.0).dtype
    return array.astype(kind)


def _differentiable(jax: Any, asked: Any, forward: Any, backward: Any) -> Any:
    function = jax.custom_vjp(lambda *parts: asked(*parts)[0])
    function.defvjp(forward, backward)
    return function


def _summed(jnp: Any, slope: Any, shape: tuple[int, ...]) -> Any:
    """A slope of the shape that all parts were broadcast to, for a part that was."""
    extra = slope.ndim - len(shape)
    slope = slope.sum(axis=tuple(range(extra)))
    short = tuple(k for k, size in enumerate(shape) if size == 1 and slope.shape[k] != 1)
    return slope.sum(axis=short, keepdims=True)
