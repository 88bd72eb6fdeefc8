"""Modules written down as files: what they call when they run once."""
