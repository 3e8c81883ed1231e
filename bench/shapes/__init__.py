"""Shapes and small assemblies that only benchmarks and tests use; the rest are in `tangere.generate`."""
