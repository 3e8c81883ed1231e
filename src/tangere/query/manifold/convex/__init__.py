"""Contact manifolds of two convex bodies."""
