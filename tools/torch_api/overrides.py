"""What neither stubs, schemas nor probes tell."""

from __future__ import annotations


def _words(**groups: str) -> dict[str, str]:
    return {name: kind.replace("_", ":") for kind, names in groups.items() for name in names.split()}


DUNDERS: frozenset[str] = frozenset()

OLD_INIT = frozenset("uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal orthogonal sparse".split())

KIND: dict[str, dict[str, str]] = {
    "torch": _words(
        tensor="atleast_1d atleast_2d atleast_3d block_diag cartesian_prod cdist chain_matmul einsum from_dlpack "
        "get_rng_state norm stft tensordot unique unique_consecutive where nonzero unravel_index dequantize "
        "quantize_per_tensor Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor "
        "CharTensor ByteTensor BoolTensor tensor as_tensor from_numpy frombuffer asarray",
        tensors="broadcast_tensors meshgrid split chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes",
        tensors_3="svd_lowrank pca_lowrank",
        tensors_2="lobpcg std_mean var_mean",
        bool="is_tensor is_storage is_floating_point is_complex is_autocast_enabled is_anomaly_enabled "
        "are_deterministic_algorithms_enabled is_grad_enabled is_inference_mode_enabled is_autocast_cpu_enabled "
        "is_warn_always_enabled is_nonzero is_inference is_signed is_conj is_neg can_cast equal allclose is_same_size "
        "is_distributed",
        size="broadcast_shapes Size",
        dtype="get_default_dtype get_autocast_dtype get_autocast_gpu_dtype get_autocast_cpu_dtype promote_types result_type",
        device="get_default_device device",
        int="get_num_threads get_num_interop_threads initial_seed seed numel get_deterministic_debug_mode get_device sym_int",
        str="typename get_float32_matmul_precision",
        none="save set_default_dtype set_default_device set_printoptions set_float32_matmul_precision set_num_threads "
        "set_rng_state use_deterministic_algorithms set_default_tensor_type set_num_interop_threads "
        "clear_autocast_cache set_deterministic_debug_mode set_warn_always set_autocast_enabled set_autocast_cache_enabled",
        any="load compile vmap cond while_loop fork wait manual_seed lu sym_max sym_min sym_sum sym_ite",
        float="sym_float",
    ),
    "torch.Tensor": _words(
        tensor="T mT H mH real imag grad data unique unique_consecutive norm stft rename align_to to_sparse_coo "
        "refine_names unflatten detach type nonzero where where quantize_per_tensor dequantize masked_select",
        tensors="split chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes",
        self="detach_ requires_grad_ share_memory_ resize resize_as rename_ retain_grad",
        size="shape size stride",
        device="device",
        dtype="dtype",
        bool="requires_grad is_cuda is_cpu is_leaf is_sparse is_shared is_contiguous is_pinned is_floating_point is_complex "
        "is_meta is_mps is_xla is_quantized is_nested is_mkldnn is_xpu is_signed is_inference is_conj is_neg is_coalesced "
        "is_set_to is_same_size is_nonzero allclose equal retains_grad is_sparse_csr is_vulkan is_mtia is_maia is_ipu",
        int="dim ndim ndimension numel nelement element_size data_ptr storage_offset get_device itemsize nbytes "
        "output_nr dense_dim sparse_dim __len__",
        scalar="item",
        list="tolist",
        array="numpy __array__",
        none="backward",
        str="__repr__ __format__",
        any="grad_fn names layout storage untyped_storage register_hook register_post_accumulate_grad_hook lu name "
        "apply_ map_ map2_ dim_order",
    ),
    "torch.nn.functional": _words(
        tensor="conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear pad one_hot gelu softplus "
        "scaled_dot_product_attention cosine_similarity pairwise_distance pixel_shuffle pixel_unshuffle avg_pool1d "
        "avg_pool2d avg_pool3d bilinear relu_ celu_ elu_ hardtanh_ leaky_relu_ rrelu_ selu_ threshold_ prelu pdist "
        "logsigmoid hardshrink softshrink channel_shuffle native_channel_shuffle conv_tbc adaptive_avg_pool1d "
        "max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
        "fractional_max_pool2d fractional_max_pool3d adaptive_avg_pool2d adaptive_avg_pool3d grouped_mm scaled_mm "
        "scaled_grouped_mm",
        tensors_2="max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
        "adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices "
        "fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices multi_head_attention_forward",
        any="has_torch_function has_torch_function_unary has_torch_function_variadic handle_torch_function boolean_dispatch "
        "assert_int_or_pair",
    ),
    "torch.linalg": _words(
        tensors_2="eig eigh cholesky_ex inv_ex lu_factor qr slogdet ldl_factor solve_ex",
        tensors_3="svd lu lu_factor_ex ldl_factor_ex",
        tensors_4="lstsq",
    ),
    "torch.nn.init": _words(float="calculate_gain"),
}

