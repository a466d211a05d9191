"""What neither stubs, schemas nor probes tell."""

from __future__ import annotations


def _words(**groups: str) -> dict[str, str]:
    return {name: kind.replace("_", ":") for kind, names in groups.items() for name in names.split()}


OLD_INIT = """
uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal orthogonal sparse
"""
"""The deprecated names in torch.nn.init, without the underscore."""

KIND: dict[str, dict[str, str]] = {
    "torch": _words(
        tensor="atleast_1d atleast_2d atleast_3d block_diag cartesian_prod cdist chain_matmul einsum from_dlpack "
        "get_rng_state norm stft tensordot unique unique_consecutive nonzero dequantize "
        "quantize_per_tensor Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor "
        "ShortTensor "
        "CharTensor ByteTensor BoolTensor tensor as_tensor from_numpy frombuffer asarray",
        tensors="unravel_index split_copy split_with_sizes_copy unbind_copy where broadcast_tensors meshgrid split "
        "chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes",
        tensors_3="svd_lowrank pca_lowrank",
        tensors_2="lobpcg std_mean var_mean",
        bool="is_tensor is_storage is_floating_point is_complex is_autocast_enabled is_anomaly_enabled "
        "are_deterministic_algorithms_enabled is_grad_enabled is_inference_mode_enabled is_autocast_cpu_enabled "
        "is_warn_always_enabled is_nonzero is_inference is_signed is_conj is_neg can_cast equal allclose is_same_size "
        "is_distributed",
        size="broadcast_shapes Size",
        dtype="get_default_dtype get_autocast_dtype get_autocast_gpu_dtype get_autocast_cpu_dtype promote_types "
        "result_type",
        device="get_default_device device",
        int="get_num_threads get_num_interop_threads initial_seed seed numel get_deterministic_debug_mode "
        "get_device sym_int",
        str="typename get_float32_matmul_precision",
        none="save set_default_dtype set_default_device set_printoptions set_float32_matmul_precision set_num_threads "
        "set_rng_state use_deterministic_algorithms set_default_tensor_type set_num_interop_threads "
        "clear_autocast_cache set_deterministic_debug_mode set_warn_always set_autocast_enabled "
        "set_autocast_cache_enabled",
        any="load compile vmap cond while_loop fork wait manual_seed lu sym_max sym_min sym_sum sym_ite",
        float="sym_float",
    ),
    "torch.Tensor": _words(
        tensor="T mT H mH real imag grad data unique unique_consecutive norm stft rename align_to to_sparse_coo "
        "refine_names unflatten detach nonzero where dequantize masked_select resize resize_as new "
        "as_subclass",
        tensors="split chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes",
        self="detach_ requires_grad_ share_memory_ rename_",
        size="shape size stride",
        device="device",
        dtype="dtype",
        bool="requires_grad is_cuda is_cpu is_leaf is_sparse is_shared is_contiguous is_pinned is_floating_point "
        "is_complex "
        "is_meta is_mps is_xla is_quantized is_nested is_mkldnn is_xpu is_signed is_inference is_conj is_neg "
        "is_coalesced "
        "is_set_to is_same_size is_nonzero allclose equal retains_grad is_sparse_csr is_vulkan is_mtia is_maia is_ipu",
        int="dim ndim ndimension numel nelement element_size data_ptr const_data_ptr storage_offset get_device "
        "itemsize nbytes "
        "output_nr dense_dim sparse_dim",
        scalar="item",
        list="tolist",
        array="numpy",
        none="backward retain_grad record_stream",
        any="grad_fn names layout storage untyped_storage register_hook register_post_accumulate_grad_hook lu name "
        "apply_ map_ map2_ dim_order",
    ),
    "torch.nn.functional": _words(
        tensor="conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear pad one_hot gelu "
        "softplus "
        "scaled_dot_product_attention cosine_similarity pairwise_distance pixel_shuffle pixel_unshuffle avg_pool1d "
        "avg_pool2d avg_pool3d bilinear relu_ celu_ elu_ hardtanh_ leaky_relu_ rrelu_ selu_ threshold_ prelu pdist "
        "logsigmoid hardshrink softshrink channel_shuffle native_channel_shuffle conv_tbc adaptive_avg_pool1d "
        "max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
        "fractional_max_pool2d fractional_max_pool3d adaptive_avg_pool2d adaptive_avg_pool3d grouped_mm scaled_mm "
        "scaled_grouped_mm",
        tensors_2="max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
        "adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices "
        "fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices multi_head_attention_forward",
    ),
    "torch.linalg": _words(
        tensors_2="eig eigh cholesky_ex inv_ex lu_factor qr slogdet ldl_factor solve_ex",
        tensors_3="svd lu lu_factor_ex ldl_factor_ex",
        tensors_4="lstsq",
    ),
    "torch.nn.init": _words(float="calculate_gain"),
}

