"""Docstring examples of functions that stand in tables."""
