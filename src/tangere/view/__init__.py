"""Look at it: pictures from a ray caster, a web page with a time scrubber, videos, plots; fed by a `tangere.scene`."""

from tangere.view.address import DEFAULT_PORT
from tangere.view.clash_report import clash_page, clash_sheet
from tangere.view.crowd_pictures import plot_measures, top_view
from tangere.view.crowd_scene import crowd_scene
from tangere.view.floor_pictures import floor_png, floor_scene, floor_video, floor_view
from tangere.view.live_pages import CrowdViewer, HandViewer, LiveViewer, ReplayViewer, ToolViewer, WorldViewer
from tangere.view.notebook import html, png
from tangere.view.pictures import Picture, picture, stacked, strip
from tangere.view.plots import plot_lines
from tangere.view.soft_scene import soft_scene
from tangere.view.video import save_video
from tangere.view.web import Viewer, show

__all__ = [
    "DEFAULT_PORT",
    "CrowdViewer",
    "HandViewer",
    "LiveViewer",
    "Picture",
    "ReplayViewer",
    "ToolViewer",
    "Viewer",
    "WorldViewer",
    "clash_page",
    "clash_sheet",
    "crowd_scene",
    "floor_png",
    "floor_scene",
    "floor_video",
    "floor_view",
    "html",
    "picture",
    "plot_lines",
    "plot_measures",
    "png",
    "save_video",
    "show",
    "soft_scene",
    "stacked",
    "strip",
    "top_view",
]
