"""The search on CPUs, by a thread for each group."""
