"""Linear algebra beyond products: solving, factorising, eigenvalues, norms."""
