"""Sphinx configuration; `make docs` builds without network."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "extensions"))

project = "tangere"
author = "The tangere developers"
copyright = "The tangere developers"
release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
extensions += ["sphinx_design", "gallery", "notebooks"]
exclude_patterns = ["_build", "extensions", "gallery/notebooks"]
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

# Docstrings are plain text with code in single backticks.
default_role = "code"
#: `Body` and `rows` are words of several systems: which one is meant is plain on the page, not to Sphinx.
suppress_warnings = ["ref.python"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True, "imported-members": True}
napoleon_numpy_docstring = False

html_theme = "pydata_sphinx_theme"
html_title = "tangere"
html_static_path = ["_static"]
html_css_files = ["pictures.css"]
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False, "secondary_sidebar_items": ["page-toc"]}
html_show_sourcelink = False
html_sidebars = {"index": []}


def setup(app) -> None:
    app.connect("autodoc-process-docstring", _plain_bars)


def _plain_bars(app, what, name, obj, options, lines: list[str]) -> None:
    """|x| in a docstring is an absolute value, not a reStructuredText substitution."""
    for i, line in enumerate(lines):
        lines[i] = "`".join(part if k % 2 else part.replace("|", r"\|") for k, part in enumerate(line.split("`")))
