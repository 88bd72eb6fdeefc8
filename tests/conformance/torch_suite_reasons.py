"""What of PyTorch's test files does not count, and why others fail."""

import re
from typing import NamedTuple

# FILE:CLASS.test: other devices, the compiler, quantised types, PyTorch's own storage.
EXCLUDED = (
    r"(?i)cuda|jit|torchscript|dynamo|inductor|compile|fx_|_fx|quantiz|mkldnn|xla|vulkan"
    r"|sparse|storage|functionaliz|python_dispatch|torch_dispatch|dispatch_mode"
    r"|named_?tensor|nested|TestBothSerialization|TestOldSerialization"
    r"|cpp_|subprocess|share_memory|segfault|deterministic"
    r"|lazy_clone|_cow_|resizable|qengine"
    # Operators of a test build of the dispatcher; layers of quantised training.
    r"|TestAutogradMultipleDispatch|transfer_parametrizations_and_params"
)
UNEXPLAINED = "unexplained"


class Reason(NamedTuple):
    """Why tests fail.

    Attributes:
        why: what is otherwise here.
        tests: their names without ``test_``, and without what says which variant it is;
            with the class in front (``TestAutograd.detach``) where another class has
            one of this name.
        error: what the errors say that need no name of a test.
        values: whether it explains that a value is another one.
    """

    why: str
    tests: str = ""
    error: str = ""
    values: bool = False


