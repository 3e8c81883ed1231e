"""Questions about rigid parts: motions of every kind, scenes, screws, paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

import tangere as tg
from tools import words
from tools.digest.answers import Book, section
from tools.digest.questions import motions, place, poses, shapes


@section
def rigid(book: Book) -> None:
    """First contact of rigid meshes: batches, single motions, scenes."""
    all_shapes = shapes()
    pairs = [("torus", "torus"), ("ball", "gear"), ("box", "box"), ("comb", "bumps")]
    kinds = ("twist", "screw")
    for a, b in book.some(pairs, 2):
        one, other = all_shapes[a], all_shapes[b]
        for kind in kinds:
            case = f"{a}-{b}.{kind}"
            many = motions(kind, book.rng(case), book.size(100, 8))
            book.ask(f"{case}.batch", tg.first_contact, one.moving(many), other, device="cpu")
            if book.quick:
                continue
            book.ask(f"{case}.separation", tg.first_contact, one.moving(many), other, separation=0.1, device="cpu")
            book.ask(f"{case}.recession", words.first_contact, one.moving(many), other, recession=True, device="cpu")
            rest = other.moving(tg.Rest(poses(book.rng(f"{case} rest"), len(many), 0.4)))
            book.ask(f"{case}.both", tg.first_contact, one.moving(many), rest, tolerance=1e-4, device="cpu")
            singles = [one.moving(many[k]) for k in range(10)]
            options = {"device": "cpu", "contacts": "all"}
            book.keep(f"{case}.alone", [words.first_contact(each, other, **options) for each in singles])
            book.keep(
                f"{case}.trusted", [words.first_contact(each, other, start="trusted", **options) for each in singles]
            )
    _rigid_alone(book, all_shapes)
    for number in range(book.size(4, 1)):
        rng = book.rng(f"scene {number}")
        names = list(all_shapes)
        bodies = [all_shapes[names[k % len(names)]] for k in range(book.size(18, 8))]
        begin = poses(rng, len(bodies), 0.3)
        begin[:, :3, 3] += 3.3 * np.stack(np.unravel_index(np.arange(len(bodies)), (3, 3, 2)), axis=1)
        many = tg.Twist(begin, 3.0 * rng.uniform(-1, 1, (len(bodies), 3)), rng.uniform(-2, 2, (len(bodies), 3)))
        scene = [mesh.moving(many[k]) if k % 4 else mesh.at(begin[k]) for k, mesh in enumerate(bodies)]
        book.ask(f"scene{number}.sweep", words.first_contact_of_scene, scene, device="cpu")
        if not book.quick:
            for separation in (0.0, 0.2):
                options = {"broad_phase": "tree", "separation": separation, "allowed": [[0, 1], [2, 5]]}
                book.ask(
                    f"scene{number}.tree{separation}", words.first_contact_of_scene, scene, device="cpu", **options
                )


def _rigid_alone(book: Book, all_shapes: dict[str, Any]) -> None:
    """Paths, chains, bodies at rest, flat landings and what starts in contact."""
    box, torus, ball = (all_shapes[name] for name in ("box", "torus", "ball"))
    falling = tg.Twist(place(0.1, 0.05, 1.5), (0.0, 0.0, -2.0), (0.0, 0.0, 0.0))
    for recession in (False, True):
        options = {"contacts": "all", "recession": recession, "device": "cpu"}
        book.ask(f"flat.recession{int(recession)}", words.first_contact, box.moving(falling), box, **options)
    way = poses(book.rng("path"), 7, 2.0, turn=0.8)
    way[0, :3, 3] = 3.0
    book.ask("path", words.first_contact, torus.moving(tg.Path(way)), ball, contacts="all", device="cpu")
    book.ask("chain", tg.first_contact, box.moving(jointed_arm().link(2)), ball.at(place(0.4, 2.1)), device="cpu")
    if book.quick:
        return
    uneven = tg.Path(way, [0.0, 0.05, 0.3, 0.4, 0.8, 0.9, 1.0])
    book.ask("path.times", tg.first_contact, torus.moving(uneven), ball.moving(tg.Path(way[::-1] + 0.0)), device="cpu")
    book.ask("path.recession", words.first_contact, torus.moving(uneven), ball, recession=True, device="cpu")
    for number in range(3):
        moving = box.moving(jointed_arm().link(number))
        book.ask(f"chain.link{number}", tg.first_contact, moving, torus.at(place(0.2, 2.5, 0.1)), device="cpu")
    book.ask("rest.start", words.first_contact, torus.moving(tg.Rest(place(0.5))), torus, contacts="all", device="cpu")
    book.ask("rest.free", tg.first_contact, torus.moving(tg.Rest(place(5.0))), torus, device="cpu")
    away = tg.Twist(place(1.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0))  # faces touch at the start, exactly
    for start in ("checked", "trusted"):
        for recession in (False, True):
            case = f"parting.{start}{int(recession)}"
            book.ask(case, words.first_contact, box.moving(away), box, start=start, recession=recession, device="cpu")
    joined = words.Rigid.join([falling, away, tg.Rest(place(0.2)), motions("screw", book.rng("join"), 5)])
    book.ask("joined", tg.first_contact, box.moving(joined), box, device="cpu")
    parts = motions("twist", book.rng("parts"), 2)[1].part(np.linspace(0.0, 0.9, 10), np.linspace(0.1, 1.0, 10))
    book.ask("parts", tg.first_contact, torus.moving(parts), ball, device="cpu")
    spins = tg.Twist(place(3.2), (-3.0, 0.2, 0.1), np.array([[40.0, 3.0, 9.0], [0.0, 60.0, 0.0], [200.0, 0.0, 1.0]]))
    book.ask("spins", tg.first_contact, torus.moving(spins), torus, device="cpu")
    large = words.generate.bumpy_torus(88, 44)
    many = motions("twist", book.rng("large"), 12, away=2.0)
    book.ask("large.batch", tg.first_contact, large.moving(many), large, device="cpu")
    book.keep("large.alone", [tg.first_contact(large.moving(many[k]), large, device="cpu") for k in range(12)])


def jointed_arm() -> Any:
    """Three links that turn and slide."""
    upper, hand = place(1.0), place(0.8, 0.1)
    joints = [
        tg.Twist(np.eye(4), (0, 0, 0), (0, 0, 1.3)),
        tg.Twist(upper, (0.2, 0, 0), (0, 0.4, 1.0)),
        tg.Screw(hand, poses(np.random.default_rng(5), 1, 0.3)[0] @ hand),
    ]
    return tg.Chain(joints)


@section
def mixed(book: Book) -> None:
    """A deforming mesh and a rigid one."""
    ball, box, torus = (shapes()[name] for name in ("ball", "box", "torus"))
    for kind in ("twist", "screw") if book.quick else ("twist", "screw", "tan", "cosine", "rest"):
        many = motions(kind, book.rng(kind), book.size(8, 2), away=1.6)
        found, swapped = [], []
        for k in range(len(many)):
            rng = book.rng(f"{kind} {k}")
            soft = ball.moving(tg.Linear(ball.vertices * (1.2, 0.9, 1.1) + 0.1 * rng.uniform(-1, 1, (1, 3))))
            stiff = box.moving(many[k])
            found.append(tg.first_contact(soft, stiff, device="cpu"))
            swapped.append(tg.first_contact(stiff, soft, device="cpu", tolerance=1e-4))
        book.keep(f"{kind}.linear_first", found)
        book.keep(f"{kind}.rigid_first", swapped)
    growing = ball.at(place(2.6, 1.2)).moving(tg.Linear(ball.vertices * 1.5 + (2.0, 1.2, 0.0)))
    book.ask("chain", tg.first_contact, growing, box.moving(jointed_arm().link(2)), device="cpu")
    inside = torus.moving(tg.Linear(torus.vertices * 1.1))
    start = box.moving(tg.Twist(place(1.0), (0.1, 0, 0), (0, 0, 1.0)))
    book.ask("start", tg.first_contact, inside, start, device="cpu")
    if not book.quick:
        book.ask("start.trusted", tg.first_contact, inside, start, start="trusted", device="cpu")


@section
def screws(book: Book) -> None:
    """The screws of the thesis and its two engines."""
    all_shapes = shapes()
    torus, ball, box, gear = (all_shapes[name] for name in ("torus", "ball", "box", "gear"))
    count = book.size(30, 6)
    for kind in ("tan", "cosine"):
        many = motions(kind, book.rng(kind), count)
        book.ask(f"{kind}.poses", many.pose, np.linspace(0, 1, count))
        book.ask(
            f"{kind}.twists", lambda many=many: dict(zip("vw", many.twist(np.linspace(0.1, 1, count)), strict=True))
        )
        book.ask(f"{kind}.torus", tg.first_contact, torus.moving(many), gear, device="cpu")
        if not book.quick:
            book.ask(f"{kind}.batch", tg.first_contact, box.moving(many), ball, device="cpu")
    many = motions("tan", book.rng("printed"), book.size(12, 2))
    book.ask("intervals.batch", words.first_contact_published, box.moving(many), ball)
    points = book.rng("points").uniform(-1, 1, (len(many) * 40, 4, 3))
    screw = motions("tan", book.rng("features"), 1, away=0.8)[0]
    screw = words.TanScrew(screw.pose(0.0), screw.pose(1.0))
    book.ask("cubics.edge_edge", words.edge_edge_times, points, screw, device="cpu")
    if book.quick:
        return
    book.ask("cubics.vertex_face", words.vertex_face_times, points, screw, device="cpu")
    book.ask("cubics.face_vertex", words.face_vertex_times, points, screw, device="cpu")
    for name, switches in {
        "usual": {},
        "plain": {"label_table": False, "pair_tables": False, "vertex_cache": False, "prefilters": False},
    }.items():
        found = [
            words.search_by_cubics(mesh.moving(many[k]), other, switches=words.Switches(**switches))
            for k in range(len(many))
            for mesh, other in ((box, ball), (gear, torus))
        ]
        book.keep(f"cubics.meshes.{name}", found)
    for kind, options in {
        "printed": words.IntervalOptions.printed(),
        "usual": words.IntervalOptions(),
        "cones": words.IntervalOptions(recession="hierarchical", discrete_axes=6),
    }.items():
        ask = words.first_contacts_by_intervals
        book.ask(f"intervals.{kind}", ask, box.moving(many), ball, options, device="cpu", threads=1)
        book.ask(f"intervals.{kind}.gear", ask, gear.moving(many[:4]), torus, options, device="cpu", threads=1)
    few, rest = motions("twist", book.rng("pairs"), len(points), away=0.5), tg.Rest()
    book.ask("intervals.edge_edge", words.edge_edge_by_intervals, points, few, rest, device="cpu")
    book.ask("intervals.vertex_face", words.vertex_face_by_intervals, points, few, rest, device="cpu")
    _recession(book, box, gear, many)
    x, y = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 4), indexing="ij")
    bulge = words.BezierSurface(np.stack([x, y, (1 - x * x) * (1 - y * y)], axis=-1))
    grid = np.linspace(0, 1, 11)
    ring, on_patch = words.TorusSurface(1.0, 0.35), bulge.points(0, grid, grid[::-1])
    book.keep("surfaces", {"points": on_patch, "value": ring.value(on_patch), "distance": ring.distance(on_patch)})
    down = poses(book.rng("surface"), 1, 0.1)[0]
    down[2, 3] = 4.0
    motion = tg.Twist(down, (0.2, 0.0, -4.0), (0.7, 0.4, 1.0))
    for name, other in {"patch": bulge, "torus": ring}.items():
        ask = words.surfaces_first_contact
        book.ask(f"surfaces.{name}", ask, bulge, motion, other, rest, tolerance=0.02, device="cpu")


def _recession(book: Book, box: Any, gear: Any, many: Any) -> None:
    """Cones of what moves away, by both builders, and the tests that use them."""
    for name, mesh in {"box": box, "gear": gear}.items():
        tree = words.ObbTree.of(mesh, wp.get_device("cpu"))
        for builder in ("hull", "published"):
            for attach in ("top-down", "bottom-up"):
                cones = words.RecessionCones.build(mesh, tree, builder=builder, attach=attach)
                kept = {"first": cones.first, "vectors": cones.vectors}
                kept["receding"] = words.receding_nodes(tree, cones, many[0], begin=0.2, end=0.5)
                book.keep(f"recession.{name}.{builder}.{attach}", kept)
        receding = [words.receding_triangles(mesh, many[k], many[k + 1], time=0.3) for k in range(4)]
        book.keep(f"recession.{name}.triangles", receding)


@section
def path_check(book: Book) -> None:
    """Parts on their way out of assemblies, and past several obstacles."""
    make = words.generate
    tasks = {"peg": make.peg_hole(triangles=512), "combs": make.comb_plates(3)}
    if not book.quick:
        tasks |= {"pipe": make.pipe_nozzle(), "hoops": make.two_hoops(600), "lifter": make.window_lifter(8000)}
    for name, task in tasks.items():
        for way in ("free_path", "touching_path"):
            path = tg.Path(getattr(task, way))
            check = book.ask(f"{name}.{way}", tg.check_path, task.part, task.fixed, path, instants=2, device="cpu")
            if check is not None:
                book.keep(f"{name}.{way}.end", {"pose": check.pose, "certain": check.clearance.certain})
    if book.quick:
        return
    part, rng = shapes()["gear"], book.rng("obstacles")
    obstacles = [shapes()["ball"].moving(tg.Rest(pose)) for pose in poses(rng, 4, 4.0)] + [shapes()["box"]]
    path = tg.Path(poses(rng, 9, 4.0))
    book.ask("obstacles", tg.check_path, part, obstacles, path, separation=0.05, device="cpu")
