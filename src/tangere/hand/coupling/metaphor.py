"""Where a device wants the part to be: what its motion means.

spring       the part is tied to the device as it was when it was taken: an offset that a contact has made goes away
             when the contact does.
incremental  every motion of the device is one that the part is to make: an offset stays.

The point of the part that follows the device is its grip; scaled are ways, not turns.

Known as: interaction metaphors (Redon 2002, section 6.3, figures 6.10 and 6.11); position and rate clutching.
"""

from __future__ import annotations

from typing import Literal

import warp as wp

from tangere.hand.coupling.frames import PlacedFrame
from tangere.runtime import SOUND

wp.set_module_options(SOUND)

Metaphor = Literal["spring", "incremental"]
#: Numbers of metaphors in kernels.
METAPHORS: tuple[Metaphor, ...] = ("spring", "incremental")
INCREMENTAL = wp.constant(1)


@wp.func
def image_of(now: PlacedFrame, device: PlacedFrame, part: PlacedFrame, scale: wp.float64) -> PlacedFrame:
    """Where the device, now, wants a part that was at `part` when the device was at `device`."""
    image = PlacedFrame()
    image.position = part.position + scale * (now.position - device.position)
    image.rotation = now.rotation * wp.transpose(device.rotation) * part.rotation
    return image
