"""What looks wrong in a derivative, where, and the way back one rule at a time."""
