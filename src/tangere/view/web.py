"""The viewer: a web page (viser, three.js) with the things, a time scrubber, the contacts and a screenshot button.

The page is served on the loopback interface unless another host is asked for, and to who has its address: `access`.
"""

from __future__ import annotations

import io
import sys
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from types import TracebackType
from typing import Any

import numpy as np

from tangere.runtime import InputError, needs_extra
from tangere.scene import KIND_COLOURS, Drawable, Scene, Thing, contact_colours, marker_radius
from tangere.shape.heightfield import Heightfield
from tangere.view.access import Access, serve
from tangere.view.address import free_address
from tangere.view.notebook import in_notebook, show_inline
from tangere.view.pictures import Picture, png_bytes

_STEPS = 200  #: positions of the scrubber
_SECONDS = 4.0  #: how long playing the whole time range takes
_FRAME_SECONDS = 1 / 20
_SEE_THROUGH = 0.35  #: opacity of things at a contact, which would hide it


def show(
    scene: Scene | Drawable,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    open_browser: bool = False,
    block: bool | None = None,
    height: int = 480,
) -> Viewer:
    """Serve a page that shows `scene`.

    In a notebook the page appears in the cell, and this returns at once. In a script the address is printed, and this
    serves until the user presses Ctrl-C.

    Args:
        scene: what to show; a body stands for a scene of it alone.
        host: interface to serve on; the default is reachable from this machine only.
        port: must be free; None means 8080 or the next free one, and `viewer.url` says which.
        open_browser: also open the page in the default browser.
        block: True prints the address and stays until Ctrl-C, False returns at once, says nothing and serves until
            `viewer.close()`; None means what suits where this runs.
        height: of the page in a notebook, in pixels.
    """
    viewer = Viewer(scene, host=host, port=port)
    if open_browser:
        webbrowser.open(viewer.url)
    if block is None and in_notebook():
        show_inline(viewer, height)
    elif block is None or block:
        print(f"{viewer.url} (Ctrl-C ends)", file=sys.stderr, flush=True)
        try:
            viewer.wait()
        finally:
            viewer.close()
    return viewer


