"""Order: sorting, selecting, searching."""

__all__: list[str] = []
