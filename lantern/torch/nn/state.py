"""A module's state as a dictionary of tensors, and back; and how a module prints."""

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

from lantern.eager.grad_mode import no_grad
from lantern.errors import ArgumentError, EagerError, MissingRuleError
from lantern.torch.nn.hooks import Hooked, WithModule, added
from lantern.torch.nn.parameter import Parameter, is_lazy
from lantern.torch.tensor.tensor import Tensor

__all__ = ["StateOf"]

_EXTRA = "_extra_state"


class _IncompatibleKeys(
    namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])
):
    """What ``load_state_dict`` found missing, and what it did not expect."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()


class StateOf(Hooked):
    """What a module has of state.

    What a subclass may override is called where PyTorch calls it: ``state_dict`` and
    ``_save_to_state_dict`` of every module, and ``_load_from_state_dict``.
    """

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _version = 1

    # --- saving -----------------------------------------------------------------------

    def state_dict(
        self,
        *args: Any,
        destination: Any = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> Any:
        """Parameters and persistent buffers by their paths, sharing their memory.

        Args:
            args: as PyTorch had it: destination, prefix, keep_vars.
            destination: a dictionary to add to.
            prefix: what the paths begin with.
            keep_vars: whether to give the parameters themselves.
        """
        if args:
            destination, prefix, keep_vars = (*args, prefix, keep_vars)[:3]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}{name}."
                module.state_dict(
                    destination=destination, prefix=path, keep_vars=keep_vars
                )
        for hook in list(self._state_dict_hooks.values()):
            found = hook(self, destination, prefix, metadata)
            if found is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise EagerError("state_dict post-hook must return None")
            destination = found
        return destination

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        """Put the module's own state, without that of modules in it, into a state."""
        for name, x in self._own_state():
            whole = keep_vars or is_lazy(x)
            destination[prefix + name] = x if whole else x.detach()
        if type(self).get_extra_state is not StateOf.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _own_state(self) -> Any:
        lost = self._non_persistent_buffers_set
        for name, x in self._parameters.items():
            if x is not None:
                yield name, x
        for name, x in self._buffers.items():
            if x is not None and name not in lost:
                yield name, x

    def get_extra_state(self) -> Any:
        """What is saved beside tensors. To be overridden."""
        raise MissingRuleError(
            "Reached a code path in Module.get_extra_state() that should never be "
            "called."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take what ``get_extra_state`` gave. To be overridden."""
        raise MissingRuleError(
            "Reached a code path in Module.set_extra_state() that should never be "
            "called."
        )

    def register_state_dict_pre_hook(self, hook: Any) -> Any:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict``."""
        return added(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> Any:
        """Call ``hook(module, state_dict, prefix, metadata)`` when it is complete."""
        hook._from_public_api = True
        return added(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Any) -> Any:
        """As the public one; what the hook returns takes the state's place."""
        if getattr(hook, "_from_public_api", False):
            raise EagerError(
                "Cannot register the same function as the state dict post hook that "
                "was previously registered via register_state_dict_post_hook"
            )
        return added(self._state_dict_hooks, hook)

    # --- loading ----------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Take the values of a state.

        Args:
            state_dict: tensors by their paths.
            strict: whether the paths must be exactly the module's own.
            assign: whether to take the tensors themselves instead of their values.

        Raises:
            RuntimeError: for what is missing, unexpected, or of another shape.
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(
                f"Expected state_dict to be dict-like, got {type(state_dict)}."
            )
        found = _IncompatibleKeys([], [])
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        copy: Any = OrderedDict(state_dict)
        if metadata is not None:
            copy._metadata = metadata
        _load(self, copy, "", metadata or {}, assign, found, errors)
        if strict:
            errors = _keys(*found) + errors
        if errors:
            lines = "\n\t".join(errors)
            raise EagerError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}"
            )
        return found

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take the module's own values, without those of modules in it, from a state.

        Args:
            state_dict: a copy of the state, which may be changed.
            prefix: what the module's paths begin with.
            local_metadata: what was saved of the module beside, as its ``version``.
            strict: whether to note missing and unexpected keys.
            missing_keys: a list to add to.
            unexpected_keys: a list to add to.
            error_msgs: a list to add to.
        """
        lists = missing_keys, unexpected_keys, error_msgs
        for hook in list(self._load_state_dict_pre_hooks.values()):
            of_module = (self,) if type(hook) is WithModule else ()
            hook(*of_module, state_dict, prefix, local_metadata, strict, *lists)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = dict(self._own_state())
        for name, x in own.items():
            key = prefix + name
            if key in state_dict:
                _take(self, name, x, state_dict[key], key, assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA
        if type(self).set_extra_state is not StateOf.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def register_load_state_dict_pre_hook(self, hook: Any) -> Any:
        """Call ``hook(module, state_dict, prefix, ...)``, which may change the state.

        Its other arguments: the metadata, whether it is strict, and three lists, of
        missing and unexpected keys and of what went wrong.
        """
        return self._register_load_state_dict_pre_hook(hook, True)

    def _register_load_state_dict_pre_hook(
        self, hook: Any, with_module: bool = False
    ) -> Any:
        entry = WithModule(hook) if with_module else hook
        return added(self._load_state_dict_pre_hooks, entry)

    def register_load_state_dict_post_hook(self, hook: Any) -> Any:
        """Call ``hook(module, incompatible_keys)`` when a state was taken."""
        return added(self._load_state_dict_post_hooks, hook)

    # --- how it prints ----------------------------------------------------------------

    def extra_repr(self) -> str:
        """What is printed between the parentheses."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        parts = [
            f"({name}): {_indented(repr(module))}"
            for name, module in self._modules.items()
        ]
        return framed(self._get_name(), extra_lines, parts)


