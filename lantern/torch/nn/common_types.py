"""Types of sizes for annotations: a number, or one for each axis."""

from typing import Any

from lantern.torch.tensor.tensor import Tensor

__all__: list[str] = []

_scalar_or_tuple_any_t = int | tuple[int, ...]
_scalar_or_tuple_1_t = int | tuple[int]
_scalar_or_tuple_2_t = int | tuple[int, int]
_scalar_or_tuple_3_t = int | tuple[int, int, int]
_scalar_or_tuple_4_t = int | tuple[int, int, int, int]
_scalar_or_tuple_5_t = int | tuple[int, int, int, int, int]
_scalar_or_tuple_6_t = int | tuple[int, int, int, int, int, int]
_size_any_t, _size_1_t = _scalar_or_tuple_any_t, _scalar_or_tuple_1_t
_size_2_t, _size_3_t = _scalar_or_tuple_2_t, _scalar_or_tuple_3_t
_size_4_t, _size_5_t = _scalar_or_tuple_4_t, _scalar_or_tuple_5_t
_size_6_t = _scalar_or_tuple_6_t
_ratio_2_t = _ratio_any_t = float | tuple[float, ...]
_ratio_3_t = float | tuple[float, float, float]
_tensor_list_t = _maybe_indices_t = Tensor | list[Tensor] | tuple[Any, ...]
