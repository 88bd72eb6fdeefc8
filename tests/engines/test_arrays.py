import numpy as np
import pytest

from lantern.engines import arrays

X = np.arange(24, dtype="f").reshape(4, 6)
VIEWS = {
    "rows": X,
    "part": X[1:, 2:],
    "columns": X.T,
    "apart": X[:, ::2],
    "backwards": X[::-1, ::-1],
    "repeated": np.broadcast_to(X[2, 3], (5, 7)),
    "number": X[3:, 5:].reshape(()),
    "read only": np.frombuffer(b"12345678", "f"),
    "another type": X.view("i2"),
    "of a subclass": X.view(np.matrix),
}


@pytest.mark.parametrize("name", VIEWS)
def test_pointers_are_where_numpy_says(name):
    x = VIEWS[name]
    right = x.__array_interface__["data"][0]
    assert arrays.address(x) == arrays.pointer(x).value == right
    assert [p.value for p in arrays.pointers([x, X])] == [right, arrays.address(X)]


@pytest.mark.parametrize("axes", [None, (0, 2, 1, 3), (3, 1, 0, 2), (1, 2, 3, 0)])
def test_arrays_with_axes_in_an_order(axes):
    shape = 2, 3, 4, 5
    found = arrays.maker(shape, axes)()
    lies = found.transpose(axes or range(4))
    assert found.shape == shape
    assert found.dtype == np.float32
    assert lies.flags.c_contiguous
