"""The manifold of many bodies on CUDA: one pipeline of kernels."""
