"""PyTorch modules as people write them, for ``benchmarks/pytorch.py``: name, constructor, shapes of the inputs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

Shapes = tuple[tuple[int, ...], ...]
Case = tuple[Callable[[], nn.Module], Shapes]


class Square(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * x


def perceptron(*widths: int, activation: Callable[[], nn.Module] = Square, bias: bool = True) -> nn.Module:
    layers: list[nn.Module] = []
    for n, m in pairwise(widths):
        layers += [nn.Linear(n, m, bias=bias), activation()]
    return nn.Sequential(*layers[:-1])


class GatedUnit(nn.Module):
    """down(activation(gate(x)) * up(x)), as in Llama."""

    def __init__(
        self, d: int, hidden: int, activation: Callable[[Tensor], Tensor], bias: bool = False
    ) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(d, hidden, bias=bias), nn.Linear(d, hidden, bias=bias)
        self.down, self.activation = nn.Linear(hidden, d, bias=bias), activation

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.gate(x)) * self.up(x))


class TorchGatedUnit(nn.Module):
    """torch's own GLU, the sigmoid one."""

    def __init__(self, d: int, hidden: int) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(d, 2 * hidden), nn.Linear(hidden, d)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(functional.glu(self.inner(x), dim=-1))


class SelfAttention(nn.Module):
    """nn.MultiheadAttention with its default biases."""

    def __init__(self, d: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.attention, self.causal = nn.MultiheadAttention(d, heads, batch_first=True), causal

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.causal else None
        return self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]


class Attention(nn.Module):
    """Attention with heads by view; `kind` is softmax, causal (torch's kernel) or lightning (no softmax)."""

    def __init__(self, d: int, heads: int, kind: str = "softmax", bias: bool = False) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(d, d, bias=bias) for _ in range(4))
        self.heads, self.kind = heads, kind

    def forward(self, x: Tensor) -> Tensor:
        t, d = x.shape
        q, k, v = (
            layer(x).view(t, self.heads, d // self.heads).transpose(0, 1)
            for layer in (self.query, self.key, self.value)
        )
        if self.kind == "causal":
            mixed = functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        else:
            scores = q @ k.transpose(-1, -2)
            mixed = (
                torch.softmax(scores / (d // self.heads) ** 0.5, -1) if self.kind == "softmax" else scores
            ) @ v
        return self.out(mixed.transpose(0, 1).reshape(t, d))


class Block(nn.Module):
    """Attention and a perceptron, each with a skip connection; `norm` makes what stands before both."""

    def __init__(
        self, d: int, hidden: int, heads: int = 4, kind: str = "lightning",
        activation: Callable[[], nn.Module] = Square, norm: Callable[[int], nn.Module] | None = None, bias: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.attention = Attention(d, heads, kind, bias)
        self.perceptron = perceptron(d, hidden, d, activation=activation)
        self.norms = nn.ModuleList(norm(d) if norm else nn.Identity() for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.perceptron(self.norms[1](x))


class Residual(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


class TiedAutoencoder(nn.Module):
    """The decoder is the transpose of the encoder."""

    def __init__(self, n: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, n))
        self.inner, self.outer = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.zeros(n))

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.sigmoid(functional.linear(x, self.weight, self.inner))
        return functional.linear(hidden, self.weight.T, self.outer)


class Reader(nn.Module):
    """Embeddings of given tokens with positions, attention, and an output tied to the embedding."""

    def __init__(self, words: int, d: int, tokens: int) -> None:
        super().__init__()
        self.embedding, self.position = nn.Embedding(words, d), nn.Embedding(tokens, d)
        self.attention = Attention(d, 2, "causal")
        self.register_buffer("tokens", torch.arange(tokens) % words)
        self.register_buffer("places", torch.arange(tokens))

    def forward(self) -> Tensor:
        x = self.embedding(self.tokens) + self.position(self.places)
        return functional.linear(x + self.attention(x), self.embedding.weight)


def conv_net(channels: int, activation: Callable[[], nn.Module] = Square, norm: bool = False) -> nn.Module:
    def batch_norm() -> list[nn.Module]:
        return [nn.BatchNorm2d(channels)] if norm else []

    return nn.Sequential(
        nn.Conv2d(1, channels, 3), *batch_norm(), activation(),
        nn.Conv2d(channels, channels, 3), *batch_norm(), activation(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(channels * 4, 3),
    ).eval()  # fmt: skip


def sequence_net(channels: int, activation: Callable[[], nn.Module] = nn.SiLU) -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, channels, 3), activation(), nn.Conv1d(channels, channels, 3), activation(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(channels, 3),
    )  # fmt: skip


def tanh_gelu() -> nn.Module:
    return nn.GELU(approximate="tanh")


MODULES: dict[str, Case] = {
    "perceptron, squares": (lambda: perceptron(5, 8, 4), ((5,),)),
    "perceptron, squares, no biases": (lambda: perceptron(5, 8, 8, 4, bias=False), ((5,),)),
    "perceptron, sigmoid": (lambda: perceptron(5, 8, 4, activation=nn.Sigmoid), ((5,),)),
    "perceptron, tanh, three layers": (lambda: perceptron(4, 6, 6, 3, activation=nn.Tanh), ((4,),)),
    "perceptron, SiLU": (lambda: perceptron(5, 8, 4, activation=nn.SiLU), ((5,),)),
    "perceptron, GELU (tanh)": (lambda: perceptron(5, 8, 4, activation=tanh_gelu), ((5,),)),
    "GLU of torch": (lambda: TorchGatedUnit(5, 6), ((5,),)),
    "SwiGLU": (lambda: GatedUnit(5, 6, functional.silu), ((5,),)),
    "bilinear GLU with biases": (lambda: GatedUnit(5, 6, lambda x: x, bias=True), ((5,),)),
    "residual perceptron": (lambda: nn.Sequential(*(Residual(perceptron(5, 4, 5)) for _ in range(2))), ((5,),)),
    "tied autoencoder": (lambda: TiedAutoencoder(6, 4), ((6,),)),
    "nn.MultiheadAttention(8, 2)": (lambda: SelfAttention(8, 2), ((1, 4, 8),)),
    "nn.MultiheadAttention(8, 2), causal": (lambda: SelfAttention(8, 2, causal=True), ((1, 4, 8),)),
    "causal attention, no biases": (lambda: Attention(8, 2, "causal"), ((4, 8),)),
    "lightning attention, 2 heads": (lambda: Attention(8, 2, "lightning"), ((4, 8),)),
    "block, squares": (lambda: Block(8, 12, 2), ((4, 8),)),
    "block, softmax and SiLU, biases": (lambda: Block(8, 12, 2, "softmax", nn.SiLU, bias=True), ((4, 8),)),
    "ConvNet, squares": (lambda: conv_net(3), ((1, 1, 8, 8),)),
    "ConvNet, BatchNorm and tanh": (lambda: conv_net(3, nn.Tanh, norm=True), ((1, 1, 8, 8),)),
    "Conv1d, SiLU, global average": (lambda: sequence_net(4), ((1, 2, 9),)),
    "embedding of given tokens": (lambda: Reader(4, 4, 6), ()),
    "block, RMSNorm and SwiGLU": (lambda: nn.Sequential(nn.RMSNorm(6), GatedUnit(6, 5, functional.silu)), ((6,),)),
    "block, LayerNorm, softmax, GELU": (
        lambda: Block(6, 8, 2, "softmax", tanh_gelu, nn.LayerNorm, bias=True), ((3, 6),)
    ),
}  # fmt: skip
"""Small modules: each rank is compared with that of float64."""

REFUSED: dict[str, Case] = {
    "perceptron, ReLU": (lambda: perceptron(5, 8, 4, activation=nn.ReLU), ((5,),)),
    "perceptron, exact GELU": (lambda: perceptron(5, 8, 4, activation=nn.GELU), ((5,),)),
    "max-pooling": (
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 2)),
        ((1, 1, 8, 8),),
    ),
    "dropout in training mode": (
        lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 2)),
        ((4,),),
    ),
}
"""Modules that are refused, with a sentence that names the layer."""

