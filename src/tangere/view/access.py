"""Who may open a page: the holder of its address, from the page's own origin, under a name of this machine.

Question: may this HTTP request, or this opening of a WebSocket, pass?
Method:   viser accepts everyone, so any web page that is open in the user's browser could read the scene and press its
          buttons: browsers let every page open WebSockets to this machine (cross-site WebSocket hijacking), and a name
          that an attacker points here makes his page and this one the same origin (DNS rebinding). `Access.refusal`
          therefore asks, before viser sees a request, for a name of this machine in `Host`, for an `Origin` that is
          this very page, and for the random token that is the first part of the path.
Sound:    what is not known to be right is refused; a viser that cannot be guarded so is not served at all.
Known as: RFC 6455, section 10.2 (origin considerations); Jackson et al., Protecting browsers from DNS rebinding
          attacks, 2007.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from tangere.runtime import UnsupportedError

#: Pages that may be open at once.
MOST_PAGES = 16
#: The largest message a page may send; screenshots are the largest it has [bytes].
MOST_BYTES = 16 * 1024 * 1024
#: Where the script of a page, if it has one, opens a socket of its own, below the token.
INPUT_PATH = "input"
#: How long a connection may take to say what it wants [s].
_PATIENCE = 5.0

#: Holds while viser builds a server: what it calls for that is replaced so long.
_BUILDING = threading.Lock()
#: Keep the address, and so the token, out of caches and out of what other servers are told.
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}


class Access:
    """The rule of one server, and its token.

    Args:
        host: interface as the user named it.
        address: the numeric address that is listened on.
    """

    def __init__(self, host: str, address: str) -> None:
        self.token = secrets.token_hex(16)
        self._address = ipaddress.ip_address(address.partition("%")[0])
        self._names = {"localhost", host.lower()}
        if not self._address.is_loopback:
            self._names.add(socket.gethostname().lower())

    def url(self, port: int) -> str:
        """The address that opens the page."""
        if self._address.is_unspecified:  # all interfaces: from elsewhere the name of this machine takes its place
            name = "localhost"
        else:
            name = f"[{self._address}]" if self._address.version == 6 else str(self._address)
        return f"http://{name}:{port}/{self.token}"

    def refusal(self, path: str, headers: Any, pages: int = 0) -> tuple[HTTPStatus, str] | None:
        """Why a request may not pass; None if it may.

        Args:
            path: of the request, from its first slash on.
            headers: of the request, with `get_all`.
            pages: how many are open already.
        """
        host, origin = headers.get_all("Host"), headers.get_all("Origin")
        if len(host) != 1 or not self._is_ours(host[0]):
            return HTTPStatus.FORBIDDEN, "this page is not served under that name\n"
        upgrade = bool(headers.get_all("Upgrade"))
        # Browsers name the origin of every WebSocket; of a page that a person opens there is none.
        if (upgrade or origin) and origin not in ([f"http://{host[0]}"], [f"https://{host[0]}"]):
            return HTTPStatus.FORBIDDEN, "this page answers to no other page\n"
        given = path.partition("?")[0].split("/")[1:2]
        if not secrets.compare_digest("".join(given).encode(errors="replace"), self.token.encode()):
            return HTTPStatus.FORBIDDEN, "the address of this page has a token; open it as it was printed\n"
        if upgrade and pages >= MOST_PAGES:
            return HTTPStatus.SERVICE_UNAVAILABLE, f"{pages} pages are open already\n"
        return None

    def is_input(self, path: str) -> bool:
        """Whether a request that may pass is for the socket of a page's own script."""
        return path.partition("?")[0].strip("/").split("/")[1:] == [INPUT_PATH]

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Those of viser for `websockets.serve`, with this rule in front."""
        answer = options.get("process_request") or (lambda connection, request: None)

        def process_request(connection: Any, request: Any) -> Any:
            refused = self.refusal(request.path, request.headers, len(connection.server.connections))
            if refused is not None:
                response = connection.respond(*refused)
            else:
                response = answer(connection, replace(request, path=request.path[1 + len(self.token) :] or "/"))
            if response is not None:
                for name, value in _HEADERS.items():
                    response.headers[name] = value
            return response

        return options | {"process_request": process_request, "max_size": MOST_BYTES, "open_timeout": _PATIENCE}

    def _is_ours(self, host: str) -> bool:
        """Whether a `Host` names this machine. The port is free: a tunnel (`ssh -L`) may have another one."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # Nobody can point a number elsewhere. Behind a router the machine may have numbers that it does not know.
        return address.is_loopback or not self._address.is_loopback


def serve(
    viser: Any,
    access: Access,
    address: str,
    port: int,
    label: str,
    own_socket: Callable[[Any], Awaitable[None]] | None = None,
) -> Any:
    """A `viser.ViserServer` behind the rule.

    viser starts its server within its constructor and has no place for a rule, so what it starts it with,
    `websockets.asyncio.server.serve`, is replaced meanwhile.

    Args:
        own_socket: answers sockets at `INPUT_PATH`, which the script of a page opens; the same rule is before them.
    """
    from websockets.asyncio import server as websockets

    guarded: list[int] = []

    def guarded_serve(handler: Any, *args: Any, **options: Any) -> Any:
        if not getattr(handler, "__module__", "").startswith("viser."):  # of another thread that serves something else
            return original(handler, *args, **options)
        options = access.options(options)
        guarded.append(1)

        async def routed(connection: Any) -> None:
            own = own_socket is not None and access.is_input(connection.request.path)
            await (own_socket if own else handler)(connection)  # pyright: ignore[reportOptionalCall]

        return original(routed, *args, **options)

    with _BUILDING:
        original = websockets.serve
        setattr(websockets, "serve", guarded_serve)  # noqa: B010 (it is a class to type checkers)
        try:
            server = viser.ViserServer(address, port, label=label, verbose=False)
        finally:
            setattr(websockets, "serve", original)  # noqa: B010
    if not guarded:
        server.stop()
        raise UnsupportedError(f"viser {viser.__version__} cannot be kept from letting strangers in; tangere needs 1.1")
    # A page may ask viser for a public address; nobody shall get one.
    server.request_share_url = lambda verbose=True: None
    return server
