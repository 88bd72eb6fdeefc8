"""Tracked arrays: their class, their rules, and what their gradients are made of."""
