"""The `gallery` directive: every script in examples/, with the picture it draws and its source.

Scripts run where their picture is missing or older; with `gallery_runs = 0` none does, and only pictures that are there
are shown.
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


class Gallery(SphinxDirective):
    """One entry per example: title and text from its docstring, picture, code."""

    def run(self) -> list[nodes.Node]:
        lines: list[str] = []
        for example in sorted((ROOT / "examples").glob("*.py")):
            self.env.note_dependency(str(example))
            title, _, rest = (ast.get_docstring(ast.parse(example.read_text())) or example.stem).partition(":")
            lines += [f"```{{rubric}} {title.strip()}", "```", "", rest.strip().capitalize(), ""]
            if picture := _picture(example, self.config.gallery_runs):
                lines += [f"![{title.strip()}](/gallery/{picture.name})", ""]
            lines += [f"```{{literalinclude}} /../examples/{example.name}", ":language: python", "```", ""]
        container = nodes.container()
        self.state.nested_parse(StringList(lines, source="examples"), self.content_offset, container)
        return container.children


def _picture(example: Path, run: bool) -> Path | None:
    """What the example draws when it is given a path; drawn again, if it may run, when the example is newer."""
    picture = PICTURES / f"{example.stem}.png"
    if run and (not picture.exists() or picture.stat().st_mtime < example.stat().st_mtime):
        PICTURES.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [sys.executable, str(example), str(picture)],
                cwd=folder,
                env={**os.environ, "MPLBACKEND": "Agg"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                check=True,
                timeout=300,
            )
    return picture if picture.exists() else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("gallery_runs", True, "env", bool)
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True}
