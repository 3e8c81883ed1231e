"""Notebooks: what shows itself, and pages in cells; once in a real kernel."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from urllib.parse import urlsplit

import numpy as np
import pytest

from oracles.families.drawn_scenes import approaching_squares, contacts_at, square
from oracles.helpers.browser import until
from tangere.runtime import InputError, view_room
from tangere.scene import Scene
from tangere.view import Picture, html, picture, png, stacked, strip

SIZE = (90, 60)


def pixels(data: bytes | None) -> np.ndarray:
    image_module = pytest.importorskip("PIL.Image")
    assert data is not None
    return np.asarray(image_module.open(io.BytesIO(data)).convert("RGB"))


def test_a_picture_is_the_array_it_was_and_shows_and_saves_itself(tmp_path):
    image = picture(approaching_squares(), size=SIZE)
    assert isinstance(image, np.ndarray)
    assert isinstance(image, Picture)
    plain = np.asarray(image)
    assert (plain.shape, plain.dtype) == ((60, 90, 3), np.uint8)
    assert repr(image) == "Picture(90 x 60)"
    assert (pixels(image._repr_png_()) == plain).all()
    image.save(tmp_path / "a.png")
    assert (pixels((tmp_path / "a.png").read_bytes()) == plain).all()
    with pytest.raises(InputError, match=r"\.png"):
        image.save(tmp_path / "a.jpg")
    both = strip(approaching_squares(), [0.0, 1.0], size=SIZE)
    for made in (both, stacked([image, image])):
        assert (pixels(made._repr_png_()) == np.asarray(made)).all()


def test_parts_of_a_picture_and_numbers_from_it_are_no_pictures(tmp_path):
    image = picture(approaching_squares(), size=SIZE)
    for numbers in (image[..., 0], image.astype(int), image[0, 0], image / 2):
        assert numbers._repr_png_() is None
        assert "Picture(90 x 60)" not in repr(numbers)
    assert image[10:40, 20:50]._repr_png_() is not None
    with pytest.raises(InputError, match="no pixels of a picture"):
        image.astype(float).save(tmp_path / "a.png")


def test_a_scene_shows_itself_at_its_first_contact():
    plain = approaching_squares()
    touching = approaching_squares(contacts_at([0.5], [[0.0, -0.6, 0.3]], np.eye(3)[[2]]))
    for scene, moment in ((plain, 0.0), (touching, 0.5)):
        expected = np.asarray(picture(scene, moment, size=(480, 360)))
        assert (pixels(scene._repr_png_()) == expected).all()
        text = scene._repr_html_()
        assert "Scene(small, large;" in text
        assert len(re.findall(r'src="data:image/png;base64,[A-Za-z0-9+/=]{1000,}"', text)) == 1


def test_everything_that_can_be_drawn_has_a_picture_and_the_rest_has_none(monkeypatch):
    pytest.importorskip("PIL")

    class Run:
        def scene(self) -> Scene:
            return approaching_squares()

    for shown in (square(0.0), approaching_squares(), Run(), picture(square(0.0), size=SIZE)):
        assert (png(shown, size=SIZE) or b"").startswith(b"\x89PNG")
    assert png(42) is None
    assert view_room().png is png
    monkeypatch.setattr("tangere.view.notebook._MOST_TRIANGLES", 1)
    assert png(square(0.0)) is None
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert picture(square(0.0), size=SIZE)._repr_png_() is None


def test_html_says_facts_and_lets_no_text_become_markup():
    text = html("<b>first</b> contact", {"time": 0.25, "kind": "a & <script>"})
    assert "&lt;b&gt;first&lt;/b&gt; contact" in text
    assert "0.25" in text
    assert "a &amp; &lt;script&gt;" in text
    assert "<script" not in text
    assert "<img" not in text
    assert 'src="data:image/png;base64,UE5H"' in html("picture", image=b"PNG")


NOTEBOOK = """
import tangere as tg
import numpy as np
ball = tg.generate.icosphere(1)
scene = tg.Scene.of(ball.moving(tg.Linear(np.asarray(ball.vertices) + 1.0)))
viewer = tg.view.show(scene)
print("went on", viewer.url)
scene
"""


def test_in_a_notebook_the_page_is_in_the_cell_and_nothing_waits():
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("viser", reason="the viewer needs the extra [view]")
    check = "import urllib.request\nprint(urllib.request.urlopen(viewer.url).status, viewer)\nviewer.close()\nviewer"
    more = "for _ in range(10):\n    last = tg.view.show(scene)\n"
    more += "from tangere.view.notebook import _PAGES\nprint(len(_PAGES))"
    cells = [nbformat.v4.new_code_cell(source) for source in (NOTEBOOK, check, more)]
    book = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    first, second, third = (cell["outputs"] for cell in book.cells)
    text = "".join(output.get("text", "") for output in first if output["output_type"] == "stream")
    (url,) = re.findall(r"went on (\S+)", text)
    (frame,) = [output["data"]["text/html"] for output in first if output["output_type"] == "display_data"]
    assert f'<iframe src="{url}"' in frame
    assert re.fullmatch(r"/[0-9a-f]{32}", urlsplit(url).path)
    (result,) = [output["data"] for output in first if output["output_type"] == "execute_result"]
    assert "image/png" in result
    assert "<img" in result["text/html"]
    told = "".join(output.get("text", "") for output in second)
    assert told == f"200 Viewer({url})\n"
    assert second[-1]["data"]["text/plain"] == "Viewer(closed)"
    assert third[-1]["text"].endswith("8\n")  # no more pages than that stay open


def test_in_a_script_the_page_is_served_until_ctrl_c_and_its_address_is_printed():
    pytest.importorskip("viser", reason="the viewer needs the extra [view]")
    import signal
    import urllib.request

    script = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nimport tangere as tg\n"
    script += "tg.view.show(tg.generate.box())\nprint('after')"
    running = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert running.stderr is not None
        assert running.stdout is not None
        line = running.stderr.readline()
        (url,) = re.findall(r"^(http://\S+) \(Ctrl-C ends\)$", line)
        with urllib.request.urlopen(url) as page:
            assert page.status == 200
        time.sleep(0.5)
        assert running.poll() is None
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=30) == 0
        assert running.stdout.read() == "after\n"
    finally:
        running.kill()
        running.wait()


@pytest.fixture
def viewer():
    pytest.importorskip("viser", reason="the viewer needs the extra [view]")
    from tangere.view import Viewer

    with Viewer(approaching_squares()) as opened:
        yield opened


def test_in_chromium_the_page_works_in_a_frame_of_another_page_as_in_a_notebook(viewer, page):
    before = set(viewer.server.get_clients())
    page.set_content(f'<h1>notebook</h1><iframe src="{viewer.url}" width="640" height="360"></iframe>')
    until(lambda: set(viewer.server.get_clients()) - before, page)
    page.frame_locator("iframe").get_by_role("slider").first.focus()
    page.keyboard.press("End")
    until(lambda: viewer.time == 1.0, page)
