"""Mutants that change nothing that a program can see, each with the reason."""

# (file, source of the mutated line) -> why nobody can notice.
HARMLESS: dict[tuple[str, str], str] = {}