_LOADER_RESULTS = {
    "torch.utils.data": _words(any="random_split", tensor="default_collate"),
    "torch.nn.utils": _words(
        tensor="clip_grad_norm_ clip_grad_norm get_total_norm parameters_to_vector",
        none="clip_grad_value_ clip_grads_with_norm_ vector_to_parameters",
    ),
    "torch.nn.utils.rnn": _words(tensor="pad_sequence", tensors_2="pad_packed_sequence", tensors="unpad_sequence unpack_sequence"),
    "torch.autograd": _words(tensors="grad", none="backward"),
    "torch.cuda": _words(
        bool="is_available is_initialized is_bf16_supported is_current_stream_capturing",
        int="device_count current_device memory_allocated memory_reserved max_memory_allocated max_memory_reserved "
        "utilization temperature",
        none="synchronize empty_cache manual_seed manual_seed_all set_device reset_peak_memory_stats init ipc_collect "
        "set_rng_state",
        str="get_device_name memory_summary",
        tensor="get_rng_state",
        tensors_2="",
    ),
    "torch.utils.checkpoint": _words(any="checkpoint checkpoint_sequential"),
    "torch.distributed": _words(
        bool="is_available is_initialized is_nccl_available is_gloo_available is_torchelastic_launched",
        int="get_rank get_world_size get_node_local_rank",
        str="get_backend",
        none="barrier init_process_group destroy_process_group all_gather_object broadcast_object_list",
    ),
    "torch.func": _words(tensor="functional_call"),
    "torch.random": _words(tensor="get_rng_state", int="initial_seed seed"),
}
_LOADER_RESULTS["torch.func"] = {}
_LOADER_RESULTS["torch.utils.data"] = {"random_split": "any", "default_collate": "any"}
EXTRA = {namespace: names for namespace, names in _LOADER_RESULTS.items() if names}

_BOTH = ("torch", "torch.Tensor")


def _both(names: str) -> str:
    return " ".join(f"{namespace}.{name}" for name in names.split() for namespace in _BOTH)


def _function(names: str, namespace: str = "torch") -> str:
    return " ".join(f"{namespace}.{name}" for name in names.split())