class Viewer:
    """A page that shows one scene. Use it as a context manager, or call `close`."""

    #: Light from a picture all round costs a browser without a graphics card five times as long for a picture.
    _image_light = True

    _time_label = "time"  #: of the scrubber

    def __init__(self, scene: Scene | Drawable, *, host: str = "127.0.0.1", port: int | None = None) -> None:
        viser = _viser()
        self.scene = scene = Scene.around(scene)
        address, free_port = free_address(host, port)
        self._closed = threading.Event()
        self._playing = threading.Event()
        self._lock = threading.RLock()
        self._access = Access(host, address)
        with _quiet():
            label = scene.title or "tangere"
            self.server = serve(viser, self._access, address, free_port, label, self._own_socket())
        self.server.gui.configure_theme(show_logo=False, show_share_button=False)
        self.server.gui.main_panel.dock_right()
        self._place_camera()
        self._bodies = {thing.name: self._add_body(number, thing) for number, thing in enumerate(scene.things)}
        self._boxes = {thing.name: _box(thing.vertices(scene.time_range[0])) for thing in scene.things}
        self._marks: list[Any] = []
        self._marked = -1
        self._add_controls()
        self._time = scene.time_range[0]
        self.set_time(self._time)
        self._player = threading.Thread(target=self._play, name="tangere-viewer", daemon=True)
        self._player.start()

    @property
    def url(self) -> str:
        """Address of the page, with its token: who has it can open the page."""
        return self._access.url(self.port)

    @property
    def port(self) -> int:
        """Port of the page."""
        return self.server.get_port()

    @property
    def time(self) -> float:
        """The time that is shown."""
        return self._time

    def set_time(self, time: float) -> None:
        """Show the scene at `time`, which must be in its time range."""
        with self._lock:
            self._time = self.scene.checked_time(time)
            for thing in self.scene.things:
                if thing.moves:
                    vertices = thing.vertices(time)
                    self._boxes[thing.name] = _box(vertices)
                    self._bodies[thing.name].vertices = vertices[thing.creased.source].astype(np.float32)
            self._draw_contacts()
            self._see_through()
            self._slider.value = self.scene.on_clock(time)
            self._text.content = self.summary()

    def body(self, name: str) -> Any:
        """The viser handle of the thing called `name`, to change how it looks."""
        if name not in self._bodies:
            raise InputError(f"no thing is called {name!r}; there are: {', '.join(self._bodies)}")
        return self._bodies[name]

    def summary(self) -> str:
        """The text of the panel, in Markdown: time, contacts so far, kinds."""
        contacts = self.scene.contacts
        now = len(self.scene.contacts_by(self._time))
        lines = [f"t = {self.scene.clock_text(self._time, 5)}"]
        if len(contacts):
            lines.append(f"{now} of {len(contacts)} contacts so far")
            lines.append(f"first contact at t = {self.scene.clock_text(self._first_contact(), 7, down=True)}")
        for kind, colour in KIND_COLOURS.items():
            count = int((contacts.kind == kind).sum())
            if count:
                code = "".join(f"{round(255 * c):02x}" for c in colour)
                lines.append(f'<span style="color:#{code}">●</span> {count} {kind.name.lower().replace("_", "-")}')
        return "  \n".join(lines)

    def screenshot(self, size: tuple[int, int] = (960, 640), timeout: float = 30.0) -> Picture:
        """What the first connected browser shows, as an (height, width, 3) uint8 image."""
        clients = self.server.get_clients()
        if not clients:
            raise InputError("screenshot: no browser has the page open")
        client = clients[min(clients)]
        return client.get_render(size[1], size[0], transport_format="jpeg", timeout=timeout)[..., :3].view(Picture)

    def wait(self) -> None:
        """Serve until `close` is called elsewhere or the user presses Ctrl-C."""
        try:
            while not self._closed.wait(0.5):
                pass
        except KeyboardInterrupt:
            pass

    def close(self) -> None:
        """Stop serving; may be called twice."""
        if not self._closed.is_set():
            self._closed.set()
            self._player.join(timeout=2.0)
            with _quiet():
                self.server.stop()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'closed' if self._closed.is_set() else self.url})"

    def __enter__(self) -> Viewer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _own_socket(self) -> Callable[[Any], Awaitable[None]] | None:
        """What answers the socket of the page's own script; None where the page has none."""
        return None

    def _place_camera(self) -> None:
        scene = self.scene
        viewpoint = scene.camera.placed(scene.points, 1.1)
        distance = float(np.linalg.norm(viewpoint.eye - viewpoint.target))
        self.server.scene.set_up_direction(scene.camera.up)
        # viser's own lights bleach what faces up; this is the light of the pictures: over the camera's left shoulder.
        self.server.scene.configure_default_lights(enabled=False)
        if self._image_light:
            self.server.scene.configure_environment_map(environment_intensity=0.25)
        else:
            self.server.scene.configure_environment_map(None)
        key = 0.75 * viewpoint.up - 0.55 * viewpoint.right - 0.8 * viewpoint.forward
        self.server.scene.add_light_directional("/lights/key", intensity=1.4, position=tuple(key))
        sky = 1.0 if self._image_light else 1.7
        self.server.scene.add_light_hemisphere("/lights/sky", ground_color=(110, 110, 115), intensity=sky)
        camera = self.server.initial_camera
        camera.position, camera.look_at = viewpoint.eye, viewpoint.target
        camera.fov = float(np.radians(viewpoint.field_of_view))
        camera.near, camera.far = 1e-3 * distance, 1e2 * distance

    def _add_body(self, number: int, thing: Thing) -> Any:
        return self.server.scene.add_mesh_simple(
            f"/things/{number}",
            thing.vertices(self.scene.time_range[0])[thing.creased.source].astype(np.float32),
            thing.creased.faces,
            color=tuple(round(255 * c) for c in thing.colour),
            opacity=None if thing.opacity == 1.0 else thing.opacity,
            side="double",
        )

    def _add_controls(self) -> None:
        gui, (start, end) = self.server.gui, self.scene.clock or self.scene.time_range
        step = (end - start) / _STEPS or 1.0
        self._slider = gui.add_slider(self._time_label, start, max(end, start + step), step, start)
        self._play_button = gui.add_button("Play")
        if len(self.scene.contacts):
            gui.add_button("Go to first contact").on_click(lambda _: self.set_time(self._first_contact()))
        self._text = gui.add_markdown("")
        with gui.add_folder("Show"):
            for thing in self.scene.things:
                self._add_toggle(thing.name, [self._bodies[thing.name]])
            if len(self.scene.contacts):
                self._show_points = gui.add_checkbox("contact points", True)
                self._show_normals = gui.add_checkbox("contact normals", True)
                self._show_through = gui.add_checkbox("see through at contacts", True)
                for box in (self._show_points, self._show_normals, self._show_through):
                    box.on_update(lambda _: self._redraw_contacts())
        self._screenshot_button = gui.add_button("Screenshot")
        self._slider.on_update(self._on_scrub)
        self._play_button.on_click(lambda _: self._toggle_play())
        self._screenshot_button.on_click(self._on_screenshot)

    def _first_contact(self) -> float:
        start, end = self.scene.time_range
        return min(max(float(self.scene.contacts.time.min()), start), end)

    def _add_toggle(self, label: str, handles: list[Any]) -> None:
        box = self.server.gui.add_checkbox(label, True)

        @box.on_update
        def _(_: Any) -> None:
            for handle in handles:
                handle.visible = box.value

    def _on_scrub(self, event: Any) -> None:
        # The slider also reports what `set_time` itself wrote; only a person's hand has a client.
        if event.client is not None:
            self.set_time(self.scene.off_clock(self._slider.value))

    def _on_screenshot(self, event: Any) -> None:
        client = event.client
        if client is not None:
            image = client.get_render(client.camera.image_height, client.camera.image_width, transport_format="jpeg")
            client.send_file_download(
                f"tangere-{self.scene.clock_text(self._time, 5)}.png", png_bytes(image[..., :3]), save_immediately=True
            )

    def _toggle_play(self) -> None:
        if self._playing.is_set():
            self._playing.clear()
        else:
            if self._time >= self.scene.time_range[1]:
                self.set_time(self.scene.time_range[0])
            self._playing.set()
        self._play_button.label = "Pause" if self._playing.is_set() else "Play"

    def _play(self) -> None:
        start, end = self.scene.time_range
        while not self._closed.wait(_FRAME_SECONDS):
            if self._playing.is_set():
                self.set_time(min(self._time + (end - start) * _FRAME_SECONDS / _SECONDS, end))
                if self._time >= end:
                    self._toggle_play()

    def _redraw_contacts(self) -> None:
        with self._lock:
            self._marked = -1
            self._draw_contacts()
            self._see_through()

    def _see_through(self) -> None:
        """Things that are where contacts are shown do not hide them; ground is looked at from above."""
        if not len(self.scene.contacts):
            return
        contacts = self.scene.contacts_by(self._time)
        shown = self._show_through.value and (self._show_points.value or self._show_normals.value)
        points = (contacts.point_a + contacts.point_b) / 2.0
        for thing in self.scene.things:
            low, high = self._boxes[thing.name] + 1e-3 * self.scene.extent * np.array([[-1.0], [1.0]])
            near = (
                shown and not isinstance(thing.shape, Heightfield) and ((points >= low) & (points <= high)).all(1).any()
            )
            opacity = min(thing.opacity, _SEE_THROUGH) if near else thing.opacity
            wanted = None if opacity == 1.0 else opacity
            if self._bodies[thing.name].opacity != wanted:
                self._bodies[thing.name].opacity = wanted

    def _draw_contacts(self) -> None:
        """Draw the contacts so far; nothing to do while their number stays the same."""
        contacts = self.scene.contacts_by(self._time)
        if len(contacts) == self._marked:
            return
        self._marked = len(contacts)
        for handle in self._marks:
            handle.remove()
        self._marks = []
        if not len(contacts):
            return
        radius = marker_radius(len(self.scene.contacts), self.scene.extent) / self.scene.camera.zoom
        radius *= self.scene.mark_size
        points = ((contacts.point_a + contacts.point_b) / 2.0).astype(np.float32)
        colours = np.round(255 * contact_colours(contacts)).astype(np.uint8)
        if self._show_points.value:
            # viser takes the size for its default opening of 75 degrees, whatever the camera's is.
            scale = np.tan(np.radians(self.scene.camera.field_of_view) / 2.0) / np.tan(np.radians(37.5))
            self._marks.append(
                self.server.scene.add_point_cloud(
                    "/contacts/points",
                    points,
                    colours,
                    point_size=2.0 * radius * float(scale),
                    point_shape="circle",
                    precision="float32",
                )
            )
        if self._show_normals.value:
            ends = points + (6.0 * radius * contacts.normal).astype(np.float32)
            segments, paint = np.stack([points, ends], axis=1), np.repeat(colours[:, None], 2, axis=1)
            self._marks.append(
                self.server.scene.add_line_segments("/contacts/normals", segments, paint, thickness=0.4 * radius)
            )


def _box(vertices: np.ndarray) -> np.ndarray:
    """Lower and upper corner, (2, 3)."""
    return np.stack([vertices.min(axis=0), vertices.max(axis=0)])


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps viser's greetings off stdout, which may be someone's JSON, and out of cells; callers tell the address."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        console.quiet = before


def _viser() -> Any:
    with needs_extra("viser", "view"):
        import viser
    return viser
