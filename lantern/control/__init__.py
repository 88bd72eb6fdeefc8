"""Control of a program over its own derivative while it is taken."""
