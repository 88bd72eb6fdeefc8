"""Derivatives of functions: reverse and forward mode, and what is made of them."""