LARGE: dict[str, Case] = {
    "softmax attention, d = 8, 2 heads": (lambda: Attention(8, 2), ((4, 8),)),
    "softmax attention, d = 16, 4 heads": (lambda: Attention(16, 4), ((4, 16),)),
    "lightning attention, d = 16, 4 heads": (lambda: Attention(16, 4, "lightning"), ((4, 16),)),
    "nn.MultiheadAttention(8, 2), default biases": (lambda: SelfAttention(8, 2), ((1, 4, 8),)),
    "transformer block, squares, d = 16": (lambda: Block(16, 32), ((4, 16),)),
    "transformer block, softmax, d = 16": (lambda: Block(16, 32, kind="softmax"), ((4, 16),)),
    "GLU, d = 32": (lambda: GatedUnit(32, 25, torch.sigmoid), ((32,),)),
    "small ConvNet, squares": (lambda: conv_net(6), ((1, 1, 8, 8),)),
    "ConvNet, 8 channels": (lambda: nn.Sequential(conv_net(8)), ((1, 1, 8, 8),)),
    "perceptron 64-64-10": (lambda: perceptron(64, 64, 10), ((64,),)),
    "transformer block, d = 24": (lambda: Block(24, 56), ((4, 24),)),
    "transformer block, d = 32": (lambda: Block(32, 96), ((4, 32),)),
    "perceptron 128-128-10": (lambda: perceptron(128, 128, 10), ((128,),)),
    "transformer block, d = 48": (lambda: Block(48, 112), ((4, 48),)),
}  # fmt: skip
"""Larger modules, in the order of their sizes."""


def block_of(weights: int) -> Case:
    """A transformer block with squares of about so many weights: 4 d^2 + 2 * 2d * d."""
    d = 4 * max(1, round((weights / 8) ** 0.5 / 4))
    return lambda: Block(d, 2 * d), ((4, d),)
