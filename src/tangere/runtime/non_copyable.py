"""Objects that cannot be copied: those that hold arrays which are used again, captured graphs or locks.

Python would copy some of them in part, so that two objects share one state, and fail at others deep inside ctypes.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn

from tangere.runtime.errors import UnsupportedError


class NonCopyable:
    """A base whose heirs are neither copied nor pickled; the error ends with what to do `instead`."""

    _instead: ClassVar[str] = "make another one"

    def __init_subclass__(cls, *, instead: str | None = None) -> None:
        super().__init_subclass__()
        if instead is not None:
            cls._instead = instead

    # copy, deepcopy and pickle all ask for this.
    def __reduce__(self) -> NoReturn:
        raise UnsupportedError(f"a {type(self).__name__} cannot be copied or pickled: {self._instead}")
