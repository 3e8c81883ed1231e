"""A needle in a soft body: it dents the surface, goes through, cuts on, is held by friction, bends, and is drawn out.

Question: which force does a hand feel that pushes a needle into tissue, and where do needle and tissue go?
Method:   in every step the base of the needle goes where it is told; particles on the shaft and the tip are guides of
          the solver (`shaft`), the shaft is straight or an elastic rod that is solved in every sweep (`tangere.soft`).
          After the step anchors slip where friction was at its limit; the tip cuts on through the tissue by what its
          force is too little for (`material_points`), and leaves particles behind. Where it has been before there is a
          channel: nothing is cut there. A membrane in the way holds the tip until it is punctured. Where the body is
          cut while the needle is in it, particles and tip are found again in what it has become.
Sound:    lengths of particles add up to the path, so that friction is a line and no stairs; a step is done or not done.
Known as: needle insertion with stiffness, cutting and friction forces (DiMaio and Salcudean 2003; Okamura et al. 2004),
          bevel-tip steering (Webster et al. 2006).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp

from tangere.needle.anatomy import CarriedAnatomy, Membrane, Vessel
from tangere.needle.drawing import scene_of
from tangere.needle.instrument import Needle, unit_vector
from tangere.needle.material_points import MaterialPoint, PiercedSolid
from tangere.needle.nearness import contacts_of, near_pieces
from tangere.needle.shaft import GuideRows, Particle
from tangere.needle.tissue import Tissue
from tangere.query.contacts import Contacts
from tangere.runtime import InputError, check_kind, number, positive, three_numbers, view_room, whole
from tangere.scene import Scene
from tangere.shape.mesh import Mesh
from tangere.soft import Body, RodArrays, StepPipeline, rod_arrays
from tangere.soft import Simulation as SoftSimulation

#: The hold across the tip before it is in, as a part of that inside.
_OUTSIDE = 0.2
#: The least stiffness of springs that harden, as a part of what they come to.
_SLACK = 1e-6
#: Points of the disc that carries the load before puncture.
_PATCH_POINTS = 19
#: A place at the very tip that still belongs to the last piece of the rod.
_ALMOST = 1.0 - 1e-9
#: After a puncture tissue springs back within milliseconds, and the tip cuts on through it: for so long steps are made
#: in parts no longer than that [s].
_SETTLING, _SHORT = 0.03, 1.5e-3
#: Sweeps of a part, at most: steps as short as that converge with fewer.
_SWEEPS_OF_A_PART = 7
#: Springs that are stiffer, in E h, may take the first step for a puncture.
_STIFFEST_GRIP = 1e3
#: What a step changes of a needle.
_STATE = ("_base", "_roll", "_spun", "_tip", "_particles", "inside", "force", "tip_force", "_deepest", "_depth")
_STATE += ("_touching", "_patch", "_held_by", "_settling", "_through", "_solid", "anatomy")


@dataclass(frozen=True)
class ShaftParticles:
    """Points of the tissue along a needle, the entry first; usable as constraints."""

    position: np.ndarray  #: (n, 3) [m] where they are now
    rest: np.ndarray  #: (n, 3) [m] at rest
    tet: np.ndarray  #: (n,) tetrahedron
    weights: np.ndarray  #: (n, 4) of its corners
    anchor: np.ndarray  #: (n,) where each is held along the shaft, from the base [m]
    length: np.ndarray  #: (n,) of the path it stands for [m]
    force: np.ndarray  #: (n, 3) on the needle [N]
    sticking: np.ndarray  #: (n,) bool

    def __len__(self) -> int:
        return len(self.tet)


class Simulation:
    """A needle that is pushed into a soft body, and drawn out of it.

    Args:
        body: a solid that is held somewhere; or a `tangere.soft.Simulation`, and `body_number` in it.
        entry: where the tip touches the surface at the start [m]; of a simulation that runs already, as it is now.
        direction: where it looks there.
        lock_length: a particle is left behind every so much of the path [m].
        vessels: lines inside the body, which it carries along: what a needle should not come near to.
        membranes: surfaces inside the body, with the force to go through.
        distance: what is nearer to the needle is among `contacts` [m]; None means the lock length.
        nodes: of the needle.
        dt, sweeps, device, threads: of the simulation that is made of a body.

    Example:
        >>> from tangere.needle import Needle, Simulation, Tissue
        >>> from tangere.shape.tets import solid_block
        >>> from tangere.soft import Body
        >>> block = solid_block((4, 4, 4), size=(0.08, 0.08, 0.06), mirrored=True)
        >>> body = Body(block, youngs_modulus=1e4, damping=20.0, fixed=block.vertices[:, 2] < -0.029)
        >>> start = {"entry": [0.001, 0.001, 0.03], "direction": [0, 0, -1]}
        >>> simulation = Simulation(body, Needle(rigid=True), Tissue(), **start)
        >>> while not simulation.inside:
        ...     simulation.step(0.02)
        >>> f"{np.linalg.norm(simulation.force):.2f} N"
        '1.00 N'
    """

    def __init__(
        self,
        body: Body | SoftSimulation,
        needle: Needle,
        tissue: Tissue,
        *,
        entry: Any,
        direction: Any,
        body_number: int = 0,
        lock_length: float = 3e-3,
        vessels: Sequence[Vessel | Any] = (),
        membranes: Sequence[Membrane | Mesh] = (),
        distance: float | None = None,
        nodes: int = 41,
        dt: float = 0.01,
        sweeps: int = 20,
        device: str | wp.Device | None = None,
        threads: int | None = None,
    ) -> None:
        check_kind(needle, Needle, "needle")
        check_kind(tissue, Tissue, "tissue")
        if isinstance(body, SoftSimulation):
            soft = body
        else:
            check_kind(body, Body, "body")
            options = {"dt": dt, "sweeps": sweeps, "device": device, "threads": threads}
            soft = SoftSimulation([body], gravity=(0.0, 0.0, 0.0), response="none", **options)
        if whole(body_number, "body_number", 0) >= len(soft):
            raise InputError(f"body_number: there is no body {body_number}; there are {len(soft)}, counted from 0")
        body = soft.bodies[body_number]
        if not body.is_solid:
            raise InputError(f"Body {body.name!r} is a sheet: a needle goes through solids of tetrahedra")
        self.needle, self.tissue, self.soft, self._number = needle, tissue, soft, body_number
        self._given = body.shape
        edges = body.shape.vertices[body.shape.edges]
        self._edge = float(np.linalg.norm(edges[:, 0] - edges[:, 1], axis=1).mean())
        self._solid = PiercedSolid.of(soft, body_number, tissue, self._given, self._edge)
        self._grip = tissue.grip * body.youngs_modulus * self._edge
        if tissue.grip > _STIFFEST_GRIP:
            told = f"springs with a grip of {tissue.grip:g} E h may puncture at once; up to {_STIFFEST_GRIP:g} do not"
            warnings.warn(f"Tissue: {told}", stacklevel=2)
        self._lock = positive(lock_length, "lock_length")
        ahead, start = unit_vector(direction, "direction"), three_numbers(entry, "entry")
        now = self._solid.positions(soft)
        self._tip, away = self._solid.points.nearest(start, now)
        if away > 0.1 * self._edge:
            raise InputError(f"entry: {start.tolist()} is {away:.3g} m from body {body.name!r}")
        self._check_entry(start, ahead, now)
        self._base, self._ahead, self._roll, self._spun = start - needle.length * ahead, ahead, 0.0, False
        self._start = self._base
        self._side = np.cross(ahead, np.eye(3)[np.argmin(np.abs(ahead))])
        self._side /= np.linalg.norm(self._side)
        self._other_side = np.cross(ahead, self._side)
        self._particles: list[Particle] = []
        self.inside = False  #: whether the tip has gone through the surface
        self.force = np.zeros(3)  #: of the tissue on the needle in the last step [N]
        self.tip_force = 0.0  #: along the needle at its tip [N]
        self._deepest = self._depth = 0.0
        self._touching = False
        self._patch = self._disc(start, ahead, now)
        self.anatomy = CarriedAnatomy(body.shape, vessels, membranes)  #: vessels and membranes
        self.distance = self._lock if distance is None else positive(distance, "distance")
        self._corners = [m.mesh.vertices[m.mesh.faces] for m in self.anatomy.membranes]
        self._held_by: int | None = None
        self._through = False  # the tip has come out again: the last particle is where
        self._settling = 0.0  # for how long steps are short, because something was punctured [s]
        self._node_count = whole(nodes, "nodes", 5)
        self._rod = self._make_rod(self._node_count)
        self._solved = self._rod  # where the tissue is solved
        self._guides: GuideRows | None = None
        self._put_phase()

    def _check_entry(self, start: np.ndarray, ahead: np.ndarray, now: np.ndarray) -> None:
        """Raise if the tip is not on the surface, or does not look into the body."""
        points, name = self._solid.points, self.soft.bodies[self._number].name
        way = 0.5 * self._edge * ahead
        if points.advance(self._tip, now, -way)[1]:
            raise InputError(f"entry: {start.tolist()} is not where a needle that looks {ahead} meets body {name!r}")
        inward = points.advance(self._tip, now, way)[0].at(now, points.tets)
        if np.linalg.norm(inward - self._tip.at(now, points.tets)) < 0.01 * self._edge:
            raise InputError(f"direction: {ahead} does not lead into body {name!r} from {start.tolist()}")

    def __repr__(self) -> str:
        where = f"{self.depth:.4f} m deep" if self.inside else "outside"
        return f"Simulation(needle {where}, {len(self._particles)} particles)"

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self, advance: float, *, spin: float = 0.0) -> None:
        """One step of the tissue while the base goes on.

        Args:
            advance: speed along the base's direction [m/s]; negative draws the needle out.
            spin: [rad/s]; what is more than a quarter turn in a step pushes to no side.
        """
        speed, turn = number(advance, "advance"), number(spin, "spin")
        if not (np.isfinite(speed) and np.isfinite(turn)):
            raise InputError(f"advance and spin must be finite, not {advance!r} and {spin!r}")
        dt = self.soft.dt
        self.move(self._base + speed * dt * self._ahead, roll=self._roll + turn * dt)

    def move(self, base: Any, *, roll: float | None = None) -> None:
        """One step of the tissue with the base of the needle at another place [m]: what a hand or a script does."""
        base = three_numbers(base, "base")
        roll = self._roll if roll is None else number(roll, "roll")
        if np.linalg.norm(base - self._base) > self.needle.length:
            way = np.linalg.norm(base - self._base)
            raise InputError(f"base: {way:.3g} m in one step is more than the needle is long, {self.needle.length:g} m")
        parts = self._parts if self._settling > 0.0 else 1
        way, turn = (base - self._base) / parts, (roll - self._roll) / parts
        before = self._state()
        try:
            self._spun = abs(roll - self._roll) > 0.5 * np.pi
            sweeps = None if parts == 1 else min(self.soft.sweeps, _SWEEPS_OF_A_PART)
            with self.soft.step_in_parts(parts, sweeps=sweeps) as advance:
                for k in range(parts):
                    left = self._settling - self.soft.dt / parts
                    self._settling = left if left > 1e-9 else 0.0
                    self._go(base - (parts - 1 - k) * way, roll - (parts - 1 - k) * turn)
                    advance()
                    self._follow()
                if self._particles and self._particles[0].anchor < 0.0:
                    raise InputError(f"base: the needle, {self.needle.length:g} m long, is in up to its base already")
        except BaseException:
            self._set_state(before)
            raise

    @property
    def _parts(self) -> int:
        """Of a step after a puncture."""
        return max(1, int(np.ceil(self.soft.dt / _SHORT - 1e-9)))

    def _go(self, base: np.ndarray, roll: float) -> None:
        """The base is elsewhere now."""
        if self._rod is not None:
            self._rod.x.numpy()[:] += base - self._base
        self._base, self._roll = base, roll

    def _state(self) -> dict[str, Any]:
        """All that a step changes, but for the tissue."""
        state = {name: getattr(self, name) for name in _STATE}
        state["_particles"] = [replace(particle) for particle in self._particles]
        return state | {"nodes": None if self._rod is None else self._rod.x.numpy().copy()}

    def _set_state(self, state: dict[str, Any]) -> None:
        for name in _STATE:
            setattr(self, name, state[name])
        if self._rod is not None:
            self._rod.x.numpy()[:] = state["nodes"]

    # -- what there is -------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Simulated [s]."""
        return self.soft.time

    @property
    def depth(self) -> float:
        """Of the tip along its path in the tissue [m]."""
        return self._depth

    @property
    def nodes(self) -> np.ndarray:
        """(n, 3) the needle from base to tip [m]."""
        if self._rod is not None:
            return self._rod.x.numpy().copy()
        return self._base + np.linspace(0.0, self.needle.length, self._node_count)[:, None] * self._ahead

    @property
    def anatomy_points(self) -> np.ndarray:
        """(n, 3) where the points of vessels and membranes are now [m]."""
        self._follow_cuts()
        return self.anatomy.points_at(self._solid.positions(self.soft))

    @property
    def surface(self) -> Mesh:
        """Of the tissue, where it is now."""
        self._follow_cuts()
        return self._solid.surface(self.soft)

    @property
    def travel(self) -> float:
        """Of the base along its direction since the start [m]."""
        return float((self._base - self._start) @ self._ahead)

    @property
    def measures(self) -> dict[str, float]:
        """The force along the needle that a hand feels [N], how far its base went and how deep its tip is [m]."""
        return {"force": float(-self.force @ self._ahead), "travel": self.travel, "depth": self.depth}

    @property
    def contacts(self) -> Contacts:
        """What is within `distance` of the needle now, the nearest first: of its tip, its shaft, and itself.

        Body 0 is the needle, 1 and on are vessels and then membranes; `feature_a` is the piece of the needle from its
        base on, the last one that of the tip, `feature_b` the segment or triangle. Against body 0 it is the needle.
        """
        given = self.nodes, self.needle.radius, self.anatomy, self.anatomy_points, self.distance
        return contacts_of(near_pieces(*given), self.anatomy)

    def scene(self, **options: Any) -> Scene:
        """Tissue, needle and what is near as they are now, for pictures and files; see `Recording.scene`."""
        return scene_of(self, **options)

    def _repr_png_(self) -> bytes | None:
        """For notebooks: what there is now; None where it cannot be drawn."""
        return view_room().png(self.scene())

    @property
    def particles(self) -> ShaftParticles:
        """The points of the tissue along the needle."""
        self._follow_cuts()
        vertices, parts = self._solid.positions(self.soft), self._particles
        tets, rest = self._solid.points.tets, self._solid.points.rest

        def rows(values: list[Any], *shape: int) -> np.ndarray:
            return np.array(values).reshape(len(parts), *shape)

        return ShaftParticles(
            position=rows([p.point.at(vertices, tets) for p in parts], 3),
            rest=rows([p.point.at(rest, tets) for p in parts], 3),
            tet=rows([p.point.tet for p in parts]),
            weights=rows([p.point.weights for p in parts], 4),
            anchor=rows([p.anchor for p in parts]),
            length=rows([p.length for p in parts]),
            force=rows([p.force for p in parts], 3),
            sticking=rows([p.sticking for p in parts]).astype(bool),
        )

    @property
    def tip_rest(self) -> np.ndarray:
        """(3,) the point of the tissue at the tip, at rest [m]."""
        self._follow_cuts()
        return self._tip.at(self._solid.points.rest, self._solid.points.tets)

    # -- a step --------------------------------------------------------------------------------------------------------

    def _make_rod(self, nodes: int) -> RodArrays | None:
        if self.needle.rigid:
            return None
        along = np.linspace(0.0, self.needle.length, nodes)[:, None]
        mass = self.soft.bodies[self._number].vertex_mass.mean()
        room = int(self.needle.length / self._lock) + _PATCH_POINTS + 8
        line = self._base + along * self._ahead
        self._rod_options = {"bending": self.needle.bending_stiffness, "weight": mass, "room": 4 * room}
        return rod_arrays(line, **self._rod_options)

    def _rod_on(self, device: wp.Device) -> RodArrays:
        """The rod where the tissue is: it is told where to go before a step, and asked after it."""
        return rod_arrays(self.nodes, device=device, **self._rod_options)

    def _put_phase(self) -> None:
        """Append the rows of the needle before the tissue is solved."""
        phases, names = self.soft.phases, list(self.soft.phases)
        later = {name: phases.pop(name) for name in names[names.index("solve") :]}
        name = "needle"
        while name in phases:
            name += " "
        phases[name] = self._append_rows
        phases.update(later)

    def _follow_cuts(self) -> None:
        """Where the tissue has been cut since, find particles and tip in what it is now."""
        before = self._solid
        if self.soft.bodies is before.bodies:
            return
        solid = PiercedSolid.of(self.soft, self._number, self.tissue, self._given, self._edge)
        anatomy = self.anatomy.carried_by(solid.mesh)
        particles = [replace(p, point=solid.found(p.point, before)) for p in self._particles]
        patch = [(solid.found(point, before), offset) for point, offset in self._patch]
        tip = solid.found(self._tip, before)
        self._solid, self.anatomy, self._particles, self._patch, self._tip = solid, anatomy, particles, patch, tip

    def _append_rows(self, pipeline: StepPipeline) -> None:
        self._follow_cuts()
        device, free = pipeline.assembly.device, pipeline.assembly.dofs.free
        if self._guides is None or self._guides.free is not free:
            self._guides = GuideRows(device, free)
            for number in self._solid.numbers:
                pipeline.pull.anchor(number)
        if self._rod is not None and pipeline.rod is not self._solved:
            self._solved = self._rod if device.is_cpu else self._rod_on(device)
            pipeline.attach_rod(self._solved)
        pipeline.prepare_dt(self.soft.dt / self._parts)
        points, places, guide = self._laws()
        aim, tangent = self._lines(places)
        if not self.inside and len(self._patch):
            aim = aim + np.array([offset for _, offset in self._patch])
        tets = np.array([p.tet for p in points])
        rows = np.arange(len(free))[pipeline.assembly.dof_rows]  # bodies that are cut have room for more dofs
        self._guides.set(
            body=self._solid.body[tets],
            dofs=rows[self._solid.dofs[self._solid.points.tets[tets]]],
            weights=np.array([p.weights for p in points]),
            aim=aim,
            tangent=tangent,
            guide=guide,
        )
        if self._rod is not None:
            held = len(points) if self.inside else 0
            self._rod.count.numpy()[1:] = pipeline.rows.count, held
            self._rod.place.numpy()[: len(places)] = places
            self._rod.base.numpy()[:] = self._base, self._base + self._rod.spacing * self._ahead
            self._rod.push.numpy()[0] = self._bevel_force()
            if self._solved is not self._rod:
                for name in ("count", "x", "base", "push", "place"):
                    wp.copy(getattr(self._solved, name), getattr(self._rod, name))
        pipeline.rows.append(len(points), self._guides.write)

    def _laws(self) -> tuple[list[MaterialPoint], np.ndarray, np.ndarray]:
        """The points that are held, where along the needle, and the guides: across, along, at most, only pushing."""
        k, tip_place = self._grip, self.needle.length * _ALMOST
        if not self.inside:
            disc = [point for point, _ in self._patch] or [self._tip]
            if self.tissue.hardening > 0.0:
                k = min(k, max(self.tissue.hardening * self.travel, _SLACK * k))
            share, places = k / len(disc), np.full(len(disc), tip_place)
            most = 1e300 if self._patch else max(self._entry_limit, 1e-12 * k * self._edge)
            # What the tip does not touch it does not hold to the side; a guide has some stiffness.
            side = _OUTSIDE * share if self._touching else 1e-12 * share
            return disc, places, np.tile([side, share, most, 1.0], (len(disc), 1))
        law = [[k, k, p.friction * p.length, 0.0] for p in self._particles]
        places, points = [p.anchor for p in self._particles], [p.point for p in self._particles]
        if not self._through:
            law.append([k, k, self._tip_limit(), 1.0])
            places.append(tip_place)
            points.append(self._tip)
        return points, np.array(places), np.array(law)

    @property
    def _entry_limit(self) -> float:
        """What it takes to go in [N]; where the needle was before there is a hole."""
        return self.tissue.puncture if self._deepest == 0.0 else 0.0

    def _tip_limit(self) -> float:
        """What the tip can push before it goes on [N]."""
        if self._held_by is not None:
            force = self.anatomy.membranes[self._held_by].puncture
            return self.tissue.puncture if force is None else force
        if self._depth < self._deepest - 1e-9:
            return 0.0  # in its own channel
        return float(self._solid.cutting[self._tip.tet])

    def _lines(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points and tangents of the needle at places along it."""
        if self._rod is None:
            return self._base + places[:, None] * self._ahead, np.tile(self._ahead, (len(places), 1))
        nodes, spacing = self._rod.x.numpy(), self._rod.spacing
        i = np.maximum(np.minimum((places / spacing).astype(int), len(nodes) - 2), 0)
        way = nodes[i + 1] - nodes[i]
        tangent = way / np.linalg.norm(way, axis=1, keepdims=True)
        return nodes[i] + (places / spacing - i)[:, None] * way, tangent

    def _bevel_force(self) -> np.ndarray:
        """The push of a bevel tip to the side [N]: a part of what cutting takes, and none where it spins fast."""
        bevel = self.needle.tip
        if self._rod is None or bevel is None or not self.inside or self._spun or self._through:
            return np.zeros(3)
        nodes = self._rod.x.numpy()
        ahead = nodes[-1] - nodes[-2]
        ahead /= np.linalg.norm(ahead)
        side = np.cos(self._roll) * self._side + np.sin(self._roll) * self._other_side
        side = side - (side @ ahead) * ahead
        return (
            bevel.force * min(self.tip_force, float(self._solid.cutting[self._tip.tet])) * side / np.linalg.norm(side)
        )

    def _follow(self) -> None:
        """After a step: forces, anchors that slip, and a tip that goes on."""
        if self._rod is not None and self._solved is not None and self._solved is not self._rod:
            self._rod.x.numpy()[:] = self._solved.x.numpy()
        vertices, tets, k = self._solid.positions(self.soft), self._solid.points.tets, self._grip
        points, places, guide = self._laws()
        aim, tangent = self._lines(places)
        if not self.inside and self._patch:
            aim = aim + np.array([offset for _, offset in self._patch])
        here = np.array([point.at(vertices, tets) for point in points])
        offset = here - aim
        along = (offset * tangent).sum(axis=1)
        pushing = (guide[:, 3] == 0.0) | (along < 0.0)
        held = np.where(pushing, np.maximum(np.minimum(guide[:, 1] * along, guide[:, 2]), -guide[:, 2]), 0.0)
        forces = held[:, None] * tangent + guide[:, :1] * (offset - along[:, None] * tangent)
        self.force = forces.sum(axis=0)
        if not self.inside:
            self.tip_force, self._touching = float(-held.sum()), bool((along < 0.0).any())
            if self._touching and self.tip_force >= self._entry_limit * (1.0 - 1e-9):
                self._go_in()
            return
        slipped = along - held / guide[:, 1]
        for particle, force, slip in zip(self._particles, forces, slipped, strict=False):
            particle.force, particle.sticking = force, slip == 0.0
            particle.anchor += slip
        if self._through:
            self.tip_force = 0.0
            if self._particles[-1].anchor >= self.needle.length:  # the tip is drawn back into the tissue
                self._through, self._particles = False, self._particles[:-1]
            return
        self.tip_force = float(-held[-1])
        over = -along[-1] - guide[-1, 2] / k
        if along[-1] > 0.0:
            self._draw_back(vertices, -along[-1] * tangent[-1])
        elif over > 0.0:
            self._cut_on(vertices, over * tangent[-1])

    def _go_in(self) -> None:
        self.inside, self._patch, self._settling = True, [], _SETTLING
        self._deposit()

    def _deposit(self) -> None:
        friction = float(self._solid.friction[self._tip.tet])
        self._particles.append(Particle(self._tip, self.needle.length * _ALMOST, 0.0, friction))

    def _cut_on(self, vertices: np.ndarray, step: np.ndarray) -> None:
        """The tip goes on by a step [m], up to the first membrane in its way."""
        before = self.tip_rest
        if self._held_by is not None:
            self._held_by = None
            self._settling = _SETTLING
            free = True
        else:
            free = False
        tip, within = self._solid.points.advance(self._tip, vertices, step)
        after = tip.at(self._solid.points.rest, self._solid.points.tets)
        if not free and self._depth >= self._deepest - 1e-9:
            part, membrane = self._membrane_between(before, after)
            if membrane is not None:
                tip, within = self._solid.points.advance(self._tip, vertices, part * step)
                self._held_by = membrane
        self._tip = tip
        self._measure()
        self._through = not within
        if self._particles[-1].length >= self._lock or self._through:
            self._deposit()
        self._deepest = max(self._deepest, self._depth)

    def _draw_back(self, vertices: np.ndarray, step: np.ndarray) -> None:
        """The tip goes back; particles that it leaves are let go."""
        self._held_by = None
        self._tip, within = self._solid.points.advance(self._tip, vertices, step)
        keep = [p for p in self._particles if p.anchor < self.needle.length]
        rest, tets = self._solid.points.rest, self._solid.points.tets
        if not within and len(keep) > 1 and np.linalg.norm(self.tip_rest - keep[0].point.at(rest, tets)) > self._lock:
            # Not the entry, but the wall of a cut that gapes: what is behind the gap is left, the rest is gone through.
            self._tip, self._through = keep[-1].point, True
        elif not within or not keep:
            self.inside, self._particles, self._depth, self._touching = False, [], 0.0, False
            return
        self._particles = keep
        self._measure()

    def _measure(self) -> None:
        """Lengths of the path: the last particle stands for all up to the tip."""
        last = self._particles[-1]
        there = last.point.at(self._solid.points.rest, self._solid.points.tets)
        last.length = float(np.linalg.norm(self.tip_rest - there))
        self._depth = sum(p.length for p in self._particles)

    def _membrane_between(self, a: np.ndarray, b: np.ndarray) -> tuple[float, int | None]:
        """The part of the way from a to b, at rest, up to the first membrane, and which it is."""
        best, which = 2.0, None
        for membrane, corners in enumerate(self._corners):
            p, q, r = corners.transpose(1, 0, 2)
            normal = np.cross(q - p, r - p)
            one, other = ((normal * (x - p)).sum(axis=1) for x in (a, b))
            crossing = np.flatnonzero((one > 0.0) != (other > 0.0))
            for k in crossing:
                part = one[k] / (one[k] - other[k])
                x = a + part * (b - a)
                sides = [normal[k] @ np.cross(t - s, x - s) for s, t in ((p[k], q[k]), (q[k], r[k]), (r[k], p[k]))]
                if min(sides) >= 0.0 and part < best:
                    best, which = part, membrane
        return best, which

    def _disc(self, start: np.ndarray, ahead: np.ndarray, now: np.ndarray) -> list[tuple[MaterialPoint, np.ndarray]]:
        """Points of the surface on a disc around the entry, and where they are from it: they share the load."""
        if self.tissue.patch == 0.0:
            return []
        x = np.cross(ahead, np.eye(3)[np.argmin(np.abs(ahead))])
        x /= np.linalg.norm(x)
        y = np.cross(ahead, x)
        disc = []
        for k in range(_PATCH_POINTS):
            radius, angle = self.tissue.patch * np.sqrt((k + 0.5) / _PATCH_POINTS), 2.399963229728653 * k
            point, _ = self._solid.points.nearest(start + radius * (np.cos(angle) * x + np.sin(angle) * y), now)
            disc.append((point, point.at(now, self._solid.points.tets) - start))
        return disc
