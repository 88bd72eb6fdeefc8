"""Linear algebra: ``torch.linalg``."""

from lantern.torch.linalg.elimination import *
from lantern.torch.linalg.elimination import __all__ as _elimination
from lantern.torch.linalg.matrices import *
from lantern.torch.linalg.matrices import __all__ as _matrices
from lantern.torch.linalg.solutions import *
from lantern.torch.linalg.solutions import __all__ as _solutions
from lantern.torch.tables import place as _place
from lantern.torch.tensor.halves import single as _single
from lantern.torch.tensor.named_results import with_out as _with_out

_ADDING = frozenset("matrix_norm multi_dot norm vecdot vector_norm".split())
globals().update(
    {
        name: _with_out(
            _single(globals()[name]) if name in _ADDING else globals()[name]
        )
        for name in (*_elimination, *_matrices, *_solutions)
        if name != "LinAlgError"
    }
)
_place(__name__, globals())
