"""Linear algebra beyond products: solving, factorising, eigenvalues, norms.

A part is imported when it is asked for: ``linalg.solve.inv(a)``.
"""

from lantern.imported import late_parts as _late_parts

__getattr__ = _late_parts(
    __name__, "eigen_svd factorisations matrix_functions norms solve"
)
