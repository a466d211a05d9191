import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class PositionalEmbedding(nn.Module):
    def __init__(self, d_model, max_len=500):
        super().__init__()
        pe = torch.zeros(max_len, d_model).float()
        pe.requires_grad = False
        position = torch.arange(0, max_len).float().unsqueeze(1)
        div_term = (torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model)).exp()
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer('pe', pe.unsqueeze(0))

    def forward(self, x):
        return self.pe[:, :x.size(1)]


class TriangularCausalMask():
    def __init__(self, B, L, device="cpu"):
        with torch.no_grad():
            self._mask = torch.triu(torch.ones([B, 1, L, L], dtype=torch.bool), diagonal=1).to(device)

    @property
    def mask(self):
        return self._mask


class RevIN(nn.Module):
    """Takes mean and scale of each window away and gives them back to the forecast."""

    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))

    def forward(self, x, mode):
        if mode == 'norm':
            self.mean = x.mean(1, keepdim=True).detach()
            self.stdev = torch.sqrt(x.var(1, keepdim=True, unbiased=False) + self.eps).detach()
            return (x - self.mean) / self.stdev * self.weight + self.bias
        x = (x - self.bias) / (self.weight + self.eps * self.eps)
        return x * self.stdev + self.mean


class ProbAttention(nn.Module):
    """Only the queries with the least uniform scores attend; the rest gets the mean of the values."""

    def __init__(self, mask_flag=True, factor=3):
        super().__init__()
        self.mask_flag, self.factor = mask_flag, factor

    def forward(self, q, k, v):
        B, H, L, D = q.shape
        S = k.shape[2]
        n_sample = min(self.factor * math.ceil(math.log(S)), S)
        n_top = min(self.factor * math.ceil(math.log(L)), L)
        index_sample = torch.randint(S, (L, n_sample))
        k_sample = k[:, :, index_sample, :]
        qk = torch.einsum('bhld,bhlsd->bhls', q, k_sample)
        sparsity = qk.max(-1)[0] - qk.sum(-1) / S
        top = sparsity.topk(n_top, sorted=False)[1]
        rows = torch.arange(B)[:, None, None]
        heads = torch.arange(H)[None, :, None]
        scores = q[rows, heads, top] @ k.transpose(-2, -1) / math.sqrt(D)
        if self.mask_flag:
            mask = TriangularCausalMask(B, L, device=q.device).mask.expand(B, H, L, L)
            scores = scores.masked_fill(mask[rows, heads, top], float('-inf'))
        context = v.cumsum(dim=-2) / torch.arange(1, S + 1, device=v.device).view(1, 1, -1, 1) if self.mask_flag \
            else v.mean(dim=-2, keepdim=True).expand(B, H, L, D).clone()
        context[rows, heads, top] = (scores.softmax(-1) @ v).type_as(context)
        return context


class FullAttention(nn.Module):
    def __init__(self, mask_flag=True):
        super().__init__()
        self.mask_flag = mask_flag

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.mask_flag)


class EncoderLayer(nn.Module):
    def __init__(self, attention, d_model, n_heads, dropout=0.05):
        super().__init__()
        self.attention, self.n_heads = attention, n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)
        self.conv1 = nn.Conv1d(d_model, 2 * d_model, 1)
        self.conv2 = nn.Conv1d(2 * d_model, d_model, 1)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, L, _ = x.shape
        q, k, v = self.qkv(x).view(B, L, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        out = self.attention(q, k, v).transpose(1, 2).reshape(B, L, -1)
        y = x = self.norm1(x + self.dropout(self.proj(out)))
        y = self.dropout(F.gelu(self.conv1(y.transpose(-1, 1))))
        y = self.dropout(self.conv2(y).transpose(-1, 1))
        return self.norm2(x + y)


class Forecaster(nn.Module):
    def __init__(self, configs):
        super().__init__()
        self.pred_len = configs.pred_len
        self.revin = RevIN(configs.enc_in)
        self.embed = nn.Linear(configs.enc_in, configs.d_model)
        self.position = PositionalEmbedding(configs.d_model)
        make = {'prob': ProbAttention, 'full': FullAttention}[configs.attn]
        self.layers = nn.ModuleList(
            EncoderLayer(make(mask_flag=True), configs.d_model, configs.n_heads) for _ in range(configs.e_layers))
        self.head = nn.Linear(configs.seq_len, configs.pred_len)
        self.projection = nn.Linear(configs.d_model, configs.enc_in)

    def forward(self, x):
        x = self.revin(x, 'norm')
        h = self.embed(x) + self.position(x)
        for layer in self.layers:
            h = layer(h)
        h = self.head(h.transpose(1, 2)).transpose(1, 2)
        return self.revin(self.projection(h), 'denorm')
