"""Pairs of links that may touch: by name, from SRDF files, and why.

Known as: allowed collision matrix (ACM), disabled collisions (MoveIt), collision filter (Drake).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any
from xml.etree import ElementTree

from tangere.runtime import InputError, described, file_path

#: The reason of pairs that cannot touch while all joints keep within their limits.
PROVED = "proved never to touch"


@dataclass(frozen=True, eq=False)
class AllowedPairs:
    """Pairs of bodies that are not compared, each with the reason. What they touch elsewhere on them is hidden, too."""

    reasons: Mapping[tuple[str, str], str] = field(default_factory=dict)  #: by the two names, in order
    unknown: tuple[str, ...] = ()  #: names in the file that no link has
    bodiless: tuple[str, ...] = ()  #: links in the file that have no body

    @classmethod
    def of(cls, pairs: AllowedPairs | Iterable[Iterable[str]] | None, reason: str = "by name") -> AllowedPairs:
        """Pairs of names as allowed pairs.

        Args:
            pairs: two names each; what is an `AllowedPairs` already stays one.
            reason: why they may touch.
        """
        if pairs is None:
            return cls()
        allowed = getattr(pairs, "allowed", pairs)  # a `TouchingTable` has them
        if isinstance(allowed, AllowedPairs):
            return allowed
        if isinstance(pairs, str) or not isinstance(pairs, Iterable):
            raise InputError(f"allowed must be pairs of names, not {described(pairs)}")
        return cls({_pair(pair, f"allowed[{k}]"): reason for k, pair in enumerate(pairs)})

    @classmethod
    def load(cls, path: str | PathLike[str], links: Iterable[str], bodies: Iterable[str]) -> AllowedPairs:
        """The pairs that an SRDF file disables, with its reasons; names that no link has are warned of.

        Args:
            path: the file.
            links: names of the robot's links.
            bodies: of those that have a body.
        """
        file = file_path(path, "an SRDF file")
        try:
            root = ElementTree.parse(file).getroot()
        except OSError as error:
            raise InputError(f"SRDF {file.name!r}: there is no file {str(file)!r}") from error
        except ElementTree.ParseError as error:
            raise InputError(f"SRDF {file.name!r}: is not XML: {error}") from error
        known, solid = set(links), set(bodies)
        reasons: dict[tuple[str, str], str] = {}
        named: set[str] = set()
        for row in root.iter("disable_collisions"):
            one, other = row.get("link1"), row.get("link2")
            if not one or not other:
                raise InputError(f"SRDF {file.name!r}: a disable_collisions lacks link1 or link2")
            named |= {one, other}
            if one in solid and other in solid and one != other:
                reasons[_ordered(one, other)] = f"{file.name}: {row.get('reason') or 'disabled'}"
        unknown = tuple(sorted(named - known))
        if unknown:
            told = ", ".join(unknown[:5]) + (f" and {len(unknown) - 5} more" if len(unknown) > 5 else "")
            warnings.warn(f"SRDF {file.name!r}: names links that are not there: {told}", UserWarning, stacklevel=2)
        return cls(reasons, unknown, tuple(sorted((named & known) - solid)))

    def __len__(self) -> int:
        return len(self.reasons)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.reasons)

    def __contains__(self, pair: Any) -> bool:
        return isinstance(pair, tuple | list) and (tuple(pair) in self.reasons or tuple(pair[::-1]) in self.reasons)

    def __or__(self, other: AllowedPairs | Iterable[Iterable[str]]) -> AllowedPairs:
        more = AllowedPairs.of(other)
        names = [tuple(dict.fromkeys(a + b)) for a, b in ((self.unknown, more.unknown), (self.bodiless, more.bodiless))]
        return AllowedPairs({**self.reasons, **more.reasons}, *names)

    def __repr__(self) -> str:
        told = [f"{len(self)} pairs"]
        told += [f"{count} {reason}" for reason, count in self.counts().items()]
        told += [f"{len(self.unknown)} unknown names"] if self.unknown else []
        told += [f"{len(self.bodiless)} links without a body"] if self.bodiless else []
        return f"AllowedPairs({', '.join(told)})"

    def counts(self) -> dict[str, int]:
        """How many pairs there are for each reason."""
        reasons = list(self.reasons.values())
        return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}

    def without_proofs(self) -> AllowedPairs:
        """The same without pairs that are proved never to touch: the proofs are for joints within their limits."""
        pairs = {pair: reason for pair, reason in self.reasons.items() if reason != PROVED}
        return self if len(pairs) == len(self) else AllowedPairs(pairs, self.unknown, self.bodiless)

    def prefixed(self, prefix: str) -> AllowedPairs:
        """The same pairs of a robot whose bodies have a prefix to their names."""
        pairs = {(prefix + one, prefix + other): reason for (one, other), reason in self.reasons.items()}
        return AllowedPairs(pairs, self.unknown, self.bodiless)


def _pair(pair: Any, what: str) -> tuple[str, str]:
    names = list(pair) if isinstance(pair, Iterable) and not isinstance(pair, str) else []
    if len(names) != 2 or not all(isinstance(name, str) for name in names) or names[0] == names[1]:
        raise InputError(f"{what} must be the names of two bodies, not {described(pair)}")
    return _ordered(*names)


def _ordered(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one <= other else (other, one)
