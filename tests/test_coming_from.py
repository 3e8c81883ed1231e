"""The pages for users of other libraries: their snippets run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).resolve().parents[1] / "docs" / "coming-from").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_snippets_of_a_page_run(page):
    names: dict = {"__name__": page.stem}
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks or page.stem == "index"
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    if "hit" in names:
        assert names["hit"]
    if page.stem == "fcl":
        assert 0.43 < names["hit"].time <= 0.437
        assert names["near"].lower > 1.7


def test_every_page_is_in_the_index():
    index = PAGES[[page.stem for page in PAGES].index("index")].read_text(encoding="utf-8")
    assert len(PAGES) == 6
    for page in PAGES:
        assert page.stem == "index" or f"({page.name})" in index
