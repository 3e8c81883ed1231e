"""The sweeps of a step as launches."""
