"""Look at it: pictures from a ray caster, a web page with a time scrubber, plots. All are fed by a `tangere.scene`."""

from tangere.view.address import DEFAULT_PORT
from tangere.view.crowd_live import CrowdViewer
from tangere.view.live import LiveViewer
from tangere.view.pictures import picture, stacked, strip, write_png
from tangere.view.plots import plot_lines
from tangere.view.replay import ReplayViewer
from tangere.view.web import Viewer, show

__all__ = [
    "DEFAULT_PORT",
    "CrowdViewer",
    "LiveViewer",
    "ReplayViewer",
    "Viewer",
    "picture",
    "plot_lines",
    "show",
    "stacked",
    "strip",
    "write_png",
]