# Callables of namespaces that have neither stubs nor schemas.
EXTRA: dict[str, dict[str, str]] = {
    "torch.utils.data": _words(any="random_split default_collate default_convert get_worker_info"),
    "torch.utils.checkpoint": _words(any="checkpoint checkpoint_sequential"),
    "torch.utils.dlpack": _words(tensor="from_dlpack"),
    "torch.nn.utils": _words(
        tensor="clip_grad_norm_ clip_grad_norm get_total_norm parameters_to_vector",
        none="clip_grad_value_ clip_grads_with_norm_ vector_to_parameters",
    ),
    "torch.nn.utils.rnn": _words(
        tensor="pad_sequence", tensors_2="pad_packed_sequence", tensors="unpad_sequence unpack_sequence"
    ),
    "torch.autograd": _words(tensors="grad", none="backward"),
    "torch.cuda": _words(
        bool="is_available is_initialized is_bf16_supported is_current_stream_capturing",
        int="device_count current_device memory_allocated memory_reserved max_memory_allocated max_memory_reserved "
        "utilization temperature",
        none="synchronize empty_cache manual_seed manual_seed_all set_device reset_peak_memory_stats init ipc_collect "
        "set_rng_state seed seed_all",
        str="get_device_name memory_summary",
        tensor="get_rng_state FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor "
        "CharTensor "
        "ByteTensor BoolTensor",
    ),
    "torch.distributed": _words(
        bool="is_available is_initialized is_nccl_available is_gloo_available is_torchelastic_launched",
        int="get_rank get_world_size get_node_local_rank",
        str="get_backend",
        none="init_process_group destroy_process_group all_gather_object broadcast_object_list",
        any="barrier all_reduce all_gather all_gather_into_tensor reduce reduce_scatter reduce_scatter_tensor "
        "broadcast gather scatter "
        "all_to_all all_to_all_single send recv isend irecv",
    ),
    "torch.random": _words(tensor="get_rng_state", int="initial_seed seed"),
    "torch.distributions.kl": _words(tensor="kl_divergence"),
    "torch.distributions": _words(tensor="kl_divergence"),
}


def _function(names: str, namespace: str = "torch") -> str:
    return " ".join(f"{namespace}.{name}" for name in names.split())


_REDUCTIONS = (
    "sum mean prod nansum nanmean all any argmax argmin amax amin logsumexp count_nonzero std var nanmedian median "
    "hash_tensor"
)
_FLOAT_REDUCTIONS = "quantile nanquantile"
LOSSES = (
    "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits "
    "kl_div poisson_nll_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
    "multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss triplet_margin_loss "
    "triplet_margin_with_distance_loss cosine_embedding_loss ctc_loss linear_cross_entropy"
)
_PAIR = "kind=tensors:2 dtype=same,int"
_UNIQUE = "kind=tensors:3 dtype=same,int,int"


def _unique(inverse: int, counts: int) -> str:
    return (
        f"return_inverse@{inverse}+return_counts@{counts} => {_UNIQUE} rank=?; return_inverse@{inverse} => {_PAIR} "
        f"rank=?; "
        f"return_counts@{counts} => {_PAIR} rank=?; dim@{counts + 1} => rank=same"
    )


def _reduction(dim: int) -> str:
    return f"dim@{dim} => rank=reduce; axis => rank=reduce"


def _extremum(dim: int) -> str:
    return f"dim@{dim}~ => {_PAIR} rank=reduce"


