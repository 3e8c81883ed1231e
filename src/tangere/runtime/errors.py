"""What can go wrong, as exceptions whose message is one helpful sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class TangereError(Exception):
    """Any error tangere raises on purpose."""


class InputError(TangereError, ValueError):
    """An array, file or option that cannot be used; the message names it, the index and the reason."""


class UnsupportedError(TangereError, TypeError):
    """A combination nobody has written; the message lists the ones that exist."""


class CapacityError(TangereError, MemoryError):
    """A result that does not fit; nothing is ever truncated silently."""


class MissingExtraError(TangereError, ImportError):
    """An optional package is needed; the message says which extra installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package!r}: pip install 'tangere[{extra}]'")


@contextmanager
def needs_extra(package: str, extra: str) -> Iterator[None]:
    """Imports of an optional package inside: if it is not there, the error says which extra installs it."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(package, extra) from error


def check_kind(value: object, kind: type | tuple[type, ...], name: str) -> None:
    """Raise unless `value`, which callers know by `name`, is a `kind`, or one of several."""
    if not isinstance(value, kind):
        names = " or a ".join(k.__name__ for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise InputError(f"{name} must be a {names}, not {type(value).__name__}")
