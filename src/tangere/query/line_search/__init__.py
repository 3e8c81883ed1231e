"""How far may a step go without coming too near?"""

from tangere.query.line_search.api import largest_step

__all__ = ["largest_step"]
