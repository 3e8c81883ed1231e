"""Pages of running simulations and of recorded runs."""

from tangere.view.live_pages.crowd_live import CrowdViewer
from tangere.view.live_pages.hand_live import HandViewer
from tangere.view.live_pages.replay import ReplayViewer
from tangere.view.live_pages.soft_live import LiveViewer
from tangere.view.live_pages.tool_live import ToolViewer
from tangere.view.live_pages.world_live import WorldViewer

__all__ = ["CrowdViewer", "HandViewer", "LiveViewer", "ReplayViewer", "ToolViewer", "WorldViewer"]
