"""The same shapes, again and again: first contacts of bodies whose poses and velocities change from step to step.

Question: the first contact of any pairs of bodies that move by twists, asked as often as a simulation steps.
Method:   trees, arrays and launches are made once. Poses and velocities are written where the kernels read them and
          turned into motions and queries by kernels; there is room for a power of two of pairs, so that an ever new
          number of them costs as much as a repeated one. Points, normals and features are found when they are read.
Sound:    as `rigid_first_contacts`.
Known as: time of impact queries of a step loop; a persistent query context.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import warp as wp

from tangere.motion import TWIST_FAULTS, Rigid, RigidMotion, TwistArrays
from tangere.query.contacts.record import Contacts, DeferredContacts, Status
from tangere.query.first_contact.options import Start, check_start
from tangere.query.first_contact.result import FirstContact
from tangere.query.first_contact.rigid.bodies import Forest
from tangere.query.first_contact.rigid.conservative_advancement import Pair, prepare_pairs
from tangere.query.first_contact.rigid.details import ContactDetail, contacts_of, contacts_of_batch, describe
from tangere.query.first_contact.rigid.query_batch import RigidQueryBatch, status_of
from tangere.query.first_contact.rigid.questions import (
    DEFAULT_TOLERANCE,
    NO_FAULT,
    QUESTION_FAULTS,
    BodyTable,
    DetailArrays,
    QuestionArrays,
    check_twists,
    fault_of,
    set_motion,
    split_poses,
    write_answers,
    write_details,
    write_motions,
    write_queries,
)
from tangere.runtime import (
    Arrays,
    InputError,
    NonCopyable,
    PreparedLaunch,
    choose_device,
    described,
    launch,
    on_own_threads,
    to_numpy,
    whole,
)
from tangere.shape import Moving
from tangere.shape.mesh import Mesh

#: The least number of pairs there is room for.
LEAST_ROOM = 16

_STATUS = tuple(Status)


class PreparedFirstContact(NonCopyable):
    """First contacts of bodies that move by twists, prepared for being asked again and again.

    Args:
        meshes: one for each body; bodies may share one.
        device: where to search; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.

    Example:
        >>> import numpy as np, tangere as tg
        >>> ball = tg.generate.icosphere(subdivisions=3)
        >>> asked = tg.PreparedFirstContact([ball, ball, ball], device="cpu")
        >>> poses = np.tile(np.eye(4), (3, 1, 1))
        >>> poses[:, 0, 3] = [0.0, 3.0, 6.0]
        >>> fall = np.array([[0.0, 0.0, 0.0], [-2.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
        >>> answer = asked.ask([(0, 1), (1, 2)], poses, fall, np.zeros((3, 3)))
        >>> answer.time.round(2).tolist(), answer.contacts.body_b.tolist()
        ([0.5, inf], [1])
        >>> asked.set(2, poses[2], [-5.0, 0.0, 0.0], [0.0, 0.0, 1.0])
        >>> asked.first_contact(0, 2).status.name
        'CONTACT'
    """

    def __init__(
        self, meshes: Sequence[Mesh], *, device: str | wp.Device | None = None, threads: int | None = None
    ) -> None:
        self.meshes = tuple(meshes)
        for k, mesh in enumerate(self.meshes):
            if not isinstance(mesh, Mesh):
                raise InputError(f"meshes[{k}] must be a Mesh, not {described(mesh)}")
        if not self.meshes:
            raise InputError("meshes must be at least one Mesh, not none")
        self.device, self.threads = choose_device(device), None if threads is None else whole(threads, "threads", 1)
        distinct = tuple(dict.fromkeys(self.meshes))
        self._forest = Forest.of(distinct, self.device)
        self._shape = np.array([distinct.index(mesh) for mesh in self.meshes], np.int32)
        self._bodies: Any = BodyTable()
        self._bodies.node = self._array(self._forest.first_node[self._shape], wp.int32)
        wide = self._forest.first_wide[self._shape] if self.device.is_cpu else 0 * self._shape
        self._bodies.wide = self._array(wide, wp.int32)
        self._bodies.triangle = self._array(self._forest.first_triangle[self._shape], wp.int32)
        self._bodies.extent = self._array(np.array([mesh.extent for mesh in self.meshes]), wp.float64)
        count = len(self.meshes)
        self._twists: Any = TwistArrays()
        self._twists.rotation = self._array(np.tile(np.eye(3), (count, 1, 1)), wp.mat33d)
        for name in ("origin", "displacement", "turn", "pivot"):
            setattr(self._twists, name, wp.zeros(count, dtype=wp.vec3d, device=self.device))
        # What NumPy writes: the arrays themselves on the CPU (a view takes Warp 20 us to make), else copies of them.
        self._host_twists = {name: getattr(self._twists, name).numpy() for name in TwistArrays.vars}
        self._motions = wp.zeros(count, dtype=RigidMotion, device=self.device)
        self._fault = wp.full(2, NO_FAULT, dtype=wp.int32, device=self.device)
        self._host_fault = self._fault.numpy()
        self._check_twists, self._write_motions = (
            PreparedLaunch(kernel, [self._twists, out], self.device, dim=count, serial=True)
            for kernel, out in ((check_twists, self._fault), (write_motions, self._motions))
        )
        self._write_motions.run()  # all at rest at the origin
        self._chosen = wp.zeros(1, dtype=wp.int32, device=self.device)
        self._host_chosen = self._chosen.numpy()
        arguments = [self._chosen, self._twists, self._motions, self._fault]
        self._set_motion = PreparedLaunch(set_motion, arguments, self.device, dim=1, serial=True)
        self._questions = _Questions(self, LEAST_ROOM)

    def __len__(self) -> int:
        return len(self.meshes)

    def __repr__(self) -> str:
        return f"PreparedFirstContact({len(self)} bodies of {len(self._forest.shapes)} shapes, on {self.device})"

    @on_own_threads
    def ask(
        self,
        pairs: Arrays,
        poses: Arrays | tuple[Arrays, Arrays] | None = None,
        displacement: Arrays | None = None,
        rotation: Arrays | None = None,
        *,
        pivot: Arrays | None = None,
        separation: Arrays = 0.0,
        tolerance: Arrays | None = None,
        start: Start = "checked",
        until: Arrays | None = None,
    ) -> PreparedAnswer:
        """The first contact of each pair, from now to the end of the step.

        Args:
            pairs: numbers of two bodies, (n, 2), any number of them; Warp: (n, 2) int32 or (n,) vec2i.
            poses: of all bodies at t = 0, (m, 4, 4), or a pair (rotation (m, 3, 3), origin (m, 3)); Warp: mat44d, or
                (mat33d, vec3d). None leaves all motions as they were asked about or set last.
            displacement: how far each body's pivot goes over the step, (m, 3) [m]; None means nowhere.
            rotation: rotation vector of each body over the step, (m, 3) [rad]; None means none.
            pivot: the point of each body that goes straight, (m, 3) in its frame [m]; None means its origin.
            separation: distance that already counts as contact [m], one for all or (n,).
            tolerance: at the returned time the distance is at most separation + tolerance [m], one for all or (n,);
                None means 1e-6 of the larger body's size.
            start: "checked" decides exactly, for pairs that are within tolerance at t = 0, whether they meet there;
                "trusted" does not (for step loops that leave no overlap behind).
            until: times in [0, 1], one for all or (n,), after which a contact is not searched for; None means 1.

        Returns:
            Times and statuses at once, everything else when it is read: Warp arrays where `pairs` is one, else NumPy.
        """
        check_start(start)
        if poses is not None:
            self._set_all(poses, displacement, rotation, pivot)
        elif any(value is not None for value in (displacement, rotation, pivot)):
            raise InputError("displacement, rotation and pivot go with poses")
        count = _count(pairs)
        if count > self._questions.room:
            self._questions = _Questions(self, 1 << (count - 1).bit_length())
        questions = self._questions
        questions.put(pairs, separation, tolerance, until, count)
        return PreparedAnswer(self, questions, count, start, isinstance(pairs, wp.array))

    def set(
        self,
        body: int,
        pose: Arrays,
        displacement: Arrays = (0.0, 0.0, 0.0),
        rotation: Arrays = (0.0, 0.0, 0.0),
        pivot: Arrays = (0.0, 0.0, 0.0),
    ) -> None:
        """Say how one body moves from now on.

        Args:
            body: its number.
            pose: at t = 0, (4, 4).
            displacement, rotation, pivot: (3,), as in `ask`.
        """
        if not 0 <= body < len(self.meshes):
            raise InputError(f"body {body!r} is not one of {len(self.meshes)}")
        host = self._host_twists
        try:
            pose = np.asarray(pose, np.float64)
            host["rotation"][body] = pose[:3, :3]
            host["origin"][body] = pose[:3, 3]
            host["displacement"][body] = displacement
            host["turn"][body] = rotation
            host["pivot"][body] = pivot
        except (ValueError, TypeError, IndexError) as error:
            raise InputError(f"body {body}: a pose is (4, 4) numbers, each vector three: {error}") from error
        if self.device.is_cuda:
            for name, rows in host.items():
                getattr(self._twists, name)[body : body + 1].assign(rows[body : body + 1])
            self._chosen.fill_(body)
        self._host_chosen[0] = body
        self._set_motion.run()
        self._refuse_faults()

    def first_contact(
        self,
        a: int,
        b: int,
        *,
        separation: float = 0.0,
        tolerance: float | None = None,
        start: Start = "checked",
        until: float = 1.0,
    ) -> FirstContact:
        """The first contact of two bodies, as they were `set` or asked about last; arguments as for `ask`."""
        if start != "trusted":
            check_start(start)
        questions = self._questions
        questions.put_one(a, b, separation, tolerance, until)
        questions.search(1, start)
        hit = questions.fetched_hits(1)
        if not hit["time"].item(0) <= 1.0:
            return _FREE
        detail = questions.batch.contact_details()[:1].copy()
        contacts = DeferredContacts.by(partial(contacts_of, detail, self.meshes[a], self.meshes[b], a, b))
        status = _STATUS[status_of(hit)]
        return FirstContact(detail["time"].item(0), detail["time_upper"].item(0), status, contacts)

    def moving(self, body: int) -> Moving:
        """A body with the motion it has now, for any other question."""
        return self.meshes[body].moving(Rigid.of(self._motions.numpy()[body : body + 1].copy()))

    def _set_all(self, poses: Any, displacement: Any, rotation: Any, pivot: Any) -> None:
        """Write the motions of all bodies."""
        twists, count = self._twists, len(self.meshes)
        if isinstance(poses, wp.array):
            if poses.dtype != wp.mat44d or poses.shape != (count,):
                raise InputError(f"poses must be {count} wp.mat44d, not {described(poses)}")
            launch(split_poses, count, [poses.to(self.device)], [twists.rotation, twists.origin], device=self.device)
        elif isinstance(poses, tuple) and len(poses) == 2:
            self._put("rotation", poses[0], "rotation of poses", (count, 3, 3))
            self._put("origin", poses[1], "origin of poses", (count, 3))
        else:
            rows = to_numpy(poses, "poses")
            if rows.shape != (count, 4, 4):
                raise InputError(f"poses must have shape ({count}, 4, 4), not {rows.shape}")
            wrong = (rows[:, 3] != [0.0, 0.0, 0.0, 1.0]).any(axis=1)
            if wrong.any():
                raise InputError(f"poses[{int(np.argmax(wrong))}] has a last row that is not 0 0 0 1")
            self._put("rotation", rows[:, :3, :3], "poses", (count, 3, 3))
            self._put("origin", rows[:, :3, 3], "poses", (count, 3))
        self._put("displacement", displacement, "displacement", (count, 3))
        self._put("turn", rotation, "rotation", (count, 3))
        self._put("pivot", pivot, "pivot", (count, 3))
        self._check_twists.run()
        self._refuse_faults()
        self._write_motions.run()

    def _put(self, field: str, data: Any, name: str, shape: tuple[int, ...]) -> None:
        """Write one column of the twists; None means zeros."""
        column = getattr(self._twists, field)
        if isinstance(data, wp.array):
            _copy_rows(column, data, name, len(self.meshes))
            return
        host = self._host_twists[field]
        if data is None:
            host[:] = 0.0
        else:
            rows = to_numpy(data, name)
            if rows.shape != shape:
                raise InputError(f"{name} must have shape {shape}, not {rows.shape}")
            host[:] = rows
        if self.device.is_cuda:
            column.assign(host)

    def _refuse_faults(self) -> None:
        """Raise what `check_twists` found wrong."""
        fault = fault_of(self._fault, self._host_fault, 0)
        if fault is not None:
            row, word = fault
            raise InputError(f"body {row} has {TWIST_FAULTS[word]}")

    def _array(self, data: np.ndarray, dtype: Any) -> wp.array:
        return wp.array(np.ascontiguousarray(data), dtype=dtype, device=self.device)


class _Questions:
    """Room for so many pairs: what is asked about them, and the launches that answer."""

    def __init__(self, asked: PreparedFirstContact, room: int) -> None:
        self.room, self.device, self._asked = room, asked.device, asked
        forest = asked._forest
        self.batch = RigidQueryBatch(forest, forest, room, asked._motions, asked.device)
        self._columns: Any = QuestionArrays()
        self._columns.pairs = wp.zeros(room, dtype=wp.vec2i, device=self.device)
        for name in ("separation", "tolerance", "until"):
            setattr(self._columns, name, wp.zeros(room, dtype=wp.float64, device=self.device))
        self._host = {name: getattr(self._columns, name).numpy() for name in QuestionArrays.vars}
        self._one = tuple(self._host.values())
        self._fault, self._host_fault = asked._fault, asked._host_fault
        arguments = [self._columns, asked._bodies, self.batch.arrays, self.batch.hits, self._fault]
        self._write = PreparedLaunch(write_queries, arguments, self.device, serial=True)
        self._write_one = PreparedLaunch(write_queries, arguments, self.device, dim=1, serial=True)

    def put(self, pairs: Any, separation: Any, tolerance: Any, until: Any, count: int) -> None:
        """Write down what is asked."""
        if isinstance(pairs, wp.array):
            _copy_rows(self._columns.pairs, pairs, "pairs", count)
        elif count:
            self._host["pairs"][:count] = to_numpy(pairs, "pairs", None)
            self._to_device("pairs", count)
        self._put("separation", separation, count)
        self._put("tolerance", DEFAULT_TOLERANCE if tolerance is None else tolerance, count)
        self._put("until", 1.0 if until is None else until, count)
        if count:
            self._write.launch(count, 0)
            self._refuse_faults()

    def put_one(self, a: int, b: int, separation: float, tolerance: float | None, until: float) -> None:
        """Write down what is asked about one pair."""
        pairs, separations, tolerances, limits = self._one
        pairs[0, 0] = a
        pairs[0, 1] = b
        separations[0] = separation
        tolerances[0] = DEFAULT_TOLERANCE if tolerance is None else tolerance
        limits[0] = until
        if self.device.is_cuda:
            for name in self._host:
                self._to_device(name, 1)
        self._write_one.run()
        self._refuse_faults()

    def search(self, count: int, start: str) -> None:
        """Answer the first `count` questions."""
        batch = self.batch
        batch.count = count
        if count:
            batch.search(self._asked.threads)
        if start == "checked" and count:
            batch.fetched_hits()
            batch.classify_initial_overlap(self._pair)

    def fetched_hits(self, count: int) -> np.ndarray:
        """The first `count` hits in main memory."""
        return self.batch.fetched_hits()[:count]

    def _pair(self, row: int) -> tuple[Moving, Moving]:
        a, b = self._columns.pairs.numpy()[row]
        return self._asked.moving(int(a)), self._asked.moving(int(b))

    def _put(self, name: str, data: Any, count: int) -> None:
        if isinstance(data, wp.array):
            _copy_rows(getattr(self._columns, name), data, name, count)
            return
        if isinstance(data, bool):
            raise InputError(f"{name} must be a number, or one for each of {count} pairs, not {described(data)}")
        rows = data if isinstance(data, float) else to_numpy(data, name)
        if np.ndim(rows) and np.shape(rows) != (count,):
            raise InputError(f"{name} must be a number, or one for each of {count} pairs, not {described(data)}")
        self._host[name][:count] = rows
        self._to_device(name, count)

    def _to_device(self, name: str, count: int) -> None:
        if self.device.is_cuda:
            getattr(self._columns, name)[:count].assign(self._host[name][:count])

    def _refuse_faults(self) -> None:
        fault = fault_of(self._fault, self._host_fault, 1)
        if fault is not None:
            row, word = fault
            bodies = tuple(int(k) for k in self._columns.pairs.numpy()[row])
            given = {
                name: float(getattr(self._columns, name).numpy()[row]) for name in ("separation", "tolerance", "until")
            }
            raise InputError(
                QUESTION_FAULTS[word].format(row=row, pair=bodies, bodies=len(self._asked.meshes), **given)
            )


class PreparedAnswer:
    """First contacts of n pairs: times and statuses at once, everything else when it is read.

    It holds what it needs to tell the rest, whatever is asked in the meantime.
    """

    def __init__(
        self, asked: PreparedFirstContact, questions: _Questions, count: int, start: str, on_device: bool
    ) -> None:
        self._asked, self._on_device, self._count = asked, on_device, count
        questions.search(count, start)
        batch, device = questions.batch, asked.device
        time = wp.empty(count, dtype=wp.float64, device=device)
        status = wp.empty(count, dtype=wp.uint8, device=device)
        launch(write_answers, count, [batch.hits], [time, status], device=device)
        self.time: Any = time if on_device else time.numpy()  #: (n,) in [0, 1], inf when free
        self.status: Any = status if on_device else status.numpy()  #: (n,) `Status`
        # Copies in main memory cost a microsecond each; on a device they are not waited for.
        arrays = (questions._columns.pairs, batch.queries, batch.motions, batch.hits)
        rows = (count, count, len(asked.meshes), count)
        self._kept = [wp.clone(array[:n]) if n else array for array, n in zip(arrays, rows, strict=True)]

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        raise InputError(f"{len(self)} answers are not true or false as one: ask `hit.any()` or `hit.all()`")

    def __repr__(self) -> str:
        counts = np.bincount(to_numpy(self.status, "status", np.uint8), minlength=len(_STATUS))
        told = ", ".join(f"{count} {status}" for status, count in zip(_STATUS, counts, strict=True) if count)
        return f"PreparedAnswer({len(self)} pairs: {told or 'none'})"

    @property
    def hit(self) -> np.ndarray:
        """(n,) True where there is a contact or none could be excluded."""
        return to_numpy(self.status, "status", np.uint8) != Status.FREE

    @cached_property
    def columns(self) -> Any:
        """`DetailArrays` of Warp arrays on the device, (n,) each: what touches where, NaN where nothing does."""
        columns: Any = DetailArrays()
        for name, variable in DetailArrays.vars.items():
            setattr(columns, name, wp.empty(self._count, dtype=variable.type.dtype, device=self._asked.device))
        launch(write_details, self._count, [self._details, self._kept[3]], [columns], device=self._asked.device)
        return columns

    @cached_property
    def time_upper(self) -> Any:
        """(n,) contact is certain by then, inf when that is not proved."""
        return self.columns.time_upper if self._on_device else self.columns.time_upper.numpy()

    @cached_property
    def contacts(self) -> Contacts:
        """The contact of each pair that has one, in order; `query` is the pair's number. In main memory."""
        rows = np.flatnonzero(self.hit)
        if not len(rows):
            return Contacts()
        details, pairs = self._details.numpy()[rows], self._kept[0].numpy()[rows]
        return contacts_of_batch(details, self._asked._forest.shapes, self._asked._shape, pairs, rows)

    @cached_property
    def _details(self) -> wp.array:
        """(n,) `ContactDetail`."""
        _, queries, motions, hits = self._kept
        details = wp.empty(self._count, dtype=ContactDetail, device=self._asked.device)
        pairs = wp.empty(self._count, dtype=Pair, device=self._asked.device)
        arrays = self._asked._questions.batch.arrays_of(queries, motions, pairs)
        launch(prepare_pairs, self._count, [arrays], device=self._asked.device, grain=64)
        launch(describe, self._count, [arrays, hits], [details], device=self._asked.device, grain=64)
        return details


_FREE = FirstContact(np.inf, np.inf, Status.FREE)


def _count(pairs: Any) -> int:
    """How many pairs there are."""
    shape = np.shape(pairs) if not isinstance(pairs, wp.array) else pairs.shape
    if isinstance(pairs, wp.array) and pairs.dtype == wp.vec2i:
        shape = (*shape, 2)
    if shape == (0,):
        return 0
    if len(shape) != 2 or shape[1] != 2:
        raise InputError(f"pairs must be numbers of two bodies each, (n, 2), not {described(pairs)}")
    if isinstance(pairs, wp.array):
        if pairs.dtype not in (wp.int32, wp.vec2i):
            raise InputError(f"pairs must be (n, 2) int32 or (n,) vec2i, not {described(pairs)}")
    elif shape[0] and not np.issubdtype(np.asarray(pairs).dtype, np.integer):
        raise InputError(f"pairs must be whole numbers, not {described(pairs)}")
    return int(shape[0])


def _copy_rows(column: wp.array, data: wp.array, name: str, count: int) -> None:
    """The first `count` rows of a column from an array that is on a device."""
    source = data
    if data.dtype != column.dtype:
        size = wp.types.type_size_in_bytes(column.dtype)
        if not data.is_contiguous or data.size * wp.types.type_size_in_bytes(data.dtype) != size * count:
            raise InputError(f"{name} must be {count} {column.dtype.__name__}, not {described(data)}")
        if getattr(column.dtype, "_wp_scalar_type_", column.dtype) is not getattr(
            data.dtype, "_wp_scalar_type_", data.dtype
        ):
            raise InputError(f"{name} must be {count} {column.dtype.__name__}, not {described(data)}")
        source = wp.array(ptr=data.ptr, dtype=column.dtype, shape=(count,), device=data.device, copy=False)
    if source.shape != (count,):
        raise InputError(f"{name} must be {count} {column.dtype.__name__}, not {described(data)}")
    if count:
        wp.copy(column, source, count=count)
