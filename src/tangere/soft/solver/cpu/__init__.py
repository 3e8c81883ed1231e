"""All sweeps of a step in one kernel, by a team of threads."""
