"""A million queries: batches of vertex-face and edge-edge pairs, as fast as the machine goes."""

import sys
import time

import numpy as np

import tangere as tg
from tangere.view.plots import plot_bars

count = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
random = np.random.default_rng(7)
x0, x1 = random.random((count, 4, 3)), random.random((count, 4, 3))  # four vertices at t = 0 and t = 1 [m]

rates = {}
for name, ask in {"vertex-face": tg.query.vertex_face, "edge-edge": tg.query.edge_edge}.items():
    ask(x0[:1000], x1[:1000])  # compiles the kernels, once
    start = time.perf_counter()
    found = ask(x0, x1)
    rates[name] = count / (time.perf_counter() - start)
    times = found.time[found.hit]
    print(f"{name}: {rates[name] / 1e6:.2f} million per second; {len(times)} touch, median t = {np.median(times):.3f}")
    assert ((times >= 0.0) & (times <= 1.0)).all()
    assert np.isinf(found.time[~found.hit]).all()

if len(sys.argv) > 1:
    plot_bars(sys.argv[1], rates, title=f"{count} random queries", x_label="queries per second")
