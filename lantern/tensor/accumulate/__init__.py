"""What receives the cotangents of arrays, and in which form it keeps them."""