def framed(name: str, extra: list[str], parts: list[str]) -> str:
    """The text of a module from those of its parts."""
    if len(extra) == 1 and not parts:
        return f"{name}({extra[0]})"
    lines = extra + parts
    if not lines:
        return f"{name}()"
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _load(
    module: Any, state: Any, prefix: str, metadata: Any, assign: bool, *found: Any
) -> None:
    """Let a module, and then the modules in it, take what is theirs of a state."""
    (missing, unexpected), errors = found
    own = metadata.get(prefix[:-1], {})
    if assign:
        own["assign_to_params_buffers"] = assign
    module._load_from_state_dict(state, prefix, own, True, missing, unexpected, errors)
    for name, inner in module._modules.items():
        if inner is not None:
            path = f"{prefix}{name}."
            part = OrderedDict((k, x) for k, x in state.items() if k.startswith(path))
            _load(inner, part, path, metadata, assign, *found)
    for hook in list(module._load_state_dict_post_hooks.values()):
        if hook(module, found[0]) is not None:
            raise EagerError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                "expected to return new values, if incompatible_keys need to be "
                "modified, it should be done inplace."
            )


def _take(
    module: Any, name: str, x: Any, found: Any, key: str, assign: bool, errors: Any
) -> None:
    """Give a parameter or buffer a value, or be another tensor; else say why not."""
    if not isinstance(found, Tensor):
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or '
            f"Tensor-like object from checkpoint but received {type(found)}"
        )
        return
    if not is_lazy(x):
        if x.shape == () and found.shape == (1,):  # as states of old had it
            found = found[0]
        if found.shape != x.shape:
            errors.append(
                f"size mismatch for {key}: copying a param with shape {found.shape} "
                f"from checkpoint, the shape in current model is {x.shape}."
            )
            return
    try:
        with no_grad():
            if not assign:
                x.copy_(found)
                return
            if isinstance(x, Parameter):
                if not isinstance(found, Parameter):
                    found = Parameter(found, x.requires_grad)
                found.requires_grad_(x.requires_grad)
            setattr(module, name, found)
    except Exception as error:
        errors.append(
            f'While copying the parameter named "{key}", whose dimensions in the model '
            f"are {x.size()} and whose dimensions in the checkpoint are "
            f"{found.size()}, an exception occurred : {error.args}."
        )


def _keys(missing: list[str], unexpected: list[str]) -> list[str]:
    """The lines about keys that do not fit."""
    lines = []
    for what, keys in (("Missing", missing), ("Unexpected", unexpected)):
        if keys:
            quoted = ", ".join(f'"{key}"' for key in keys)
            lines.append(f"{what} key(s) in state_dict: {quoted}. ")
    return lines
