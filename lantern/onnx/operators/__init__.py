"""Operators of the format: what each computes, by Lantern's own rules."""
