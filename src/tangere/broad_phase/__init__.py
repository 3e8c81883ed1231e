"""Who is near whom: trees, sweep and prune, grids, brute force."""
