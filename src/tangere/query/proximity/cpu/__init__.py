"""The searches of a detection on CPU: trees of eights, SIMD lanes, a parallel sort."""
