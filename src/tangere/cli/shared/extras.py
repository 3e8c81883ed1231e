"""Packages of the extra [view] that a command will need: a missing one is told before the work, not after it."""

from __future__ import annotations

from importlib import import_module

from tangere.runtime import needs_extra


def check_view_extra(*, pillow: bool = False, matplotlib: bool = False, viser: bool = False) -> None:
    """Raise unless each package that is wanted can be loaded."""
    wanted = (("pillow", "PIL", pillow), ("matplotlib", "matplotlib", matplotlib), ("viser", "viser", viser))
    for package, module, needed in wanted:
        if not needed:
            continue
        with needs_extra(package, "view"):
            import_module(module)
