"""Where a page can be served, asked before it is: viser itself tries port after port, without a word or an end."""

from __future__ import annotations

import errno
import socket

from tangere.runtime import InputError

DEFAULT_PORT = 8080
_TRIES = 100  #: ports from the default one on


def free_address(host: str, port: int | None) -> tuple[str, int]:
    """Numeric address and port that can be listened on.

    Args:
        host: name or address of an interface of this machine.
        port: must be free; None takes the first free one from `DEFAULT_PORT` on.
    """
    for candidate in range(DEFAULT_PORT, DEFAULT_PORT + _TRIES) if port is None else (port,):
        address = _bound(host, candidate)
        if address is not None:
            return address, candidate
    taken = f"the ports from {DEFAULT_PORT} to {DEFAULT_PORT + _TRIES - 1} are" if port is None else f"port {port} is"
    raise InputError(f"the viewer cannot be served on {host}: {taken} taken")


def _bound(host: str, port: int) -> str | None:
    """The first address of `host` that takes a listener at `port`; None if the port is taken there."""
    # The resolver would take a larger one modulo 65536.
    if not 0 <= port <= 65535:
        raise InputError(f"the viewer cannot be served on {host}:{port}: a port is at most 65535")
    failure: Exception | None = None
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                with socket.socket(family, kind, protocol) as probe:
                    # As servers do: a port whose last connections are still fading out counts as free.
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(address)
                    probe.listen(1)
                return str(address[0])
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return None
                failure = error
    except (OSError, UnicodeError) as error:
        failure = error
    reason = getattr(failure, "strerror", None) or failure
    raise InputError(f"the viewer cannot be served on {host}:{port}: {reason}") from failure