# "condition => facts; condition => facts": the first condition that holds decides. A
# condition is parameter names, each with its position where it may be given by position
# ("dim@1"; for methods the receiver does not count), joined by "+" for all; "~" after the
# position: not when the argument there is a tensor; "=none": only with that value. Facts
# are as in the tables.
VARIANTS: dict[str, str] = {
    _function(_REDUCTIONS): _reduction(1),
    _function(_REDUCTIONS, "torch.Tensor"): _reduction(0),
    _function(_FLOAT_REDUCTIONS): _reduction(2),
    _function(_FLOAT_REDUCTIONS, "torch.Tensor"): _reduction(1),
    _function("std_mean var_mean"): _reduction(1),
    _function("median nanmedian"): _extremum(1),
    _function("median nanmedian", "torch.Tensor"): _extremum(0),
    _function("max min"): f"{_extremum(1)}; other@1 => dtype=promote rank=broadcast",
    _function("max min", "torch.Tensor"): f"{_extremum(0)}; other@0 => dtype=promote rank=broadcast",
    "torch.kthvalue": "keepdim@3 => rank=same",
    "torch.Tensor.kthvalue torch.mode": "keepdim@2 => rank=same",
    "torch.Tensor.mode": "keepdim@1 => rank=same",
    "torch.linalg.matrix_norm": "keepdim@3 => rank=same",
    "torch.nn.functional.pairwise_distance": "keepdim@4 => rank=same",
    "torch.bincount": "weights@1 => dtype=float",
    "torch.Tensor.bincount": "weights@0 => dtype=float",
    "torch.aminmax torch.Tensor.aminmax": "dim => rank=reduce",
    "torch.norm torch.linalg.norm torch.linalg.vector_norm": _reduction(2),
    "torch.Tensor.norm": _reduction(1),
    "torch.where": "other@2 => kind=tensor dtype=promote rank=broadcast; input@1 => kind=tensor dtype=promote "
    "rank=broadcast",
    "torch.nonzero torch.Tensor.nonzero": "as_tuple => kind=tensors dtype=int rank=1",
    "torch.unique": _unique(2, 3),
    "torch.Tensor.unique": _unique(1, 2),
    "torch.unique_consecutive": _unique(1, 2),
    "torch.Tensor.unique_consecutive": _unique(0, 1),
    "torch.repeat_interleave": "dim@2 => rank=same",
    "torch.Tensor.repeat_interleave": "dim@1 => rank=same",
    "torch.take_along_dim": "dim@2 => rank=same",
    "torch.Tensor.take_along_dim": "dim@1 => rank=same",
    "torch.div torch.Tensor.div torch.divide torch.Tensor.divide": "rounding_mode => dtype=promote",
    "torch.normal": "size@2 => device=cpu-factory rank=?",
    "torch.Tensor.size torch.Tensor.stride": "dim@0 => kind=int",
    "torch.Tensor.type": "dtype@0 => kind=tensor device=argument rank=same",
    "torch.Tensor.flatten": "start_dim@0 => rank=?; end_dim@1 => rank=?",
    "torch.flatten": "start_dim@1 => rank=?; end_dim@2 => rank=?",
    _function(LOSSES, "torch.nn.functional"): "reduction=none => rank=?",
    _function("max_pool1d max_pool2d max_pool3d", "torch.nn.functional"): f"return_indices@6 => {_PAIR}",
    _function(
        "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d", "torch.nn.functional"
    ): f"return_indices@2 => {_PAIR}",
    _function("fractional_max_pool2d fractional_max_pool3d", "torch.nn.functional"): f"return_indices@4 => {_PAIR}",
}

# Names that objects of pandas, PIL, scikit-learn, graph and image libraries, and configurations have too.
ELSEWHERE = (
    "H add align angle asof backward clamp_max coalesce col_indices row_indices corr cov cpu cuda cummax cummin det "
    "detach_module "
    "device diff div eig eq expand ge gradient gt half hist histc index inverse is_complex is_distributed "
    "is_inference is_leaf is_meta "
    "is_neg is_nested is_quantized is_shared is_signed is_sparse layout le lerp log logit lstsq lt lu map2_ map_ "
    "mask median mod "
    "module_load mode mul multiply names name ne new numel pin_memory pow quantile query register_hook reinforce "
    "rename rename_ renorm "
    "resize_as select share_memory_ softmax solve split sqrt stft storage sub subtract svd symeig type unbind "
    "unique values var "
    "topk square sgn ger mm mv qr dsplit cholesky volatile where apply_ get_device abs addr bool byte char data "
    "dist double fix flatten float frac gather grad half int log1p "
    "norm scatter view"
)

# Names that elsewhere are fields (`config.dim`, `conv.stride`, `array.size`) or rarely methods at all.
FIELDS_ELSEWHERE = (
    "dim size t stride topk matmul floor ceil tril triu mm isnan chunk narrow long short exp sin cos tan tanh "
    "sigmoid relu softmax sqrt unbind amax amin fmax fmin expand"
)
