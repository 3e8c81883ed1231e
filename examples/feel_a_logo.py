"""Feel a logo: a simulated hand draws a cube of a millimetre over a steering wheel, at 1 kHz."""

import sys

import numpy as np

import tangere as tg

world = tg.hand.scenes.wheel()  # 11,000 triangles; the logo stands out by 2 mm
start = world["part"].pose
start[:2, 3] = 0.024, 0.015


def path(time):  # down onto the hub, then across the ring of the logo
    pose = start.copy()
    pose[0, 3] += 0.02 * max(time - 0.2, 0.0)
    pose[2, 3] -= 0.006 * min(time / 0.2, 1.0)
    return pose


world["part"].set_state(pose=start)
device = tg.hand.SimulatedDevice(path)
hand = tg.hand.Hand(world, "part", device, slow_rate=1000.0, reach=3.0 * world.separation)
felt = []
hand.run(1.5, after_tick=lambda time: felt.append((*hand.pose[:3, 3], hand.force[2])))
x, y, z, force = np.array(felt[250:]).T
print(f"felt: {1e3 * np.ptp(z):.2f} mm high, {force.min():.2f} to {force.max():.2f} N; {hand.report}")
assert 1.95e-3 < np.ptp(z) < 2.1e-3
assert hand.report.passive
assert not tg.intersects(*world.meshes(), device="cpu")

if len(sys.argv) > 1:
    dot = tg.generate.icosphere(1, radius=5e-4)
    dots = [dot.replace(vertices=dot.vertices + point) for point in np.stack([x, y, z], 1)[::12]]
    camera = tg.scene.Camera((0.2, -0.8, 0.8), zoom=5.0, target=(0.035, 0.01, 0.01))
    tg.picture(tg.Scene.of(world["wheel"].mesh, *dots, camera=camera), path=sys.argv[1])
