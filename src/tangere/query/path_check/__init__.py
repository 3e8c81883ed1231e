"""Can a part be moved along a path without touching anything?"""

from tangere.query.path_check.api import PathCheck, check_path

__all__ = [
    "PathCheck",
    "check_path",
]
