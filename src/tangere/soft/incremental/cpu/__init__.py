"""What the host writes of a cut, by kernels of one thread."""
