"""The reader of MJCF files, through the optional package mujoco: bodies, joints and geoms as links of a robot.

Method:   MuJoCo compiles the file, with its defaults, includes and meshes; the tree is read from the model. A body with
          several joints becomes several links, the last of which has its name. A joint turns about its anchor: where
          that is not the body's origin, a fixed link leads back to it. Boxes, balls, capsules and cylinders are
          analytic parts; ellipsoids become meshes that hold them; meshes are taken as they are, not their hulls. A free
          joint at the root is where the robot stands: `base=` moves it. Planes are endless and are left out with a
          warning.
Known as: MJCF, MuJoCo XML.
"""

from __future__ import annotations

import re
import warnings
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tangere.motion import rotations_of
from tangere.runtime import InputError, UnsupportedError, needs_extra
from tangere.shape.analytic.bodies import Analytic, Box, Capsule, Cylinder, Sphere
from tangere.shape.mesh.mesh import Mesh
from tangere.shape.robot.holding_mesh import ellipsoid_mesh, mesh_of_parts
from tangere.shape.robot.robot import Inertial, Joint, RobotDescription

#: The body of a link: a mesh that holds it, and what it is made of.
Made = tuple[Mesh | None, tuple[Mesh | Analytic, ...]]
#: Joints that follow another: which, times what, plus what.
Followed = dict[int, tuple[int, float, float]]


def is_mjcf(path: str | PathLike[str]) -> bool:
    """Whether the first element of a file is MuJoCo's."""
    try:
        text = Path(fspath(path)).read_bytes()[:65536].decode("utf-8", "ignore")
    except OSError:
        return False
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    element = re.search(r"<([A-Za-z_][\w.-]*)", text)
    return element is not None and element[1] == "mujoco"


def read_mjcf(path: str | PathLike[str]) -> RobotDescription:
    """The robot in an MJCF file; see `RobotDescription.load`."""
    file = Path(fspath(path))
    with needs_extra("mujoco", "mjcf"):
        import mujoco  # pyright: ignore[reportMissingImports]
    try:
        model = mujoco.MjModel.from_xml_path(str(file))
    except ValueError as error:
        raise InputError(f"Robot {file.name!r}: MuJoCo cannot read it: {str(error).splitlines()[0]}") from error
    return _MjcfReader(model, mujoco, file.name).robot()


