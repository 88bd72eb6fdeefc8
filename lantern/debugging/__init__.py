"""Anomalies of a derivative, where they are, and the way back one rule at a time."""
