"""The searches of a detection on CUDA: LBVHs with small nodes, one captured graph."""
