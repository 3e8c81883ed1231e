"""A real browser for the viewers' pages."""

from __future__ import annotations

import os
import shutil

import pytest

from oracles.helpers.browser import until


@pytest.fixture
def page(viewer):
    """The page of the module's `viewer` in headless Chromium with software WebGL; `asked_for` lists its requests."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = os.environ.get("TANGERE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no chromium on the path")
    switches = [
        "--no-sandbox",
        "--disable-background-networking",
        "--use-angle=swiftshader",
        "--enable-unsafe-swiftshader",
    ]
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=switches)
        opened = browser.new_page(viewport={"width": 860, "height": 480})
        opened.asked_for = []
        opened.on("request", lambda request: opened.asked_for.append(request.url))
        opened.goto(viewer.url)
        until(lambda: viewer.server.get_clients(), opened)
        yield opened
        browser.close()
