"""Properties that are computed when they are asked for; subclasses find them."""

from typing import Any

from lantern.eager.grad_mode import enable_grad

__all__ = ["derived", "lazy_property"]


class lazy_property:
    """A property that is computed when it is first asked for, and kept.

    Example:
        >>> from lantern.torch.distributions.utils import lazy_property
        >>> class Square:
        ...     @lazy_property
        ...     def area(self):
        ...         print("computed")
        ...         return 4
        >>> square = Square()
        >>> square.area, square.area
        computed
        (4, 4)
    """

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        self.__doc__, self.__name__ = wrapped.__doc__, wrapped.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.__name__, value)
        return value


class derived(lazy_property):
    """A parameter that follows from the one that was given, which is what is kept.

    What an instance has of that name counts first.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.distributions.Bernoulli(torch.tensor(0.5))
        >>> x.logits, sorted(x.__dict__.keys() & {"probs", "logits"})
        (tensor(0.), ['probs'])
    """

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else self.wrapped(instance)
