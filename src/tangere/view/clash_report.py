"""Clashes of an assembly as pictures: a sheet of the worst, and a page with all of them that needs nothing else."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.runtime import check_out_file
from tangere.view.pictures import Picture, picture, png_bytes, stacked, strip

if TYPE_CHECKING:
    from tangere.assembly import Assembly, Clash, Clashes

#: Pictures of a page, at most: each takes a second.
MOST_PICTURES = 24
_COLUMNS = 3
_COLOURS = {"duplicate": "#7b3294", "inside": "#0d59bf", "hard": "#c62828", "touching": "#666666", "near": "#c77700"}
_STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.35em .7em;border-bottom:1px solid #ddd;"
    "vertical-align:top}img{width:300px;display:block;border-radius:4px}.kind{font-weight:600}"
    "small{color:#666}"
)


def clash_sheet(
    assembly: Assembly,
    clashes: Clashes,
    *,
    most: int = 9,
    path: str | Path | None = None,
    device: Any = None,
    threads: int | None = None,
) -> Picture:
    """The worst clashes side by side, three in a row; the whole assembly where there is none.

    Args:
        most: so many at most.
        path: also write it there, a .png file in a folder that exists.
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    check_out_file(path, "clash_sheet", ".png")
    shown = [
        strip(
            assembly.scene(row), [0.0], labels=[_label(row)], size=(420, 340), samples=1, device=device, threads=threads
        )
        for row in clashes.rows[:most]
    ]
    if not shown:
        image = picture(assembly.scene(), device=device, threads=threads)
    else:
        empty = np.full_like(shown[0], 255)
        rows = [shown[k : k + _COLUMNS] for k in range(0, len(shown), _COLUMNS)]
        width = len(rows[0])
        image = stacked([stacked([*row, *[empty] * (width - len(row))], axis=1) for row in rows])
    if path is not None:
        image.save(path)
    return image


def clash_page(
    assembly: Assembly,
    clashes: Clashes,
    path: str | Path,
    *,
    pictures: int = MOST_PICTURES,
    device: Any = None,
    threads: int | None = None,
) -> None:
    """Write a page with a row for every clash, and a picture of each; it needs no other file.

    Args:
        path: the .html file, in a folder that exists.
        pictures: so many at most, the worst; the page says how many have none.
        device: where to compute; None means CUDA if present.
        threads: CPU threads; None means all, or TANGERE_THREADS.
    """
    check_out_file(path, "clash_page", ".html")
    rows = [_row(assembly, row, number < pictures, device, threads) for number, row in enumerate(clashes)]
    counts = ", ".join(f"{count} {kind}" for kind, count in clashes.counts.items() if count) or "no clash"
    facts = [
        f"{clashes.parts} parts, {clashes.compared} pairs compared",
        f"clearance {_length(clashes.clearance)}, skin {_length(clashes.skin)}: what is no deeper only touches",
        f"facets are within {_length(clashes.chord_error)} of the surfaces they stand for",
    ]
    if clashes.open_parts:
        facts.append(f"without an inside: {', '.join(clashes.open_parts)}")
    if clashes.turned_parts:
        facts.append(f"inside out, turned round: {', '.join(clashes.turned_parts)}")
    if len(clashes) > pictures:
        facts.append(f"pictures of the worst {pictures}; {len(clashes) - pictures} have none")
    head = "<th></th><th>parts</th><th>kind</th><th>how much</th><th>where [mm]</th><th>way out [mm]</th>"
    text = (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>Clashes of {escape(assembly.name)}</title>"
        f"<style>{_STYLE}</style><h1>{escape(assembly.name)}: {escape(counts)}</h1>"
        f"<p><small>{'<br>'.join(escape(fact) for fact in facts)}</small></p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></html>"
    )
    Path(path).write_text(text, encoding="utf-8")


def _row(assembly: Assembly, clash: Clash, drawn: bool, device: Any, threads: int | None) -> str:
    image = ""
    if drawn:
        data = png_bytes(picture(assembly.scene(clash), size=(420, 320), samples=1, device=device, threads=threads))
        told = escape(f"{clash.name_a} and {clash.name_b}", quote=True)
        image = f"<img alt='{told}' src='data:image/png;base64,{base64.b64encode(data).decode()}'>"
    names = f"{escape(clash.name_a)}<br>{escape(clash.name_b)}"
    note = f"<br><small>{escape(clash.note)}</small>" if clash.note else ""
    kind = f"<span class='kind' style='color:{_COLOURS[str(clash.kind)]}'>{clash.kind}</span>{note}"
    cells = [image, names, kind, escape(how_much(clash)), _vector(clash.point), _vector(clash.escape)]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def how_much(clash: Clash) -> str:
    """How deep, or how near, in words."""
    if np.isfinite(clash.depth_upper):
        return f"{_length(clash.depth_lower)} to {_length(clash.depth_upper)} deep"
    if str(clash.kind) == "near":
        return f"{_length(clash.distance)} apart"
    return ""


def _label(clash: Clash) -> str:
    return f"{clash.name_a} / {clash.name_b}: {clash.kind} {how_much(clash)}"


def _length(metres: float) -> str:
    return f"{1e3 * metres:.4g} mm"


def _vector(metres: np.ndarray) -> str:
    return ", ".join(f"{1e3 * x:.3f}" for x in metres) if np.isfinite(metres).all() else ""
