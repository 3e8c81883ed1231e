"""How far apart are two convex bodies? See `api` for people, `narrow_phase` for kernels."""
