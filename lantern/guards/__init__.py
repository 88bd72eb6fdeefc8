"""Guards of what a function reads besides its arguments, and must find again."""
