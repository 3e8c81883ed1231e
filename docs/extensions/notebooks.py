"""Notebooks as pages: docs/notebooks/*.ipynb are kept without results, and executed in the build.

What a notebook gives is kept in docs/gallery/notebooks and made again when the notebook changes. With
`gallery_runs = 0` none is executed, and only results that are there are shown.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "gallery" / "notebooks"
TIMEOUT = 180  #: seconds for a cell


class NotebookParser(MystParser):
    """Cells as Markdown, code and what it gave: the best form of each result that a page can show."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        env = document.settings.env
        name = Path(env.docname).name
        book = executed(name, inputstring, env.config.gallery_runs)
        super().parse("\n\n".join(_page(name, book)), document)


def executed(name: str, source: str, run: bool) -> Any:
    """The notebook with its results, if they are there or may be made; otherwise as it is."""
    stored = RESULTS / f"{name}-{hashlib.sha256(source.encode()).hexdigest()[:12]}.ipynb"
    if stored.exists():
        return nbformat.read(stored, as_version=4)
    book = nbformat.reads(source, as_version=4)
    if run:
        from nbclient import NotebookClient

        RESULTS.mkdir(parents=True, exist_ok=True)
        NotebookClient(book, timeout=TIMEOUT, kernel_name="python3").execute(cwd=str(RESULTS))
        for old in RESULTS.glob(f"{name}-*.ipynb"):
            old.unlink()
        nbformat.write(book, stored)
    return book


def _page(name: str, book: Any) -> list[str]:
    parts: list[str] = []
    for number, cell in enumerate(book.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts.append(f"```python\n{cell.source}\n```")
            for k, output in enumerate(cell.outputs):
                parts += _shown(f"{name}-{number}-{k}.png", output)
    return [*parts, f"{{download}}`The notebook <{name}.ipynb>`"]


def _shown(file: str, output: Any) -> list[str]:
    if output.output_type == "stream":
        return [f"```text\n{output.text.rstrip()}\n```"] if output.name == "stdout" else []
    data = output.get("data", {})
    if "text/html" in data:
        return [f"```{{raw}} html\n<div class='cell-result'>{data['text/html']}</div>\n```"]
    if "image/png" in data:
        (RESULTS / file).write_bytes(base64.b64decode(data["image/png"]))
        return [f"![what the cell shows](/gallery/notebooks/{file})"]
    return [f"```text\n{data['text/plain']}\n```"] if "text/plain" in data else []


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
