"""The article's manifold of a cylinder on terrain: three cases for each element, deferred sets, groups of four."""

from tangere.published.strashnov_three_cases.manifold import published_manifold

__all__ = [
    "published_manifold",
]
