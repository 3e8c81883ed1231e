"""What assemblies and their clashes look like, as things of a scene."""

from __future__ import annotations

from collections.abc import Sequence

from tangere.assembly.clash import Clash, Clashes
from tangere.assembly.part import Part
from tangere.scene import PALETTE, Camera, Scene, Thing

#: Colours of the two parts of a clash.
_FIRST, _SECOND = (0.85, 0.33, 0.18), (0.22, 0.45, 0.70)
_GLASS = 0.35
#: The smaller part fills at least this part of the picture.
_FILLS = 0.4


def assembly_scene(parts: Sequence[Part], title: str) -> Scene:
    """All parts, those of one shape in one colour."""
    shapes = list(dict.fromkeys(part.shape for part in parts))
    colour = {id(shape): PALETTE[k % len(PALETTE)] for k, shape in enumerate(shapes)}
    return Scene(tuple(Thing(part.name, part.body, colour[id(part.shape)]) for part in parts), title=title)


def clash_scene(parts: Sequence[Part], clash: Clash) -> Scene:
    """The two parts of a clash, the larger one as glass, with a mark where it is."""
    pair = sorted((clash.a, clash.b), key=lambda k: parts[k].shape.extent)
    small, large = (parts[k] for k in pair)
    things = [Thing(small.name, small.body, _FIRST), Thing(large.name, large.body, _SECOND, opacity=_GLASS)]
    reach = small.shape.extent
    zoom = max(1.0, _FILLS * Scene(tuple(things)).extent / reach)
    rows = Clashes((clash,), 0.0, 0.0, 0.0, 0.0, 2, 1, (), ()).contacts()
    return Scene(
        tuple(things),
        contacts=rows,
        camera=Camera(zoom=zoom, target=tuple(clash.point.tolist())),
        title=f"{clash.name_a} and {clash.name_b}: {clash.told}",
    )
