"""Facts on dtype, rank and device that calling with plain tensors does not show, and what must not be called."""

from __future__ import annotations

from torch_api.overrides import LOSSES

_SKIP = (
    "squeeze_copy hinge_embedding_loss kl_div margin_ranking_loss triplet_margin_loss get_rng_state retain_grad "
    "backward "
    "from_dlpack from_file index rename refine_names align_to"
)
SKIP = frozenset(_SKIP.split())
SKIP_PREFIXES = ("cudnn_", "miopen_", "mkldnn_", "fbgemm_", "quantize", "fake_quantize", "sparse_", "sym_", "_")


def _in(namespace: str, names: str) -> str:
    return " ".join(f"{namespace}.{name}" for name in names.split())


def _both(names: str) -> str:
    return f"{_in('torch', names)} {_in('torch.Tensor', names)}"


def _functional(names: str) -> str:
    return _in("torch.nn.functional", names)


_LEGACY_FLOAT = "FloatTensor DoubleTensor HalfTensor BFloat16Tensor"
_LEGACY_INT = "LongTensor IntTensor ShortTensor CharTensor ByteTensor"
_LEGACY = f"{_LEGACY_FLOAT} {_LEGACY_INT} BoolTensor"
_WINDOWS = "hann_window hamming_window blackman_window bartlett_window kaiser_window"
_FREQUENCIES = "torch.fft.fftfreq torch.fft.rfftfreq"
_CONVOLUTIONS = "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc"
_POOLS = (
    "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d fractional_max_pool2d fractional_max_pool3d "
    "lp_pool1d lp_pool2d "
    "lp_pool3d"
)
_NORMS = "batch_norm layer_norm group_norm instance_norm rms_norm local_response_norm normalize"
_RESIZES = (
    "interpolate upsample upsample_bilinear upsample_nearest pad pixel_shuffle pixel_unshuffle grid_sample "
    "channel_shuffle"
)
_DATA = (
    "masked_select gather index_select take take_along_dim unique unique_consecutive reshape squeeze permute transpose "
    "repeat_interleave tile roll flip narrow select movedim clone detach diag masked_fill masked_scatter scatter "
    "scatter_add "
    "scatter_reduce index_fill index_put index_copy index_add chunk split tensor_split unbind split_with_sizes "
    "hsplit vsplit dsplit"
)

DEVICE = {
    "cpu-factory": _in(
        "torch",
        "zeros ones full empty rand randn randint arange range linspace logspace eye tensor as_tensor asarray "
        "from_numpy frombuffer "
        "randperm empty_strided empty_permuted tril_indices triu_indices scalar_tensor from_file "
        f"Tensor {_WINDOWS} {_LEGACY}",
    )
    + f" {_FREQUENCIES}",
    "like": _in("torch", "zeros_like ones_like full_like empty_like rand_like randn_like randint_like")
    + " "
    + _in("torch.Tensor", "new_zeros new_ones new_full new_empty new_tensor new_empty_strided new"),
    "host": "torch.Tensor.cpu torch.get_rng_state torch.cuda.get_rng_state torch.random.get_rng_state",
    "device": "torch.Tensor.cuda " + _in("torch.cuda", _LEGACY),
    # What the parameters that they get are, they are asked of: their norm is where these are.
    "model": "torch.nn.utils.clip_grad_norm_ torch.nn.utils.get_total_norm",
    "argument": "torch.Tensor.to torch.Tensor.type torch.load",
    "unknown": "torch.from_dlpack torch.utils.dlpack.from_dlpack",
}

