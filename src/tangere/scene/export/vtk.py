"""A scene for ParaView and PyVista: one .vtu file, or a series of them that a .pvd file lists.

Each file has all things as triangles, in double precision, with their numbers and colours in the cell arrays `thing`
and `colour`; contacts so far are files of their own, points with `normal`, `gap`, `kind`, `time`, `body_a`, `body_b`.
Times of a series are those of the scene's clock.

Known as: VTK XML formats, unstructured grid and collection (the VTK User's Guide, "VTK file formats").
"""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from tangere.query.contacts import Contacts
from tangere.runtime import writing
from tangere.scene.export.animation import is_shown, sampled_times
from tangere.scene.scene import Scene

_TRIANGLE, _VERTEX = 5, 1  #: cell types
_TYPES = {"f8": "Float64", "f4": "Float32", "i8": "Int64", "i4": "Int32", "u1": "UInt8"}


def save_pvd(scene: Scene, path: str | Path, *, frames: int | None = None, seconds: float | None = None) -> None:
    """Write a series: `path` lists files in a folder of the same name beside it.

    Args:
        frames: so many instants at even distances; None means those of the motions, or 61 and the first contact.
        seconds: how long it lasts; None means that times are those of the scene's clock.
    """
    path = Path(path)
    folder = path.with_suffix("")
    rows = []
    with writing(path):
        folder.mkdir(exist_ok=True)
        for number, time in enumerate(sampled_times(scene, frames).tolist()):
            shown = _shown(scene, time, seconds)
            parts = [("things", _things(scene, time))]
            if len(scene.contacts):
                parts.append(("contacts", _contacts(scene.contacts_by(time))))
            for part, (name, text) in enumerate(parts):
                file = folder / f"{name}_{number:05d}.vtu"
                file.write_text(text, encoding="utf-8")
                reference = quoteattr(f"{folder.name}/{file.name}")
                rows.append(
                    f'    <DataSet timestep="{shown!r}" group="" part="{part}" name="{name}" file={reference}/>\n'
                )
        path.write_text(_document("Collection", "".join(rows), version="0.1", extra=""), encoding="utf-8")


def save_vtu(scene: Scene, path: str | Path) -> None:
    """Write the things as they are at the start."""
    with writing(path):
        Path(path).write_text(_things(scene, scene.time_range[0]), encoding="utf-8")


def _shown(scene: Scene, time: float, seconds: float | None) -> float:
    if seconds is None:
        return float(scene.on_clock(time))
    start, end = scene.time_range
    return float((time - start) / ((end - start) or 1.0) * seconds)


def _things(scene: Scene, time: float) -> str:
    vertices, faces, number, colours, count = [], [], [], [], 0
    for k, thing in enumerate(scene.things):
        if not is_shown(thing, time):
            continue
        own = thing.vertices(time)
        vertices.append(own)
        faces.append(thing.faces.astype(np.int64) + count)
        number.append(np.full(len(thing.faces), k, np.int32))
        rgba = np.round(255.0 * np.array([*thing.colour, thing.opacity])).astype(np.uint8)
        colours.append(np.tile(rgba, (len(thing.faces), 1)))
        count += len(own)
    cells = {"thing": np.concatenate(number), "colour": np.concatenate(colours)}
    names = "".join(f"{k}: {thing.name}\n" for k, thing in enumerate(scene.things))
    return _grid(np.concatenate(vertices), np.concatenate(faces), _TRIANGLE, cell_data=cells, names=names)


def _contacts(contacts: Contacts) -> str:
    middle = (contacts.point_a + contacts.point_b) / 2.0
    columns = ("normal", "gap", "kind", "time", "body_a", "body_b")
    data = {name: getattr(contacts, name) for name in columns}
    return _grid(middle, np.arange(len(middle), dtype=np.int64)[:, None], _VERTEX, point_data=data)


def _grid(
    points: np.ndarray,
    cells: np.ndarray,
    kind: int,
    *,
    point_data: dict[str, np.ndarray] | None = None,
    cell_data: dict[str, np.ndarray] | None = None,
    names: str = "",
) -> str:
    """One unstructured grid of cells (m, k), all of one kind."""
    ends = cells.shape[1] * np.arange(1, len(cells) + 1, dtype=np.int64)
    types = np.full(len(cells), kind, np.uint8)
    field = ""
    if names:
        letters = np.frombuffer(names.encode() + b"\0", np.uint8)
        codes = " ".join(map(str, letters.tolist()))
        array = f'<Array type="String" Name="names" NumberOfTuples="1" format="ascii">{codes}</Array>'
        field = f"    <FieldData>{array}</FieldData>\n"
    body = (
        f"{field}"
        f'    <Piece NumberOfPoints="{len(points)}" NumberOfCells="{len(cells)}">\n'
        f"      <PointData>{_arrays(point_data)}</PointData>\n"
        f"      <CellData>{_arrays(cell_data)}</CellData>\n"
        f"      <Points>{_array('points', np.asarray(points, np.float64))}</Points>\n"
        "      <Cells>"
        f"{_array('connectivity', cells.reshape(-1))}{_array('offsets', ends)}{_array('types', types)}"
        "</Cells>\n"
        "    </Piece>\n"
    )
    return _document("UnstructuredGrid", body, extra=' compressor="vtkZLibDataCompressor"')


def _document(kind: str, body: str, *, version: str = "1.0", extra: str) -> str:
    head = f'<VTKFile type="{kind}" version="{version}" byte_order="LittleEndian" header_type="UInt64"{extra}>'
    return f'<?xml version="1.0"?>\n{head}\n  <{kind}>\n{body}  </{kind}>\n</VTKFile>\n'


def _arrays(data: dict[str, np.ndarray] | None) -> str:
    return "".join(_array(name, values) for name, values in (data or {}).items())


def _array(name: str, values: np.ndarray) -> str:
    """An array within the file: its sizes, then its bytes in one block, compressed, both in base 64."""
    values = np.ascontiguousarray(values)
    type_name = _TYPES[values.dtype.str[1:]]
    width = "" if values.ndim == 1 else f' NumberOfComponents="{values.shape[1]}"'
    raw: Any = values.astype(values.dtype.newbyteorder("<")).tobytes()
    packed = zlib.compress(raw, 6)
    # blocks, bytes of a block, bytes of a last block that is shorter (0: none is), bytes of each when compressed
    sizes = np.array([1, len(raw), 0, len(packed)] if raw else [0, 0, 0], "<u8")
    text = (base64.b64encode(sizes.tobytes()) + base64.b64encode(packed if raw else b"")).decode()
    return f'<DataArray type="{type_name}" Name="{name}"{width} format="binary">{text}</DataArray>'
