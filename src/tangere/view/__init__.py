"""Look at it: pictures from a ray caster, a web page with a time scrubber, videos, plots; fed by a `tangere.scene`."""

from tangere.view.address import DEFAULT_PORT
from tangere.view.crowd_live import CrowdViewer
from tangere.view.live import LiveViewer
from tangere.view.notebook import html, png
from tangere.view.pictures import Picture, picture, stacked, strip
from tangere.view.plots import plot_lines
from tangere.view.replay import ReplayViewer
from tangere.view.video import save_video
from tangere.view.web import Viewer, show

__all__ = [
    "DEFAULT_PORT",
    "CrowdViewer",
    "LiveViewer",
    "Picture",
    "ReplayViewer",
    "Viewer",
    "html",
    "picture",
    "plot_lines",
    "png",
    "save_video",
    "show",
    "stacked",
    "strip",
]