DTYPE = {
    "float": _in(
        "torch",
        f"zeros ones empty rand randn linspace logspace eye normal cdist stft Tensor {_WINDOWS} {_LEGACY_FLOAT}",
    )
    + f" {_FREQUENCIES} {_functional(_NORMS)} {_functional(_CONVOLUTIONS)} {_functional(LOSSES)} "
    + f"{_in('torch.cuda', _LEGACY_FLOAT)} "
    + _functional(
        "dropout linear embedding embedding_bag grid_sample affine_grid scaled_dot_product_attention prelu "
        "alpha_dropout"
    )
    + " torch.conv1d torch.conv2d torch.conv3d torch.layer_norm torch.group_norm torch.batch_norm torch.dropout "
    + "torch.view_as_real "
    + "torch.nn.utils.clip_grad_norm_ torch.nn.utils.get_total_norm torch.Tensor.view_as_complex",
    "int": _both("nonzero argwhere bincount multinomial argmax argmin argsort count_nonzero unravel_index")
    + " "
    + _in(
        "torch", f"randint randperm searchsorted bucketize tril_indices triu_indices get_rng_state {_LEGACY_INT} where"
    )
    + " torch.Tensor.long torch.Tensor.int torch.Tensor.short torch.Tensor.char torch.Tensor.byte "
    + "torch.nn.functional.one_hot "
    + f"torch.cuda.get_rng_state {_in('torch.cuda', _LEGACY_INT)}",
    "bool": "torch.BoolTensor torch.cuda.BoolTensor torch.isin torch.Tensor.bool",
    "same": f"{_both(_DATA)} {_functional(_POOLS)} {_functional(_RESIZES)} "
    + _in(
        "torch",
        "zeros_like ones_like empty_like full_like rand_like randn_like randint_like meshgrid broadcast_tensors",
    )
    + " "
    + _in(
        "torch.Tensor",
        "new_zeros new_ones new_empty new_full view expand expand_as view_as reshape_as repeat unfold unflatten cpu "
        "cuda",
    )
    + " torch.nn.utils.rnn.pad_sequence torch.broadcast_to torch.Tensor.broadcast_to "
    + "torch.nn.functional.fold torch.nn.functional.unfold",
    "scalars": "torch.arange torch.range torch.full",
    "same,int": _both("topk sort kthvalue mode cummax cummin"),
    "promote": _in(
        "torch",
        "cat concat concatenate stack hstack vstack dstack column_stack row_stack einsum matmul bmm mm mv tensordot",
    )
    + " "
    + _in("torch.Tensor", "matmul bmm mm mv where")
    + " "
    + _both("gcd lcm baddbmm addmm addbmm addmv lerp"),
    "": _in("torch", "tensor as_tensor asarray from_numpy frombuffer") + " torch.Tensor.to torch.Tensor.new_tensor "
    "torch.Tensor.type torch.Tensor.new torch.Tensor.type_as torch.Tensor.resize_as",
}

RANK = {
    "0": f"torch.scalar_tensor torch.nn.utils.clip_grad_norm_ torch.nn.utils.get_total_norm {_functional(LOSSES)} "
    + _both("dot vdot trace"),
    "1": _in("torch", f"arange range linspace logspace randperm bincount frombuffer get_rng_state where {_WINDOWS}")
    + f" {_FREQUENCIES} torch.nn.utils.parameters_to_vector "
    + _both("masked_select bincount mv repeat_interleave unique unique_consecutive"),
    "2": "torch.eye torch.tril_indices torch.triu_indices " + _both("nonzero argwhere mm addmm outer ger"),
    "3": _both("bmm baddbmm"),
    "same": _both(
        "clone detach scatter scatter_add scatter_reduce index_add index_copy index_fill index_put index_select "
        "flip narrow roll "
        "permute transpose swapaxes movedim cumsum cumprod chunk split tensor_split split_with_sizes sort topk cummax "
        "cummin tril triu argsort cholesky inverse logcumsumexp renorm"
    )
    + " "
    + _in("torch.Tensor", "cpu cuda to contiguous pin_memory")
    + f" {_functional(_NORMS)} {_functional(_CONVOLUTIONS)} {_functional(_POOLS)} {_functional(_RESIZES)} "
    + _functional("linear dropout alpha_dropout dropout2d prelu scaled_dot_product_attention softmax log_softmax")
    + " torch.linalg.inv torch.linalg.cholesky torch.linalg.pinv torch.cat torch.concat torch.concatenate "
    + "torch.conv2d torch.layer_norm "
    "torch.softmax torch.log_softmax torch.Tensor.softmax torch.Tensor.log_softmax torch.normal torch.dropout",
    "broadcast": _both("masked_fill masked_scatter gather") + " torch.broadcast_tensors" + " torch.Tensor.where",
    "+1": "torch.stack torch.view_as_real torch.nn.functional.embedding torch.nn.functional.one_hot "
    + _both("unsqueeze unfold_copy")
    + " torch.Tensor.unfold torch.Tensor.unsqueeze_",
    "-1": _both("kthvalue mode unbind") + " torch.view_as_complex torch.nn.functional.cosine_similarity",
    "-2": _both("det logdet slogdet") + " torch.linalg.det torch.linalg.slogdet torch.linalg.matrix_norm",
    "size": "torch.full torch.Tensor.new_full",
    "numbers": "torch.Tensor.new",
    "sizes": _in("torch", "zeros ones empty rand randn")
    + " "
    + _in("torch.Tensor", "view reshape expand new_zeros new_ones new_empty repeat"),
    "": _both("squeeze multinomial matmul tensordot tile")
    + " "
    + _in(
        "torch",
        f"randint tensor as_tensor asarray from_numpy reshape einsum triplet_margin_loss Tensor {_LEGACY} "
        f"hstack vstack dstack column_stack "
        "row_stack block_diag cartesian_prod atleast_1d atleast_2d atleast_3d",
    )
    + " "
    + _in("torch.Tensor", "new_tensor index view_as reshape_as expand_as repeat")
    + " torch.linalg.vander",
    "?": _in("torch.Tensor", "squeeze_ resize_ resize_as_ set_ as_strided_"),
}