# "condition => facts; condition => facts": the first condition that holds decides. A
# condition is parameter names, each with its position where it may be given by position
# ("dim@1"; for methods the receiver does not count), joined by "+" for all; "~" after the
# position: not when the argument there is a tensor. Facts are as in the tables.
VARIANTS: dict[str, str] = {
    _function("max min median nanmedian"): "dim@1~ => kind=tensors:2 dtype=same,int rank=?",
    _function("max min median nanmedian", "torch.Tensor"): "dim@0~ => kind=tensors:2 dtype=same,int rank=?",
    _function("max min"): "dim@1~ => kind=tensors:2 dtype=same,int rank=?; other@1 => dtype=promote rank=broadcast",
    _function("max min", "torch.Tensor"): "dim@0~ => kind=tensors:2 dtype=same,int rank=?; other@0 => dtype=promote rank=broadcast",
    _function("sum mean prod nansum nanmean all any argmax argmin amax amin logsumexp count_nonzero"): "dim@1 => rank=?",
    _function("sum mean prod nansum nanmean all any argmax argmin amax amin logsumexp count_nonzero", "torch.Tensor"): "dim@0 => rank=?; axis => rank=?",
    _function("std var std_mean var_mean quantile nanquantile"): "dim@1 => rank=?",
    _function("std var", "torch.Tensor"): "dim@0 => rank=?",
    _function("quantile nanquantile", "torch.Tensor"): "dim@1 => rank=?",
    "torch.norm": "dim@2 => rank=?",
    "torch.Tensor.norm": "dim@1 => rank=?",
    "torch.linalg.norm torch.linalg.vector_norm": "dim@2 => rank=?",
    "torch.where": "self@1 => kind=tensor dtype=promote rank=broadcast; input@1 => kind=tensor dtype=promote rank=broadcast",
    "torch.nonzero": "as_tuple => kind=tensors dtype=int rank=1",
    "torch.Tensor.nonzero": "as_tuple => kind=tensors dtype=int rank=1",
    "torch.unique": "return_inverse@2+return_counts@3 => kind=tensors:3 dtype=same,int,int; "
    "return_inverse@2 => kind=tensors:2 dtype=same,int; return_counts@3 => kind=tensors:2 dtype=same,int",
    "torch.Tensor.unique": "return_inverse@1+return_counts@2 => kind=tensors:3 dtype=same,int,int; "
    "return_inverse@1 => kind=tensors:2 dtype=same,int; return_counts@2 => kind=tensors:2 dtype=same,int",
    "torch.unique_consecutive": "return_inverse@1+return_counts@2 => kind=tensors:3 dtype=same,int,int; "
    "return_inverse@1 => kind=tensors:2 dtype=same,int; return_counts@2 => kind=tensors:2 dtype=same,int",
    "torch.Tensor.unique_consecutive": "return_inverse@0+return_counts@1 => kind=tensors:3 dtype=same,int,int; "
    "return_inverse@0 => kind=tensors:2 dtype=same,int; return_counts@1 => kind=tensors:2 dtype=same,int",
    "torch.Tensor.size": "dim@0 => kind=int",
    "torch.Tensor.stride": "dim@0 => kind=int",
    "torch.Tensor.type": "dtype@0 => kind=tensor dtype=unknown rank=same",
    _function("max_pool1d max_pool2d max_pool3d", "torch.nn.functional"): "return_indices@6 => kind=tensors:2 dtype=same,int",
    _function("adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d", "torch.nn.functional"): "return_indices@2 => kind=tensors:2 dtype=same,int",
    _function("fractional_max_pool2d fractional_max_pool3d", "torch.nn.functional"): "return_indices@4 => kind=tensors:2 dtype=same,int",
    "torch.Tensor.flatten": "start_dim@0 => rank=?",
    "torch.flatten": "start_dim@1 => rank=?",
}

# Attribute names of pandas objects, PIL images, torch modules' and other libraries' objects
# (fields, paths, files, loggers, tokenizers, configurations) that tensors have too.
OTHERS = (
    "T abs add align all any apply argmax argmin argsort asof astype at attrs axes backward bool clip combine compare copy corr "
    "count cov cpu cuda cummax cummin cumprod cumsum data describe device devices diff div divide dot double dtype dtypes eq "
    "equals eval exp expand explode factorize fill fillna filter flags flatten float floor_divide format ge gather get grad gt "
    "half hist histogram histc id index info int interpolate is_complex is_shared isin isna isnull item items itemsize iter join "
    "keys kurt last layout le length lerp load loc log long lt lu map mask max mean median min mm mod mode module_load mul "
    "multiply name names nbytes ndim ne new nlargest norm normal normalize_ notna numel open parameters pdist pipe pivot pop pow "
    "process prod put qr quantile random rank ravel real imag reduce register_hook rename repeat requires_grad_ reset reshape "
    "resize reverse rfloordiv roll rotate round sample save scatter select shape share_memory shape short shift show sign size "
    "skew slice softmax solve sort split sqrt squeeze stack state std step stft storage sub subtract sum svd swapaxes symeig T "
    "tail take tell thumbnail tile to tolist topk transform transpose trace triu truncate type unique unbind unstack update "
    "values value var version view where width xs char byte frac inverse cross diag det eig fix conj positive negative square "
    "sin cos tan sinh cosh tanh asin acos atan arcsin arccos arctan floor ceil trunc maximum minimum mvlgamma logical_and "
    "logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not outer inner vdot kron fmod remainder "
    "exp2 expm1 log10 log1p log2 sinc hypot gcd lcm heaviside i0 absolute true_divide float_power greater greater_equal less "
    "less_equal equal not_equal isfinite isinf isnan isneginf isposinf isreal isclose allclose array_split bincount "
    "broadcast_to count_nonzero fliplr flipud flip moveaxis nan_to_num nanmean nanmedian nanquantile nansum nonzero roll rot90 "
    "searchsorted tril union1d vsplit hsplit dsplit sigmoid relu map_ apply_ apply"
)