REASONS = {
    "inference tensors": Reason(
        "what is made under inference_mode is a plain tensor, that may be written to "
        "and differentiated later; a view that is made there, or under no_grad, says "
        "that it requires no gradient",
        """
        inference_mode_decorator inference_mode_handle_direct_view_on_rebase
        inference_mode_handle_indirect_view_on_rebase
        inference_mode_inf_tensor_in_inf_mode_functional_op
        inference_mode_inf_tensor_in_inf_mode_inplace_op
        inference_mode_inf_tensor_in_inf_mode_view_op
        inference_mode_inf_tensor_in_normal_mode_inplace_op
        inference_mode_inf_tensor_in_normal_mode_view_op
        inference_mode_tensor_creation make_dual_inference_tensor_in_inference_mode
        mix_inference_and_normal_tensor_functional_op
        mix_inference_and_normal_tensor_inplace_op
        mix_inference_and_normal_tensor_view_op
        normal_tensor_inplace_output_in_inference_mode
        normal_tensor_view_output_in_inference_mode
        normal_tensor_view_output_in_normal_mode
        autograd_print_tensor
        """,
        values=True,
    ),
    "names of events": Reason(
        "the profiler counts a program's blocks and functions, not PyTorch's operators "
        "by their names",
        """
        TestAutograd.profiler TestAutograd.profiler_shapes profiler_seq_nr
        TestAutograd.record_function record_function_legacy profiler_aggregation_fake
        profiler_aggregation_lstm profiler_function_event_avg profiler_propagation
        profiler_emit_itt
        """,
        values=True,
    ),
    "tangents in memory of their own": Reason(
        "make_dual shares no memory with what it is made of, and a write to a dual "
        "tensor gives it a new tangent: the derivatives agree. Where a tangent would "
        "be written to plain memory, that is an error",
        """
        advanced_packing_unpacking view_inplace_non_differentiable_views
        view_inplace_differentiable_views custom_function_forward_mode_forward_is_no_op
        set_fw_grad_having_own_fw_grad_at_same_level TestAutogradForwardMode.print
        custom_function_save_for_forward TestDistributions.bernoulli
        """,
        values=True,
    ),
    "numbers of calls": Reason(
        "how often hooks and rules are called, values copied, and writes to one memory "
        "counted (resize_ makes another) differs; the gradients agree",
        """
        unpack_hooks_exec_count gradcheck_forward_ad_respects_requires_grad
        access_saved_tensor_twice_without_recomputation_works
        saved_same_tensor_many_times saved_same_tensor_different_versions
        TestMultithreadAutograd.multi_grad_any_hooks resize_version_bump
        TestAutograd.version_counter
        """,
        values=True,
    ),
    "order in memory": Reason(
        "the values are right and lie in another order: NumPy chooses the strides of "
        "many results; of no elements it finds no views",
        """
        adaptive_avg_pool2d_output_size_one conv_thnn_nhwc max_unpool2d_nhwc
        avg_pool2d_nhwc avg_pool2d_reduced_floating max_pool3d_ndhwc
        memory_format_empty_like
        memory_format_factory_like_functions_preserve memory_format_operators
        memory_format_propagation_rules strides_propagation upsamplingNearest2d
        empty_slice view_as_complex
        """,
        values=True,
    ),
    "other draws": Reason(
        "a seed gives other numbers than PyTorch's, which these checks were chosen "
        "for: with the same numbers PyTorch's results are as far off",
        """
        sobolengine_continuing_scrambled sobolengine_draw_base2_scrambled
        sobolengine_draw_scrambled sobolengine_fast_forward_scrambled
        sobolengine_reset_scrambled wishart_moments wishart_properties
        lowrank_multivariate_normal_moments gamma_sample gumbel_sample studentT_sample
        vonmises_sample
        """,
        values=True,
    ),
    "another estimate": Reason(
        "draws of Beta and Dirichlet distributions are quotients of gamma draws and so "
        "are their derivatives: the same in the mean, and not draw by draw",
        """
        beta_wrt_alpha beta_wrt_beta dirichlet_on_diagonal dirichlet_multivariate
        dirichlet_tangent_field
        """,
        values=True,
    ),
    "rounding": Reason(
        "as far from the exact value as PyTorch's, where terms cancel in float32",
        "gradient_all",
        values=True,
    ),
    "gradients that are not 0": Reason(
        "convolutions of no channels are their bias, whose gradient is the sum of the "
        "cotangents; PyTorch leaves 0",
        "conv_empty_channel",
        values=True,
    ),
    "examples first": Reason(
        "a function's own rule for vmap gets the examples along the first axis, and is "
        "told so",
        "in_dims_single_input",
        values=True,
    ),
    "batches in order": Reason(
        "a DataLoader's workers are threads, which make the batches in their order, "
        "see the dataset as it is, and end with the program",
        """
        out_of_order_iterable_ds dataset_not_reset proper_exit partial_workers
        excessive_thread_creation_warning default_collate_shared_tensor
        """,
        values=True,
    ),
    "programs in files": Reason(
        "nothing in a file is run, files of GPUs are read without one, and "
        "check sums are always right and checked",
        """
        weights_only_env_variables_force_weights_only serialization_save_warnings
        weights_only_safe_globals_blocklist pickle_module load_nonexistent_device
        crc32_options_compute_crc32 filewriter_metadata_writing
        pruning_serialization_model save_different_dtype_error load_error_msg
        serialization_filelike_uses_readinto
        """,
        values=True,
    ),
    "works here": Reason(
        "the test asks for an error where nothing is wrong here: results over their "
        "operands, views of several, functions inside of functions, derivatives that "
        "PyTorch lacks",
        """
        numpy_array_binary_ufunc_promotion copy_mem_overlap ternary_op_mem_overlap
        shift_mem_overlap indexing_fail inplace_on_view_multiple_outputs
        inplace_multiple_output_view_of_view inplace_on_view_of_multiple_output_view
        inplace_on_view_multi_output_safe autograd_inplace_view_of_view
        inplace_not_requires_grad gradcheck_forward_ad_batched_grad
        scatter_index_reduce_prod_gradgrad_error saved_variable_saved_original_inplace
        checkpointing_without_reentrant_custom_function_works not_implemented_fwad
        elu_inplace_with_neg_alpha leaky_relu_inplace_with_neg_slope
        batchnorm_raises_error_if_running_var_or_running_mean_have_forward_grad
        AdaptiveMaxPool1d_indices AdaptiveMaxPool2d_indices AdaptiveMaxPool3d_indices
        MaxPool1d_indices MaxPool2d_indices MaxPool3d_indices
        adaptive_pooling_empty_output_size histogram_error_handling optimizer_pass
        transforms_dont_support_saved_tensor_hooks requires_grad_inside_transform
        vjp_doesnt_support_saved_tensor_hooks
        grad_aux_pytree vjp_aux_pytree aux_pytree aux_pytree_jacfwd aux_pytree_jacrev
        chunk_jacrev_chunksize_one autograd_functional_jvp_inside_transform
        inplace_on_captures
        autograd_function_no_setup_context kwarg_only_tensors
        swap_module_params_poisons_acc_grad tensor_base_init
        custom_function_mark_dirty_not_differentiable
        """,
    ),
    "checks that are not made": Reason(
        "gradcheck tries no missing cotangents, and a program's own jvp is believed",
        """
        gradcheck_undefined_grad custom_function_forward_mode_inplace_checks
        custom_function_forward_mode_view_checks
        """,
    ),
    "refused here": Reason(
        "an error in place of what cannot be said for certain: writes to what is "
        "expanded, parts of one memory as two types, views whose base has moved on, "
        "values that outlive their derivative, rules that were freed, derivatives with "
        "respect to an optimiser's own counts",
        """
        anomaly_detect_nan threshold_inplace_overlap autograd_inplace_views_cross_dtype
        first_grad_fn_access_in_no_grad_mode inplace_on_view_multi_output_unsafe
        autograd_inplace_views_creation_meta escaped_wrappers_are_ignored
        escaped_wrappers_are_marked_as_dead upsamplingTrilinear3d
        TestDifferentiableOptimizer.nadam
        """,
    ),
    "gradients of nothing": Reason(
        "the gradient of no elements is a constant, and has no derivative itself",
        "softmax_results",
    ),
    "autocast": Reason(
        "types stay as they are under autocast",
        "checkpointing_non_reentrant_autocast",
    ),
    "checkpoints": Reason(
        "a selective checkpoint keeps nothing, and may be computed again as often as "
        "it is asked for; what it takes is not checked",
        """
        TestSelectiveActivationCheckpoint.bad_inputs can_only_trigger_recompute_once
        TestSelectiveActivationCheckpoint.version_counter
        checkpoint_valid_reset_on_error function_with_non_tensor_output
        subclass_dispatching_sizes
        """,
    ),
    "nodes": Reason(
        "rules are not PyTorch's nodes: other names, one rule for several of its "
        "steps, values saved under other names, edges and hooks of rules alone",
        """
        once_differentiable grad_fn_name grad_fn_prehooks_multiple_outputs
        grad_fn_input_metadata grad_to_node grad_nonleaf_register_hook
        tensor_hooks_inplace_over_view grad_fn_attr_bindings grad_fn_badcalls
        backward_hook_relative_ordering inplace_on_view_backward
        pack_hook_with_inplace_modification_should_fail
        saved_tensor_hooks_extra_exit_during_bw_no_crash
        saved_variable_packing_unpacking_did_not_save_original_with_hooks
        node_post_hook_registered_during_unpack_hook tensor_ressurecting_clear
        current_graph_task_execution_order materialize_grads dont_materialize_grads
        no_grad_outside_vjp_only attribute_deletion calculate_shape_util
        view_replay_enabled view_func_replay_with_modified_state
        multiple_insert_removal_caching saved_but_not_anymore with_out_variant
        """,
    ),
    "depth": Reason(
        "a pass inside of a pass goes as deep as Python's own stack", "deep_reentrant"
    ),
    "how values are shown": Reason(
        "what transforms track is shown as a tensor",
        "tensor_print_vmap_vmap tensor_print_grad_grad",
    ),
    "lazy signs": Reason(
        "conjugates, negatives and zeros are computed, not noted for later",
        """
        copy_math_view copy_transpose_math_view serialization_math_bits
        serialization_efficient_zerotensor conj_neg_view_numpy_error conj_imag_view
        conj_bit metadata_check_when_primal_has_conj_bit
        metadata_check_when_primal_has_neg_bit metadata_check_check_conj TestTorch.equal
        """,
    ),
    "classes with slots of their own": Reason(
        "PyTorch's wrapper subclasses (TwoTensor, _make_subclass)",
        """
        get_unsafe_globals_in_checkpoint weights_only_error_unsafe_global
        safe_globals_context_manager_weights_only tensor_subclass_deepcopy
        tensor_subclass_getstate_overwrite tensor_subclass_wrapper_serialization
        swap_basic swap_fail_slots
        """,
    ),
    "life of C++ objects": Reason(
        "names of PyTorch's own tests, of its build and of its dispatcher",
        """
        tensor_fix_weakref_no_leak tensor_resurrected_weak_ref check_tensor_internal
        cxx_flags doc_template warn_types nnpack_conv warning_in_backward
        can_use_grad_when_key_is_excluded can_use_vmap_when_key_is_excluded
        multihead_self_attn_two_masks_fast_path_mock tensor_type
        no_vmap_staticmethod_and_no_generate_vmap_rule always_called_forward_hooks
        embedding_bag_dimension_errors
        """,
    ),
    "inner operations": Reason(
        "operations of PyTorch's own that no program calls by their names",
        """
        codegen_ignores_undefined_outputs create_new_zeros_with_same_meta
        conv_double_backward_strided_with_3D_input_and_weight integer_outputs
        inplace_on_view_same_layout inplace_on_view_not_same_layout
        out_of_place_not_same_layout
        """,
    ),
    "parts of functorch": Reason(
        "higher-order operators, and names of its inside; switches that stop tangents",
        """
        basic_sum grad_sum grad_grad_sum vmap_sum vmap_grad_sum no_grad_inside_grad
        no_grad_outside_grad CtxWithSavedTensors_error_if_name_collision
        CtxWithSavedTensors_nesting CtxWithSavedTensors_overrides_saved_tensors
        CtxWithSavedTensors_passthrough reductify_leaf functional_init
        functional_init_with_buffers autograd_function_disables_fwd_grad
        disable_fwd_grad_inside disable_fwd_grad_mixed disable_fwd_grad_outside
        fwd_grad_enabled set_fwd_grad_enabled
        """,
    ),
    "sparse": Reason(
        "sparse tensors are constants, of one layout, and gradients are dense",
        """
        gradcheck_input_layout gradcheck_backward_mul_by_grad_output
        gradcheck_check_batched_grad gradcheck_test_outputs gradcheck_validates_inputs
        deepcopy_gradient TestOldViewOpsCPU.t crow_col_indices embedding_backward
        linear_autograd_device_cpu_nobias_weightCOO
        linear_autograd_device_cpu_nobias_weightCSC graph_save_on_cpu
        accumulate_grad_tensor_reference
        overwrite_module_params_on_conversion
        """,
    ),
    "nested": Reason(
        "there are no nested tensors, and no short ways of layers that make some: a "
        "row whose keys are all masked is 0 in each of them, and nan in PyTorch's",
        "TransformerEncoderLayer_empty is_same_size transformerencoderlayer",
    ),
    "quantised": Reason("there are no quantised tensors", "fb_fc_packed"),
    "no device 'meta'": Reason(
        "every tensor has memory",
        "skip_init skip_data_serialization_preserves_views",
        r"there is no device 'meta'",
    ),
    "missing type": Reason(
        "float8, complex32: NumPy has no such type",
        "type_conversion_via_dtype_name",
        r"NumPy has no such type|Unknown dtype|NoVariant",
    ),
    "limits of NumPy": Reason(
        "an array has 64 axes at most", "dim_reduction_less_than_64"
    ),
    "legacy names": Reason(
        "names that PyTorch keeps from older versions, or for NumPy's options",
        """
        gradcheck_get_analytical_jacobian gradcheck_get_numerical_jacobian
        grad_scaler_deprecated_warning numpy_named_args fork_join_in_middle dim_order
        Sequential_insert_fail_case spectral_norm_load_state_dict
        call_supports_python_dict_output hook_non_full_warning
        """,
    ),
    "error or warning in other words": Reason(
        "errors in Lantern's words, or found at another place; warnings of what costs "
        "nothing here",
        """
        grad_batched_grad checkpoint_detects_non_determinism TestLazyModules.weight_norm
        TestLazyModules.spectral_norm custom_function_return_view_in_nograd out_variant
        bucketization mode_wrong_dtype quantile_error
        set_default_tensor_type_warnings scalar_check parsing_intlist
        retain_grad_inside_transform
        autograd_functional_jacfwd_inside_transform
        warning_unimplemented_constraints Conv3d_module_same_padding
        params_constraints
        """,
    ),
    "slow": Reason("more than 10 s on this computer", error=r"^slow:"),
}
# What is said of a value that is another one.
VALUES = r"VALUES|EQUAL|Jacobian mismatch|not close|not less than"


def named(row, word):
    """Whether a word stands for a test: all of its name, or all but the variant."""
    place, _, test = row["id"].partition(".")
    of, _, name = word.rpartition(".")
    return of in ("", place) and f"{test}_".startswith(f"test_{name}_")


def explains(reason, row):
    """Whether a reason is that of a failure."""
    said = f"{row.get('error') or row['status']}: {row.get('text', '')}"
    if re.search(VALUES, said) and not reason.values:
        return False
    if any(named(row, word) for word in reason.tests.split()):
        return True
    return bool(reason.error) and bool(re.search(reason.error, said))


def kinds(row):
    """The kind of a failure; ``UNEXPLAINED`` if no reason is known."""
    return next((k for k, r in REASONS.items() if explains(r, row)), UNEXPLAINED)
