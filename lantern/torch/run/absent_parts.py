"""The parts of PyTorch that are not here: why, and what is imported from them."""

__all__ = ["NAMES", "REASONS"]

_WRITTEN = "programs are not written down here, they run."
_NESTED = "there are no nested tensors here. Pad, with a mask."
_QUANTISED = "there are no quantised tensors here."
_FAKE = "there are no tensors without values here but those on the device 'meta'."
_MASKED = "there are no masked tensors here. Use torch.where."
_COMPILED = "nothing is compiled here."
_DEVICE = "there is no such device here."

REASONS = {
    "_custom_ops": "operations are made with torch.library.",
    "_functorch": "transforms are made otherwise here: see torch.func.",
    "_guards": _WRITTEN,
    "_higher_order_ops": _WRITTEN,
    "_inductor": _COMPILED,
    "_export": _WRITTEN,
    "export": _WRITTEN,
    "classes": "operations and classes of C++ cannot be loaded here.",
    "masked": _MASKED,
    "nested": _NESTED,
    "numa": "processes are placed by the system here.",
    "package": "programs are not packed here. Use torch.save.",
    "quantization": _QUANTISED,
    "_subclasses": _FAKE,
    "_subclasses.fake_tensor": _FAKE,
    "mtia": _DEVICE,
    "mps": _DEVICE,
    "xpu": _DEVICE,
}

_FAKES = "FakeTensor FakeTensorMode UnsupportedFakeTensorException"
_OF_DEVICE = (
    "Event Stream StreamContext current_device current_stream default_stream device "
    "get_device_capability get_device_name get_device_properties get_rng_state "
    "get_rng_state_all max_memory_allocated max_memory_reserved mem_get_info "
    "memory_allocated memory_reserved memory_stats set_device set_rng_state "
    "set_rng_state_all set_stream stream synchronize"
)
NAMES = {
    "export": (
        "Constraint Dim ExportedProgram ShapesCollection UnflattenedModule dims "
        "draft_export export load register_dataclass save unflatten"
    ),
    "masked": (
        "MaskedTensor amax amin argmax argmin as_masked_tensor cumprod cumsum "
        "log_softmax logaddexp logsumexp masked_tensor mean median norm normalize "
        "prod softmax softmin std sum var"
    ),
    "nested": (
        "as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged "
        "to_padded_tensor"
    ),
    "package": "PackageExporter PackageImporter",
    "_subclasses": _FAKES,
    "_subclasses.fake_tensor": _FAKES,
    "mtia": _OF_DEVICE,
    "mps": (
        "Event compile_shader current_allocated_memory driver_allocated_memory "
        "get_rng_state recommended_max_memory set_per_process_memory_fraction "
        "set_rng_state synchronize"
    ),
    "xpu": _OF_DEVICE,
}
