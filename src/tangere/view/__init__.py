"""Look at it: pictures from a ray caster, a web page with a time scrubber, plots. All are fed by a `tangere.scene`."""

from tangere.view.picture import picture, strip
from tangere.view.web import Viewer, view

__all__ = ["Viewer", "picture", "strip", "view"]
