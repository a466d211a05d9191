"""Which functions get a signature, and those that neither inspect nor one overload tells."""

from __future__ import annotations

FUNCTIONS: dict[str, str] = {
    "torch": "zeros ones full empty rand randn eye linspace as_tensor tensor from_numpy randperm zeros_like "
    "ones_like full_like "
    "empty_like rand_like randn_like randint_like repeat_interleave bincount masked_select unique "
    "cat stack compile load save cdist einsum meshgrid topk sort argsort argmax argmin gather scatter index_select "
    "cumsum mean prod std var norm split chunk matmul bmm mm clamp allclose equal isclose multinomial searchsorted "
    "is_tensor set_float32_matmul_precision manual_seed softmax log_softmax asarray tril triu "
    "squeeze unsqueeze flatten reshape",
    "torch.nn.functional": "max_pool1d max_pool3d avg_pool1d avg_pool3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d unfold fold "
    "pixel_shuffle affine_grid elu silu sigmoid tanh hardtanh relu6 rms_norm dropout2d adaptive_max_pool2d "
    "adaptive_avg_pool1d "
    "gaussian_nll_loss poisson_nll_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
    "multilabel_margin_loss "
    "multilabel_soft_margin_loss soft_margin_loss triplet_margin_with_distance_loss cosine_embedding_loss "
    "pairwise_distance upsample "
    "one_hot cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div "
    "binary_cross_entropy binary_cross_entropy_with_logits ctc_loss softmax log_softmax gumbel_softmax dropout "
    "interpolate "
    "grid_sample layer_norm group_norm batch_norm instance_norm embedding embedding_bag normalize relu leaky_relu gelu "
    "multi_head_attention_forward pad linear conv1d conv2d conv3d scaled_dot_product_attention max_pool2d avg_pool2d "
    "adaptive_avg_pool2d triplet_margin_loss cosine_similarity",
    "torch.Tensor": "numpy backward item tolist cpu clone contiguous detach unsqueeze index_select masked_fill "
    "masked_select masked_fill_ "
    "masked_scatter masked_scatter_ repeat_interleave unique unique_consecutive topk argsort argmax argmin "
    "index_put index_put_ "
    "scatter scatter_ scatter_add gather new_tensor new_full new_zeros new_ones new_empty requires_grad_ pin_memory "
    "copy_ "
    "fill_ split chunk multinomial bincount cumsum mean prod norm index_add index_add_ record_stream",
}

# By position all three take `proj_size`, though it means something to one alone.
_RECURRENT = "bias=True batch_first=False dropout=0.0 bidirectional=False proj_size=0 device=None dtype=None"

TEXT: dict[str, str] = {
    "torch.nn.RNN": f"input_size hidden_size num_layers=1 nonlinearity='tanh' {_RECURRENT}",
    "torch.nn.GRU": f"input_size hidden_size num_layers=1 {_RECURRENT}",
    "torch.nn.LSTM": f"input_size hidden_size num_layers=1 {_RECURRENT}",
    "torch.arange": "start=0 end step=1 out=None dtype=None layout=None device=None pin_memory=False "
    "requires_grad=False",
    "torch.randint": "low=0 high size generator=None out=None dtype=None layout=None device=None requires_grad=False",
    "torch.unique_consecutive": "input return_inverse=False return_counts=False dim=None",
    "torch.where": "condition input=None other=None out=None",
    "torch.Tensor.where": "condition other",
    "torch.nonzero": "input out=None as_tuple=False",
    "torch.Tensor.nonzero": "as_tuple=False",
    "torch.max": "input dim=None keepdim=False out=None",
    "torch.min": "input dim=None keepdim=False out=None",
    "torch.median": "input dim=None keepdim=False out=None",
    "torch.any": "input dim=None keepdim=False out=None",
    "torch.all": "input dim=None keepdim=False out=None",
    "torch.sum": "input dim=None keepdim=False dtype=None out=None",
    "torch.Tensor.max": "dim=None keepdim=False",
    "torch.Tensor.min": "dim=None keepdim=False",
    "torch.Tensor.median": "dim=None keepdim=False",
    "torch.Tensor.any": "dim=None keepdim=False",
    "torch.Tensor.all": "dim=None keepdim=False",
    "torch.Tensor.sum": "dim=None keepdim=False dtype=None",
    "torch.Tensor.to": "device=None dtype=None non_blocking=False copy=False memory_format=None",
    "torch.Tensor.cuda": "device=None non_blocking=False memory_format=None",
    "torch.Tensor.type": "dtype=None non_blocking=False",
    "torch.Tensor.view": "*size",
    "torch.Tensor.reshape": "*shape",
    "torch.Tensor.size": "dim=None",
    "torch.nn.Module.to": "device=None dtype=None non_blocking=False memory_format=None",
    "torch.nn.Module.cuda": "device=None",
    "torch.nn.Module.train": "mode=True",
    "torch.nn.Module.register_buffer": "name tensor persistent=True",
    "torch.nn.Module.register_parameter": "name param",
    "torch.nn.Module.load_state_dict": "state_dict strict=True assign=False",
    "torch.nn.Module.zero_grad": "set_to_none=True",
    "torch.optim.Optimizer.zero_grad": "set_to_none=True",
    "torch.nn.Parameter": "data=None requires_grad=True",
    "torch.device": "type index=None",
}

UNREADABLE: dict[str, str] = {
    "torch.cuda.Stream": "device=None priority=0",
    "torch.cuda.Event": "enable_timing=False blocking=False interprocess=False",
}
