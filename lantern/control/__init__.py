"""What a program may do with its own derivative while it is taken."""
