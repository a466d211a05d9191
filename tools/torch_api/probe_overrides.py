"""Facts on dtype, rank and device that calling cannot show, and what must not be called."""

from __future__ import annotations

SKIP = frozenset("get_rng_state retain_grad backward from_dlpack from_file".split())
SKIP_PREFIXES = ("cudnn_", "miopen_", "mkldnn_", "fbgemm_", "quantize", "fake_quantize", "sym_", "_")


def _in(namespace: str, names: str) -> str:
    return " ".join(f"{namespace}.{name}" for name in names.split())


_FACTORIES = (
    "zeros ones full empty rand randn randint arange range linspace logspace eye tensor as_tensor asarray from_numpy frombuffer "
    "randperm empty_strided empty_permuted empty_quantized normal tril_indices triu_indices hann_window hamming_window "
    "blackman_window bartlett_window kaiser_window scalar_tensor complex_tensor sparse_coo_tensor sparse_csr_tensor "
    "sparse_compressed_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor from_file get_rng_state "
    "Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor"
)
_LIKE = "zeros_like ones_like full_like empty_like rand_like randn_like randint_like"
_NEW = "new_zeros new_ones new_full new_empty new_tensor new_empty_strided new"

DEVICE = {
    "cpu-factory": f"{_in('torch', _FACTORIES.replace('complex_tensor', ''))} torch.fft.fftfreq torch.fft.rfftfreq",
    "like": f"{_in('torch', _LIKE)} {_in('torch.Tensor', _NEW)}",
    "host": "torch.Tensor.cpu",
    "device": "torch.Tensor.cuda",
    "argument": "torch.Tensor.to torch.Tensor.type torch.load",
}

DTYPE = {
    "float": _in("torch", "zeros ones empty rand randn linspace logspace eye normal hann_window hamming_window blackman_window "
    "bartlett_window kaiser_window Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor cdist stft") + " "
    + _in("torch.Tensor", "float double half bfloat16") + " torch.fft.fftfreq torch.fft.rfftfreq",
    "int": _in("torch", "randint randperm nonzero argwhere bincount searchsorted bucketize tril_indices triu_indices LongTensor IntTensor "
    "ShortTensor CharTensor ByteTensor multinomial argmax argmin argsort count_nonzero get_rng_state unravel_index") + " "
    + _in("torch.Tensor", "long int short char byte nonzero argwhere bincount multinomial argmax argmin argsort count_nonzero")
    + " torch.nn.functional.one_hot",
    "bool": _in("torch", "BoolTensor isin") + " torch.Tensor.bool",
    "same": _in("torch", "zeros_like ones_like empty_like full_like rand_like randn_like randint_like masked_select gather index_select "
    "take take_along_dim unique unique_consecutive reshape flatten squeeze unsqueeze permute transpose repeat_interleave tile roll "
    "flip narrow select movedim clone detach diag masked_fill scatter index_fill unfold_copy") + " "
    + _in("torch.Tensor", "new_zeros new_ones new_empty new_full view reshape flatten squeeze unsqueeze permute transpose "
    "expand expand_as view_as reshape_as repeat repeat_interleave tile roll flip narrow select movedim clone detach contiguous cpu cuda "
    "masked_select gather index_select take take_along_dim unique unique_consecutive diag masked_fill scatter index_fill unfold "
    "index_put index_copy scatter_add index_add masked_scatter pin_memory"),
    "same,int": _in("torch", "topk sort kthvalue mode cummax cummin") + " " + _in("torch.Tensor", "topk sort kthvalue mode cummax cummin"),
    "promote": _in("torch", "cat concat concatenate stack hstack vstack dstack"),
    "": _in("torch", "full tensor as_tensor asarray from_numpy arange range frombuffer") + " "
    + _in("torch.Tensor", "to type new_tensor new view_as_complex"),
}  # fmt: skip

RANK = {
    "0": "torch.scalar_tensor torch.nn.utils.clip_grad_norm_ torch.nn.utils.get_total_norm "
    + _in(
        "torch.nn.functional",
        "cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits "
        "kl_div poisson_nll_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
        "multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss triplet_margin_loss "
        "triplet_margin_with_distance_loss cosine_embedding_loss ctc_loss",
    ),
    "1": _in("torch", "arange range linspace logspace randperm bincount hann_window hamming_window blackman_window bartlett_window "
    "kaiser_window from_numpy masked_select get_rng_state frombuffer").replace("torch.from_numpy ", "")
    + " " + _in("torch.Tensor", "masked_select bincount") + " torch.fft.fftfreq torch.fft.rfftfreq torch.nn.utils.parameters_to_vector",
    "2": "torch.eye torch.nonzero torch.Tensor.nonzero torch.argwhere torch.Tensor.argwhere torch.tril_indices torch.triu_indices "
    "torch.mm torch.Tensor.mm torch.addmm torch.Tensor.addmm",
    "3": "torch.bmm torch.Tensor.bmm torch.baddbmm torch.Tensor.baddbmm",
    "same": _in("torch.Tensor", "cpu cuda to contiguous clone detach pin_memory") + " torch.nn.functional.dropout",
    "": "torch.zeros torch.ones torch.empty torch.full torch.rand torch.randn torch.randint torch.squeeze torch.Tensor.squeeze "
    "torch.tensor torch.as_tensor torch.asarray torch.Tensor.view torch.reshape torch.Tensor.reshape torch.where torch.multinomial "
    "torch.Tensor.multinomial torch.Tensor.expand torch.Tensor.repeat torch.Tensor.new_zeros torch.Tensor.new_ones "
    "torch.Tensor.new_empty torch.Tensor.new_full torch.Tensor.new_tensor torch.Tensor.new torch.einsum torch.matmul torch.Tensor.matmul",
}  # fmt: skip
