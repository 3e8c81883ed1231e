"""Who gets in: strangers are refused as raw requests and as real WebSockets; the page itself works in `test_web`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from oracles.families.drawn_scenes import approaching_squares
from tangere.crowd.scenarios import corridor
from tangere.runtime import UnsupportedError
from tangere.shape import generate
from tangere.soft import Body, Recorder, Simulation
from tangere.view import CrowdViewer, LiveViewer, ReplayViewer, Viewer

viser = pytest.importorskip("viser", reason="the viewer needs the extra [view]")
client = pytest.importorskip("websockets.asyncio.client", reason="the viewer needs the extra [view]")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    with Viewer(approaching_squares(), port=free_port()) as opened:
        yield opened


def answered(viewer: Viewer, path: str | None = None, method: str = "GET", address="127.0.0.1", **headers: str) -> str:
    """Status line and headers that a raw request gets; the page's own unless told otherwise."""
    url = urlsplit(viewer.url)
    told = {"Host": url.netloc} | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {url.path if path is None else path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in told.items() if value]
    with socket.create_connection((address, viewer.port), timeout=10.0) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        received = b""
        while b"\r\n\r\n" not in received and (more := connection.recv(4096)):
            received += more
    return received.partition(b"\r\n\r\n")[0].decode()


def status(viewer: Viewer, path: str | None = None, **headers: str) -> int:
    return int(answered(viewer, path, **headers).split()[1])


HANDSHAKE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec_WebSocket_Version": "13",
}


def test_the_page_and_its_socket_are_given_to_who_has_the_address(viewer):
    url = urlsplit(viewer.url)
    assert len(url.path) > 30
    assert status(viewer) == 200
    assert status(viewer, url.path + "/?websocket=x") == 200
    assert status(viewer, Origin=f"http://{url.netloc}", **HANDSHAKE) == 101


def test_a_foreign_origin_is_refused(viewer):
    own = urlsplit(viewer.url).netloc
    port = viewer.port
    strangers = ["http://evil.example", "null", f"http://127.0.0.1:{port + 1}", f"http://evil.example:{port}", "", own]
    strangers += [f"http://{own}.evil.example", f"http://localhost:{port}", f"ftp://{own}"]
    for origin in strangers:
        assert status(viewer, Origin=origin, **HANDSHAKE) == 403, origin
    for origin in filter(None, strangers):  # a page that somebody opens by hand has none
        assert status(viewer, Origin=origin) == 403, origin


def test_another_name_than_this_machine_s_is_refused_even_where_the_origin_fits_it(viewer):
    port = viewer.port
    for host in (f"evil.example:{port}", f"localhost.evil.example:{port}", f"192.0.2.7:{port}", "", "[::1", "a@b@c"):
        assert status(viewer, Host=host) in (400, 403), host
        assert status(viewer, Host=host, Origin=f"http://{host}", **HANDSHAKE) in (400, 403), host


def test_a_tunnel_may_give_this_machine_another_port(viewer):
    assert status(viewer, Host="localhost:9999", Origin="http://localhost:9999", **HANDSHAKE) == 101
    assert status(viewer, Host="localhost:9999", Origin="http://localhost:9998", **HANDSHAKE) == 403


def test_a_missing_or_wrong_token_is_refused(viewer):
    path, origin = urlsplit(viewer.url).path, f"http://{urlsplit(viewer.url).netloc}"
    wrong = ["/", path[:-1], path + "0", path[::-1], "/?token=" + path[1:]]
    wrong += ["//" + path[1:], "/index.html", "/x" + path, "/" + "0" * 32, "/é"]
    for attempt in wrong:
        assert status(viewer, attempt) == 403, attempt
        assert status(viewer, attempt, Origin=origin, **HANDSHAKE) == 403, attempt


def test_every_page_has_a_token_of_its_own_that_nobody_else_is_told(viewer):
    with Viewer(approaching_squares(), port=free_port()) as other:
        assert urlsplit(other.url).path != urlsplit(viewer.url).path
        assert status(other, urlsplit(viewer.url).path) == 403
    headers = answered(viewer).lower()
    assert "referrer-policy: no-referrer" in headers
    assert "cache-control: no-store" in headers


def test_on_other_interfaces_names_and_numbers_of_this_machine_pass_and_nothing_without_token():
    with Viewer(approaching_squares(), host="0.0.0.0", port=free_port()) as viewer:
        port = viewer.port
        assert viewer.url.startswith(f"http://localhost:{port}/")
        for name in (socket.gethostname(), "192.0.2.7", "localhost"):
            assert status(viewer, Host=f"{name}:{port}", Origin=f"http://{name}:{port}", **HANDSHAKE) == 101, name
            assert status(viewer, "/", Host=f"{name}:{port}", Origin=f"http://{name}:{port}", **HANDSHAKE) == 403
        assert status(viewer, Host=f"evil.example:{port}") == 403


