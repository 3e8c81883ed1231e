"""A scene as USD (.usd, .usda, .usdc), for Omniverse, Houdini, Blender and usdview; needs the extra [usd].

Each thing is an Xform with meshes below it: poses are time samples of a transformation, deformations time samples of
points, contacts meshes that are invisible before their time. Units are metres, up is the scene's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tangere.runtime import InputError, needs_extra
from tangere.scene.creases import vertex_normals
from tangere.scene.export.animation import Animated, Track, animated
from tangere.scene.export.marks import Marks, marks_of
from tangere.scene.export.timing import Timing
from tangere.scene.scene import Scene

_CODES = 24.0  #: time codes per second
_JUST_BEFORE = 1e-3  #: time codes between what is held and what comes next


def save_usd(scene: Scene, path: str | Path, *, frames: int | None = None, seconds: float | None = None) -> None:
    """Write the scene, animated.

    Args:
        frames: so many keys of what moves, at even distances; None means as many as it takes.
        seconds: how long it plays; None means what the clock of the scene says.
    """
    pxr = _pxr()
    stage = _stage(pxr, path)
    timing = Timing(scene, seconds)
    pxr.UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    up = pxr.UsdGeom.Tokens.y if np.argmax(np.abs(scene.camera.up)) == 1 else pxr.UsdGeom.Tokens.z
    pxr.UsdGeom.SetStageUpAxis(stage, up)
    stage.SetTimeCodesPerSecond(_CODES)
    stage.SetFramesPerSecond(_CODES)
    stage.SetStartTimeCode(0.0)
    stage.SetEndTimeCode(_CODES * timing.length)
    root = pxr.UsdGeom.Xform.Define(stage, "/scene")
    stage.SetDefaultPrim(root.GetPrim())
    if scene.title:
        root.GetPrim().SetDisplayName(scene.title)
    for number, one in enumerate(animated(scene, frames)):
        _add(pxr, stage, f"/scene/{_identifier(pxr, one.thing.name, number)}", one, timing)
    for number, marks in enumerate(marks_of(scene)):
        _add_marks(pxr, stage, f"/scene/contacts_{number}", marks, timing)
    try:
        stage.GetRootLayer().Save()
    except pxr.Tf.ErrorException as error:
        raise InputError(f"{path}: cannot be written: {error}") from error


def _pxr() -> Any:
    with needs_extra("usd-core", "usd"):
        import pxr
        from pxr import Gf, Sdf, Tf, Usd, UsdGeom, Vt  # noqa: F401 (they become attributes of the package)
    return pxr


def _stage(pxr: Any, path: str | Path) -> Any:
    name = str(path)
    layer = pxr.Sdf.Layer.Find(name)  # one that is open already would be added to
    if layer is not None:
        layer.Clear()
        return pxr.Usd.Stage.Open(layer)
    try:
        Path(path).unlink(missing_ok=True)
        return pxr.Usd.Stage.CreateNew(name)
    except (pxr.Tf.ErrorException, OSError) as error:
        raise InputError(f"{path}: cannot be written: {error}") from error


def _identifier(pxr: Any, name: str, number: int) -> str:
    """A name of its own that USD allows."""
    return pxr.Tf.MakeValidIdentifier(f"{name}_{number}" if name[:1].isalpha() else f"thing_{name}_{number}")


def _add(pxr: Any, stage: Any, path: str, one: Animated, timing: Timing) -> None:
    thing = one.thing
    top = pxr.UsdGeom.Xform.Define(stage, path)
    top.GetPrim().SetDisplayName(thing.name)
    if one.span is not None:
        seen, tokens = top.CreateVisibilityAttr(), pxr.UsdGeom.Tokens
        if one.span[0] > timing.start:
            seen.Set(tokens.invisible, 0.0)
        seen.Set(tokens.inherited, _CODES * float(timing.seconds(max(one.span[0], timing.start))))
        if one.span[1] < 1.0:
            seen.Set(tokens.invisible, _CODES * float(timing.seconds(one.span[1])))
    if one.deformation is not None:
        moved = one.deformation
        mesh = _mesh(pxr, stage, f"{path}/mesh", moved.states[0], moved.faces, thing.colour, thing.opacity)
        pxr.UsdGeom.XformCommonAPI(top).SetTranslate(pxr.Gf.Vec3d(*moved.origin.tolist()))
        if len(moved.times) > 1:
            codes = _CODES * timing.seconds(moved.times)
            for values, attribute in (
                (moved.states, mesh.GetPointsAttr()),
                ([vertex_normals(state, moved.faces) for state in moved.states], mesh.GetNormalsAttr()),
            ):
                rows = [pxr.Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(row, np.float32)) for row in values]
                _set(attribute, codes, rows, moved.holds)
            extent = np.stack([moved.states.min(axis=(0, 1)), moved.states.max(axis=(0, 1))])
            mesh.GetExtentAttr().Set(pxr.Vt.Vec3fArray.FromNumpy(extent))
        return
    count = 0
    for piece in one.pieces:
        for copy in range(piece.track.shift.shape[1]):
            where = f"{path}/mesh_{count}"
            mesh = _mesh(pxr, stage, where, piece.vertices, piece.faces, thing.colour, thing.opacity)
            _move(pxr, mesh, piece.track, copy, timing)
            count += 1


def _move(pxr: Any, mesh: Any, track: Track, copy: int, timing: Timing) -> None:
    """Time samples of shift, turn and size: what USD blends between them is what the keys mean."""
    shift, turn, size = track.shift[:, copy], track.turn[:, copy], track.size[:, copy]
    codes = _CODES * timing.seconds(track.times)
    values = (
        (mesh.AddTranslateOp, shift, lambda v: pxr.Gf.Vec3d(*v)),
        (mesh.AddOrientOp, turn, lambda v: pxr.Gf.Quatf(v[3], pxr.Gf.Vec3f(*v[:3]))),
        (mesh.AddScaleOp, np.repeat(size[:, None], 3, axis=1), lambda v: pxr.Gf.Vec3f(*v)),
    )
    for add, rows, convert in values:
        changing = bool((rows != rows[0]).any())
        if add == mesh.AddScaleOp and not changing and rows[0, 0] == 1.0:
            continue
        operation = add()
        if not changing:
            operation.Set(convert(rows[0].tolist()))
            continue
        _set(operation, codes, [convert(row) for row in rows.tolist()], track.holds)


def _set(attribute: Any, codes: np.ndarray, values: list[Any], holds: bool) -> None:
    """Time samples; USD goes evenly from one to the next, so what holds is set again just before it ends."""
    for k, (code, value) in enumerate(zip(codes.tolist(), values, strict=True)):
        attribute.Set(value, code)
        if holds and k + 1 < len(codes) and codes[k + 1] - code > _JUST_BEFORE:
            attribute.Set(value, float(codes[k + 1]) - _JUST_BEFORE)


def _add_marks(pxr: Any, stage: Any, path: str, marks: Marks, timing: Timing) -> None:
    local = marks.vertices - marks.origin
    mesh = _mesh(pxr, stage, path, local, marks.faces, marks.colour, 1.0, normals=marks.normals)
    mesh.GetPrim().SetDisplayName(marks.name)
    mesh.AddTranslateOp().Set(pxr.Gf.Vec3d(*marks.origin.tolist()))
    if marks.time > timing.start:
        seen = mesh.CreateVisibilityAttr()
        seen.Set(pxr.UsdGeom.Tokens.invisible, 0.0)
        seen.Set(pxr.UsdGeom.Tokens.inherited, _CODES * float(timing.seconds(marks.time)))


def _mesh(
    pxr: Any,
    stage: Any,
    path: str,
    vertices: np.ndarray,
    faces: np.ndarray,
    colour: Any,
    opacity: float,
    normals: np.ndarray | None = None,
) -> Any:
    vectors = pxr.Vt.Vec3fArray.FromNumpy
    mesh = pxr.UsdGeom.Mesh.Define(stage, path)
    points = np.ascontiguousarray(vertices, np.float32)
    mesh.CreatePointsAttr(vectors(points))
    mesh.CreateFaceVertexCountsAttr(pxr.Vt.IntArray.FromNumpy(np.full(len(faces), 3, np.int32)))
    mesh.CreateFaceVertexIndicesAttr(pxr.Vt.IntArray.FromNumpy(np.ascontiguousarray(faces.reshape(-1), np.int32)))
    mesh.CreateSubdivisionSchemeAttr(pxr.UsdGeom.Tokens.none)
    mesh.CreateDoubleSidedAttr(True)
    mesh.CreateExtentAttr(vectors(np.stack([points.min(axis=0), points.max(axis=0)])))
    directions = vertex_normals(vertices, faces) if normals is None else normals
    mesh.CreateNormalsAttr(vectors(np.ascontiguousarray(directions, np.float32)))
    mesh.SetNormalsInterpolation(pxr.UsdGeom.Tokens.vertex)
    linear = [float(c) ** 2.2 for c in colour]
    mesh.CreateDisplayColorAttr([pxr.Gf.Vec3f(*linear)])
    mesh.CreateDisplayOpacityAttr([float(opacity)])
    return mesh
