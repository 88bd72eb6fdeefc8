"""Receivers of the cotangents of arrays, and the forms in which they keep them."""
