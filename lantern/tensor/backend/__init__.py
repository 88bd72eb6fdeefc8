"""The array libraries: NumPy, CuPy, BLAS and compiled kernels."""
