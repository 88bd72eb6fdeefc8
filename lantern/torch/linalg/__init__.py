"""Linear algebra: ``torch.linalg``."""

from lantern.torch.documented import document as _document
from lantern.torch.linalg.elimination import *
from lantern.torch.linalg.elimination import __all__ as _elimination
from lantern.torch.linalg.matrices import *
from lantern.torch.linalg.matrices import __all__ as _matrices
from lantern.torch.linalg.solutions import *
from lantern.torch.linalg.solutions import __all__ as _solutions
from lantern.torch.results import with_out as _with_out

_document("linalg", globals())
globals().update(
    {
        name: _with_out(globals()[name])
        for name in (*_elimination, *_matrices, *_solutions)
        if name != "LinAlgError"
    }
)
