"""Random draws with an explicit generator, differentiable where they can be."""

__all__: list[str] = []
