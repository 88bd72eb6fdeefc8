"""A module's state as a dictionary of tensors, and back; and how a module prints."""

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

from lantern.errors import ArgumentError, EagerError, MissingRuleError
from lantern.torch.modes import no_grad
from lantern.torch.nn.hooks import Hooked, added
from lantern.torch.tensor import Tensor
from lantern.value import base

__all__ = ["StateOf"]


class IncompatibleKeys(
    namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])
):
    """What ``load_state_dict`` found missing, and what it did not expect."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()


class State(OrderedDict[str, Any]):
    """A module's state, by the paths of its parts."""

    _metadata: Any


class StateOf(Hooked):
    """What a module has of state."""

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", **options: Any
    ) -> Any:
        """Parameters and persistent buffers by their paths, sharing their memory.

        Args:
            args: as PyTorch had it: destination, prefix.
            destination: a dictionary to add to.
            prefix: what the paths begin with.
            options: ``keep_vars=True`` for the parameters themselves.
        """
        if args:
            destination, prefix = (*args, prefix)[:2]
        if destination is None:
            destination = State()
            destination._metadata = OrderedDict()
        keep = options.get("keep_vars", False)
        places = list(self._places(prefix))
        for path, module in places:
            for hook in module._state_hooks("before saving"):
                hook(module, path, keep)
            if hasattr(destination, "_metadata"):
                destination._metadata[path[:-1]] = {"version": module._version}
            for name, x in module._own_state():
                destination[path + name] = x if keep else x.detach()
            if type(module).get_extra_state is not StateOf.get_extra_state:
                destination[f"{path}_extra_state"] = module.get_extra_state()
        for path, module in reversed(places):
            for hook in module._state_hooks("after saving"):
                found = hook(module, destination, path, {"version": module._version})
                destination = destination if found is None else found
        return destination

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

    def _state_hooks(self, when: str) -> Any:
        return list(self.__dict__.get("_hooks_of_state", {}).get(when, {}).values())

    def _on_state(self, when: str, hook: Any) -> Any:
        hooks = self.__dict__.setdefault("_hooks_of_state", {}).setdefault(when, {})
        return added(hooks, hook)

    def register_state_dict_pre_hook(self, hook: Any) -> Any:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict``."""
        return self._on_state("before saving", hook)

    def register_state_dict_post_hook(self, hook: Any) -> Any:
        """Call ``hook(module, state_dict, prefix, metadata)`` when it is complete."""
        return self._on_state("after saving", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Any) -> Any:
        """Call ``hook(module, state_dict, prefix, ...)``, which may change the state.

        Its other arguments: the metadata, whether it is strict, and three lists, of
        missing and unexpected keys and of what went wrong.
        """
        return self._on_state("before loading", hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Any, with_module: bool = False
    ) -> Any:
        if with_module:
            return self.register_load_state_dict_pre_hook(hook)
        return self._on_state("before loading", lambda module, *rest: hook(*rest))

    def register_load_state_dict_post_hook(self, hook: Any) -> Any:
        """Call ``hook(module, incompatible_keys)`` when a state was taken."""
        return self._on_state("after loading", hook)

    def _places(self, prefix: str) -> Any:
        """All modules with the prefixes of their paths, those of twice-used too."""
        yield prefix, self
        for name, module in self._modules.items():  # type: ignore[attr-defined]
            if module is not None:
                yield from module._places(f"{prefix}{name}.")

    def _own_state(self) -> Any:
        own = self.__dict__
        for name, x in own["_parameters"].items():
            if x is not None:
                yield name, x
        for name, x in own["_buffers"].items():
            if x is not None and name not in own["_non_persistent_buffers_set"]:
                yield name, x

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
        missing: list[str] = []
        errors: list[str] = []
        known: set[str] = set()
        state_dict = _copied(state_dict)
        places = list(self._places(""))
        for path, module in places:
            module._before_loading(state_dict, path, strict, known, missing, errors)
            for name, x in module._own_state():
                known.add(path + name)
                if path + name not in state_dict:
                    if name == "num_batches_tracked" and not hasattr(
                        state_dict, "_metadata"
                    ):
                        continue  # states of old had none
                    missing.append(path + name)
                    continue
                found = state_dict[path + name]
                complaint = _complaint(path + name, x, found)
                if complaint:
                    errors.append(complaint)
                elif assign:
                    _assign(module, name, x, found)
                else:
                    with no_grad():
                        x.copy_(found)
        unexpected = [key for key in state_dict if key not in known]
        found = IncompatibleKeys(missing, unexpected)
        for _, module in reversed(places):
            for hook in module._state_hooks("after loading"):
                hook(module, found)
        if strict:
            errors = _keys(missing, unexpected) + errors
        if errors:
            lines = "\n\t".join(errors)
            raise EagerError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}"
            )
        return found

    def _before_loading(
        self, state: Any, path: str, strict: bool, known: Any, missing: Any, errors: Any
    ) -> None:
        """Let hooks change a state, and take from it what is no tensor."""
        for hook in self._state_hooks("before loading"):
            hook(self, state, path, {}, strict, missing, [], errors)
        if type(self).set_extra_state is not StateOf.set_extra_state:
            known.add(key := f"{path}_extra_state")
            if key in state:
                self.set_extra_state(state[key])
            else:
                missing.append(key)

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
            for name, module in self._modules.items()  # type: ignore[attr-defined]
        ]
        return framed(self._get_name(), extra_lines, parts)


def _copied(state: Any) -> Any:
    """A state that hooks may change."""
    copy = State(state)
    if hasattr(state, "_metadata"):
        copy._metadata = state._metadata
    return copy


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


def _complaint(key: str, x: Any, found: Any) -> str:
    """What speaks against a tensor's taking a value; empty if nothing does."""
    if not isinstance(found, Tensor):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or '
            f"Tensor-like object from checkpoint but received {type(found)}"
        )
    if base(found).shape != base(x).shape:
        return (
            f"size mismatch for {key}: copying a param with shape {found.shape} from "
            f"checkpoint, the shape in current model is {x.shape}."
        )
    return ""


def _assign(module: Any, name: str, x: Any, found: Any) -> None:
    """Let a module have another tensor itself."""
    from lantern.torch.nn.parameter import Parameter

    if name in module._parameters:
        if not isinstance(found, Parameter):
            found = Parameter(found, x.requires_grad)
        module._parameters[name] = found
    else:
        module._buffers[name] = found


def _keys(missing: list[str], unexpected: list[str]) -> list[str]:
    """The lines about keys that do not fit."""
    lines = []
    for what, keys in (("Missing", missing), ("Unexpected", unexpected)):
        if keys:
            quoted = ", ".join(f'"{key}"' for key in keys)
            lines.append(f"{what} key(s) in state_dict: {quoted}. ")
    return lines
