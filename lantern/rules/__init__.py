"""Rules that numbers and arrays share, and the tracked number."""
