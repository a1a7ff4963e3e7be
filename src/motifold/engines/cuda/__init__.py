"""The engine of CUDA: one namespace of arrays, one table of kernels, and their NumPy twins."""
