"""The gallery: a grid of pictures, and for every script in examples/ a page with its picture and its source.

The pages are written to docs/gallery before the build. Scripts run where their picture is missing or older; with
`gallery_runs = 0` none does, and only pictures that are there are shown.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "gallery"
#: The most telling first; others follow by name.
FIRST = (
    "ball_into_a_wall",
    "soft_drop",
    "cut_a_block",
    "wheels_on_dunes",
    "first_contact_of_two_meshes",
    "check_a_path",
    "robot_in_a_cell",
    "crowd_corridor",
    "steer_round_a_vessel",
    "a_driver_of_your_own",
    "watch_it",
    "soft_tori",
    "barrels_on_kerb",
    "cloth_against_itself",
)
#: Plots say the least at a glance.
LAST = ("contacts_for_your_simulation", "exact_answers", "a_million_queries")


class Gallery(SphinxDirective):
    """A card for each example: its picture and its title; they lead to its page."""

    def run(self) -> list[nodes.Node]:
        lines = ["::::{grid} 2 2 3 3", ":gutter: 3", ""]
        for example in _examples():
            self.env.note_dependency(str(example))
            title, _ = _title(example)
            lines += [f":::{{grid-item-card}} {title}", f":link: /gallery/{example.stem}", ":link-type: doc"]
            lines += [":class-card: picture-card", ":text-align: center"]
            if (PICTURES / f"{example.stem}.png").exists():
                lines.append(f":img-top: /gallery/{example.stem}.png")
            lines += [":::", ""]
        lines += ["::::", "", "```{toctree}", ":hidden:", "", *(f"/gallery/{e.stem}" for e in _examples()), "```"]
        container = nodes.container()
        self.state.nested_parse(StringList(lines, source="examples"), self.content_offset, container)
        return container.children


def write_pages(app: Sphinx) -> None:
    """A page for each example, with its picture, drawn now if it has to be."""
    PICTURES.mkdir(exist_ok=True)
    names = set()
    for example in _examples():
        picture = _picture(example, app.config.gallery_runs)
        title, text = _title(example)
        page = f"# {title}\n\n{text}\n\n"
        if picture is not None:
            page += f"![{title}](/gallery/{picture.name})\n\n"
        page += f"```{{literalinclude}} /../examples/{example.name}\n:language: python\n```\n"
        path = PICTURES / f"{example.stem}.md"
        names.add(path.name)
        if not path.exists() or path.read_text() != page:
            path.write_text(page)
    for path in PICTURES.glob("*.md"):
        if path.name not in names:  # an example that is gone
            path.unlink()


def _examples() -> list[Path]:
    examples = sorted((ROOT / "examples").glob("*.py"))
    order = {name: k - len(FIRST) for k, name in enumerate(FIRST)} | {name: k + 1 for k, name in enumerate(LAST)}
    return sorted(examples, key=lambda example: order.get(example.stem, 0))


def _title(example: Path) -> tuple[str, str]:
    """The docstring before and after its first colon."""
    title, _, text = (ast.get_docstring(ast.parse(example.read_text())) or example.stem).partition(":")
    text = text.strip()
    return title.strip(), text[:1].upper() + text[1:]


def _picture(example: Path, run: bool) -> Path | None:
    """What the example draws when it is given a path; drawn again, if it may run, when the example is newer."""
    picture = PICTURES / f"{example.stem}.png"
    if run and (not picture.exists() or picture.stat().st_mtime < example.stat().st_mtime):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [sys.executable, str(example), str(picture)],
                cwd=folder,
                env={**os.environ, "MPLBACKEND": "Agg"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                check=True,
                timeout=900,  # the first use of a question compiles it, and others may use the machine
            )
    return picture if picture.exists() else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("gallery_runs", True, "env", bool)
    app.add_directive("gallery", Gallery)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