class _MjcfReader:
    """A compiled model, read into links."""

    def __init__(self, model: Any, mujoco: Any, file: str) -> None:
        self.model, self.mujoco, self.file = model, mujoco, file
        self.links: list[str] = []
        self.parents: list[int] = []
        self.joints: list[Joint] = []
        self.made: list[Made] = []
        self.inertials: list[Inertial | None] = []
        self.planes: list[str] = []

    def robot(self) -> RobotDescription:
        model = self.model
        follows = self._followed()
        link_of: dict[int, int] = {}
        for body in range(model.nbody):
            made = self._parts(body)
            if body == 0:
                if made[0] is not None or model.nbody == 1:
                    link_of[0] = self._put(self._name("BODY", 0), -1, _fixed("world", np.eye(4)), made, None)
                continue
            parent = link_of.get(int(model.body_parentid[body]), -1)
            link_of[body] = self._put_body(body, parent, made, follows)
        self._tell_of_free_bodies({body for body, link in link_of.items() if self.made[link][0] is not None})
        if self.planes:
            warnings.warn(f"Robot {self.file!r}: planes are left out: {', '.join(self.planes)}", stacklevel=5)
        name = model.names[: model.names.index(b"\0")].decode() or Path(self.file).stem
        return RobotDescription(
            name,
            tuple(self.links),
            tuple(self.parents),
            tuple(self.joints),
            tuple(mesh for mesh, _ in self.made),
            tuple(self.inertials),
            tuple(parts for _, parts in self.made),
        )

    def _tell_of_free_bodies(self, solid: set[int]) -> None:
        """Warn where what a free joint moves is not all there is: it stays where it stands among the rest."""
        model, free = self.model, self.mujoco.mjtJoint.mjJNT_FREE
        roots = [int(model.jnt_bodyid[j]) for j in range(model.njnt) if model.jnt_type[j] == free]
        if roots and len({int(model.body_rootid[body]) for body in solid} | set(roots)) > 1:
            told = ", ".join(self._name("BODY", body) for body in roots)
            warnings.warn(
                f"Robot {self.file!r}: {told} can move freely, and are fixed here where the file puts them: they are"
                " not compared with what else is fixed, and base= moves all of it",
                stacklevel=6,
            )

    def _put_body(self, body: int, parent: int, made: Made, follows: Followed) -> int:
        """The links of a body, and the number of the one that has its name."""
        model, name = self.model, self._name("BODY", body)
        place = _pose(model.body_pos[body], model.body_quat[body])
        first = int(model.body_jntadr[body])
        numbers = [] if first < 0 else range(first, first + int(model.body_jntnum[body]))
        kinds = self.mujoco.mjtJoint
        moving = [j for j in numbers if model.jnt_type[j] != kinds.mjJNT_FREE]
        for j in moving:
            if model.jnt_type[j] == kinds.mjJNT_BALL:
                joint = self._name("JOINT", j)
                raise UnsupportedError(f"Robot {self.file!r}: joint {joint!r} is a ball: hinges and slides are read")
        inertial = self._inertial(body)
        if not moving:
            return self._put(name, parent, _fixed(name, place), made, inertial)
        shift = np.zeros(3)  # from the body's origin to the last anchor
        for k, j in enumerate(moving):
            anchor = np.asarray(model.jnt_pos[j], float)
            origin = place if k == 0 else np.eye(4)
            origin = origin @ _pose(anchor - shift, [1.0, 0.0, 0.0, 0.0])
            shift = anchor
            last = k == len(moving) - 1 and not anchor.any()
            own = name if last else f"{name} by {self._name('JOINT', j)}"
            joint = self._joint(j, origin, follows)
            parent = self._put(own, parent, joint, made if last else (None, ()), inertial if last else None)
        if shift.any():
            back = _fixed(f"{name} on its joint", _pose(-shift, [1.0, 0.0, 0.0, 0.0]))
            parent = self._put(name, parent, back, made, inertial)
        return parent

    def _put(self, name: str, parent: int, joint: Joint, made: Made, inertial: Inertial | None) -> int:
        self.links.append(name)
        self.parents.append(parent)
        self.joints.append(joint)
        self.made.append(made)
        self.inertials.append(inertial)
        return len(self.links) - 1

    def _joint(self, j: int, origin: np.ndarray, follows: Followed) -> Joint:
        model = self.model
        sliding = model.jnt_type[j] == self.mujoco.mjtJoint.mjJNT_SLIDE
        leader, factor, offset = follows.get(j, (j, 1.0, 0.0))
        reference = float(model.qpos0[model.jnt_qposadr[j]])
        limits = (-np.inf, np.inf)
        if model.jnt_limited[j]:
            limits = (float(model.jnt_range[j][0]), float(model.jnt_range[j][1]))
        return Joint(
            self._name("JOINT", j),
            "sliding" if sliding else "turning",
            origin,
            np.asarray(model.jnt_axis[j], float).copy(),
            self._name("JOINT", leader),
            factor,
            offset - reference,
            limits,
        )

    def _followed(self) -> Followed:
        """Joints that an equality makes a straight function of another: leader, factor, offset."""
        model, found = self.model, {}
        for k in range(model.neq):
            if model.eq_type[k] != self.mujoco.mjtEq.mjEQ_JOINT or not model.eq_active0[k] or model.eq_obj2id[k] < 0:
                continue
            follower, leader = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
            constant, linear, *others = (float(c) for c in model.eq_data[k][:5])
            if any(others) or leader in found or follower in {lead for lead, _, _ in found.values()}:
                continue  # curved or chained: it has a value of its own
            at, lead_at = (float(model.qpos0[model.jnt_qposadr[j]]) for j in (follower, leader))
            # MuJoCo: q1 - q1ref = c0 + c1 (q2 - q2ref).
            found[follower] = leader, linear, at + constant - linear * lead_at
        return found

    def _parts(self, body: int) -> Made:
        """What collides of a body, or what is seen of it where nothing does, in its frame."""
        model, first = self.model, int(self.model.body_geomadr[body])
        numbers = range(first, first + int(model.body_geomnum[body])) if first >= 0 else []
        solid = [g for g in numbers if model.geom_contype[g] or model.geom_conaffinity[g]]
        parts = [part for g in solid or numbers if (part := self._geom(g)) is not None]
        return mesh_of_parts(parts, self._name("BODY", body))

    def _geom(self, g: int) -> Mesh | Analytic | None:
        model, kinds = self.model, self.mujoco.mjtGeom
        kind, size = model.geom_type[g], np.asarray(model.geom_size[g], float)
        if kind == kinds.mjGEOM_PLANE:
            self.planes.append(self._name("GEOM", g))
            return None
        if kind == kinds.mjGEOM_BOX:
            part = Box(size)
        elif kind == kinds.mjGEOM_SPHERE:
            part = Sphere(size[0])
        elif kind == kinds.mjGEOM_CAPSULE:
            part = Capsule(size[0], 2.0 * size[1])
        elif kind == kinds.mjGEOM_CYLINDER:
            part = Cylinder(size[0], 2.0 * size[1])
        elif kind == kinds.mjGEOM_ELLIPSOID:
            part = ellipsoid_mesh(size)
        elif kind == kinds.mjGEOM_MESH:
            part = self._mesh(int(model.geom_dataid[g]))
        else:
            geom, what = self._name("GEOM", g), kinds(int(kind)).name[7:].lower()
            raise UnsupportedError(f"Robot {self.file!r}: geom {geom!r} is of kind {what}, which is not read")
        return part.at(_pose(model.geom_pos[g], model.geom_quat[g]))

    def _mesh(self, k: int) -> Mesh:
        model = self.model
        vertex, count = int(model.mesh_vertadr[k]), int(model.mesh_vertnum[k])
        face, faces = int(model.mesh_faceadr[k]), int(model.mesh_facenum[k])
        return Mesh(
            np.asarray(model.mesh_vert[vertex : vertex + count], float),
            np.asarray(model.mesh_face[face : face + faces], np.int32),
            name=self._name("MESH", k),
        )

    def _inertial(self, body: int) -> Inertial | None:
        model, mass = self.model, float(self.model.body_mass[body])
        if not mass > 0.0:
            return None
        turn = _pose(np.zeros(3), model.body_iquat[body])[:3, :3]
        inertia = turn @ np.diag(model.body_inertia[body]) @ turn.T
        return Inertial(mass, np.asarray(model.body_ipos[body], float).copy(), inertia)

    def _name(self, kind: str, number: int) -> str:
        object_kind = getattr(self.mujoco.mjtObj, f"mjOBJ_{kind}")
        return self.mujoco.mj_id2name(self.model, object_kind, number) or f"{kind.lower()} {number}"


def _fixed(name: str, origin: np.ndarray) -> Joint:
    return Joint(f"{name} fixed", "fixed", origin, np.array([0.0, 0.0, 1.0]), "")


def _pose(place: Any, quaternion: Any) -> np.ndarray:
    pose = np.eye(4)
    pose[:3, :3] = rotations_of(np.asarray(quaternion, float)[None], "pose")[0]
    pose[:3, 3] = place
    return pose