def test_an_address_of_the_sixth_version_is_written_in_brackets():
    try:
        opened = Viewer(approaching_squares(), host="::1", port=free_port())
    except Exception as error:  # no such interface here
        pytest.skip(str(error))
    with opened as viewer:
        assert viewer.url.startswith(f"http://[::1]:{viewer.port}/")
        assert int(answered(viewer, address="::1").split()[1]) == 200


def connect(viewer: Viewer, **options):
    url = urlsplit(viewer.url)
    protocol = [f"viser-v{viser.__version__}"]
    return client.connect(
        viewer.url.replace("http", "ws", 1),
        origin=f"http://{url.netloc}",
        subprotocols=protocol,
        max_size=None,
        **options,
    )


def test_a_message_above_the_limit_closes_the_connection(viewer):
    url, limit = urlsplit(viewer.url), 16 * 1024 * 1024

    def closed(size: int) -> bool:
        """Whether the announcement of a message alone (RFC 6455, 5.2) is answered by closing, "message too big"."""
        told = {"Host": url.netloc, "Origin": f"http://{url.netloc}"}
        told |= {name.replace("_", "-"): value for name, value in HANDSHAKE.items()}
        told |= {"Sec-WebSocket-Protocol": f"viser-v{viser.__version__}"}
        lines = [f"GET {url.path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), "", ""]
        with socket.create_connection(("127.0.0.1", viewer.port), timeout=2.0) as connection:
            connection.sendall("\r\n".join(lines).encode())
            received = b""
            while b"\r\n\r\n" not in received:
                received += connection.recv(65536)
            connection.sendall(b"\x82\xff" + size.to_bytes(8, "big") + b"mask")
            try:
                while more := connection.recv(65536):
                    received += more
            except (TimeoutError, ConnectionError):
                pass
        return b"\x88" in received[-80:] and (1009).to_bytes(2, "big") in received[-80:]

    assert closed(limit + 1)
    assert not closed(limit)


def test_more_pages_than_the_limit_are_refused_until_one_is_closed(viewer):
    from websockets.exceptions import InvalidStatus

    async def crowd() -> tuple[int, int]:
        opened = []
        try:
            while len(opened) < 100:
                opened.append(await connect(viewer))
        except InvalidStatus as refused:
            await opened.pop().close()
            for _ in range(50):
                try:
                    opened.append(await connect(viewer))
                    break
                except InvalidStatus:
                    await asyncio.sleep(0.1)
            return len(opened), refused.response.status_code
        finally:
            for connection in opened:
                await connection.close()
        return len(opened), 0

    assert asyncio.run(crowd()) == (16, 503)


def test_who_says_nothing_is_let_go(viewer):
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=10.0) as idle:
        assert idle.recv(1) == b""


def test_pages_of_simulations_and_of_recordings_are_guarded_alike():
    soft = Simulation([Body(generate.sheet(4), name="sheet")], device="cpu")
    recorder = Recorder(soft)
    recorder()
    crowd = corridor(6, 0, length=60.0, width=24.0, device="cpu")
    for make in (
        lambda port: LiveViewer(soft, port=port),
        lambda port: ReplayViewer(recorder.recording(), port=port),
        lambda port: CrowdViewer(crowd, port=port),
    ):
        with make(free_port()) as viewer:
            assert status(viewer) == 200
            assert status(viewer, "/") == 403
            assert status(viewer, Origin="http://evil.example", **HANDSHAKE) == 403
            assert status(viewer, Host=f"evil.example:{viewer.port}") == 403


def test_no_page_gets_viser_to_publish_it(viewer, monkeypatch):
    monkeypatch.setattr("viser._viser.ViserTunnel", None)  # would be called
    assert viewer.server.request_share_url() is None


def test_a_viser_that_starts_its_server_in_another_way_is_not_served(monkeypatch):
    import websockets.asyncio.server as module

    stopped = []

    class Another:
        def __init__(self, *args, **options) -> None:
            pass

        def stop(self) -> None:
            stopped.append(self)

    original = module.serve
    monkeypatch.setattr(viser, "ViserServer", Another)
    with pytest.raises(UnsupportedError, match="strangers"):
        Viewer(approaching_squares(), port=free_port())
    assert len(stopped) == 1
    assert module.serve is original
