"""Python imports the library's modules before pytest does, to run their examples.

Pytest makes each module that it imports an attribute of the one above: where a file
below ``lantern/torch/tensor`` came first, ``lantern.torch.tensor`` was no function.
"""

import contextlib
import importlib
from pathlib import Path

ROOT = Path(__file__).parent


def pytest_collect_file(file_path):
    """Import what is collected below the library; what fails is reported by pytest."""
    path = file_path.relative_to(ROOT) if file_path.is_relative_to(ROOT) else Path()
    if path.parts[:1] == ("lantern",) and path.stem != "__main__":
        parts = path.with_suffix("").parts if path.suffix == ".py" else path.parts[:-1]
        with contextlib.suppress(Exception):
            importlib.import_module(".".join(parts).removesuffix(".__init__"))
