"""What the engines are on a GPU: cuDNN, and kernels of our own, on CuPy's arrays."""
