"""Norms: modules with square roots against PyTorch's values, and their dimensions against float64 Jacobians of torch.func."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from m2bridge import checker, dimension, from_torch
from m2bridge.programs.ranks import generic_rank


class Written(nn.Module):
    """A module around one function of a linear layer and the input."""

    def __init__(self, function: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.l, self.function = nn.Linear(3, 3), function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.l, x)


VALUES: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "LayerNorm": (nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4)), (2, 3)),
    "LayerNorm on two axes": (nn.Sequential(nn.Linear(3, 4), nn.LayerNorm((2, 4))), (2, 3)),
    "LayerNorm without gains": (nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4, elementwise_affine=False)), (3,)),
    "LayerNorm without biases": (nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4, bias=False)), (3,)),
    "RMSNorm": (nn.Sequential(nn.Linear(3, 4), nn.RMSNorm(4)), (3,)),
    "RMSNorm with eps": (nn.Sequential(nn.Linear(3, 4), nn.RMSNorm(4, eps=0.5)), (2, 3)),
    "GroupNorm": (nn.Sequential(nn.Conv1d(1, 4, 2), nn.GroupNorm(2, 4)), (1, 1, 3)),
    "layer_norm": (Written(lambda f, x: functional.layer_norm(f(x), (3,), eps=0.1)), (2, 3)),
    "sqrt": (Written(lambda f, x: torch.sqrt(1 + f(x) ** 2)), (3,)),
    "rsqrt": (Written(lambda f, x: x * torch.rsqrt(f(x).square().mean(-1, keepdim=True) + 1e-3)), (2, 3)),
    "norm": (Written(lambda f, x: f(x) / f(x).norm(dim=-1, keepdim=True)), (2, 3)),
    "std": (Written(lambda f, x: f(x) / f(x).std(-1, keepdim=True)), (2, 3)),
    "power": (Written(lambda f, x: (1 + f(x) ** 2) ** -0.5), (3,)),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_a_norm_is_recorded(name: str) -> None:
    """from_torch compares the values of the program with those of the module."""
    module, shape = VALUES[name]
    assert from_torch(module, shape).program.roots


class Residual(nn.Module):
    """A block of attention and a perceptron behind norms, with residual connections."""

    def __init__(self, d: int, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.first, self.second = norm(d), norm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 5), nn.SiLU(), nn.Linear(5, d))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.first(x)).chunk(3, -1)
        x = x + self.out(functional.scaled_dot_product_attention(q[None], k[None], v[None])[0])
        return x + self.mlp(self.second(x))


DIMENSIONS: dict[str, tuple[nn.Module, tuple[int, ...], int]] = {
    "RMSNorm": (nn.Sequential(nn.Linear(4, 4, bias=False), nn.RMSNorm(4, eps=0.1), nn.Linear(4, 3)), (4,), 20),
    "LayerNorm": (nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.Linear(5, 3)), (4,), 30),
    "LayerNorm, eps 0": (nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5, eps=0.0), nn.Linear(5, 3)), (4,), 30),
    "LayerNorm and SiLU": (
        nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 5), nn.SiLU(), nn.Linear(5, 4), nn.LayerNorm(4)), (4,), 40
    ),
    "block with LayerNorm": (Residual(4, nn.LayerNorm), (2, 4), 50),
    "block with RMSNorm": (Residual(4, lambda d: nn.RMSNorm(d, eps=0.1)), (2, 4), 50),
}  # fmt: skip


def float_rank(module: nn.Module, shape: tuple[int, ...], samples: int) -> int:
    """The rank of the Jacobian by torch.func in float64, at random weights and inputs, with a gap of 1e4."""
    rng = np.random.default_rng(3)
    module = module.double()
    weights = {
        name: torch.as_tensor(rng.normal(size=tuple(p.shape))) / max(1, p.shape[-1]) ** 0.5
        for name, p in module.named_parameters()
    }
    inputs = torch.as_tensor(rng.normal(size=(samples, *shape)))

    def outputs(given: dict[str, Tensor]) -> Tensor:
        return torch.cat([torch.func.functional_call(module, given, (x,)).reshape(-1) for x in inputs])

    parts = torch.func.jacrev(outputs)(weights)
    matrix = torch.cat([part.reshape(part.shape[0], -1) for part in parts.values()], 1).numpy()
    norms = np.linalg.norm(matrix, axis=0)
    matrix = (
        matrix[:, norms > 1e-12 * norms.max()] / norms[norms > 1e-12 * norms.max()]
    )  # key biases have zeros
    values = np.append(np.linalg.svd(matrix, compute_uv=False), 0.0)
    gaps = values[:-1] / np.maximum(values[1:], 1e-15 * values[0])
    rank = int(gaps.argmax()) + 1
    assert gaps[rank - 1] > 1e4
    return rank


@pytest.mark.parametrize("name", DIMENSIONS)
def test_the_rank_is_that_of_torch(name: str) -> None:
    module, shape, samples = DIMENSIONS[name]
    found = generic_rank(from_torch(module, shape).program)
    assert found.heuristic is None
    assert found.rank == float_rank(module, shape, samples)


def test_a_norm_without_eps_has_that_of_its_precision() -> None:
    text = from_torch(nn.Sequential(nn.Linear(3, 3), nn.RMSNorm(3)), (3,)).program.text
    assert "1/8388608" in text  # 2^-23, of float32


class CausalBlock(nn.Module):
    """A block of `nn.MultiheadAttention` with a causal mask and a perceptron, both behind LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(4), nn.LayerNorm(4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(4, 5), nn.SiLU(), nn.Linear(5, 4))

    def forward(self, x: Tensor) -> Tensor:
        y, mask = self.first(x), torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.second(x))


class Stream(nn.Module):
    """A residual stream between two linear layers, with norms before what reads it."""

    def __init__(self, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(5, 4, bias=False), nn.Linear(4, 3)
        self.first, self.last = norm(4), norm(4)
        self.mlp = nn.Sequential(nn.Linear(4, 5), nn.SiLU(), nn.Linear(5, 4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        return self.head(self.last(x + self.mlp(self.first(x))))


@pytest.mark.parametrize(
    "norm", [nn.LayerNorm, lambda d: nn.RMSNorm(d, eps=0.1)], ids=["LayerNorm", "RMSNorm"]
)
def test_rotations_of_a_residual_stream_have_a_certificate(
    norm: Callable[[int], nn.Module], tmp_path: Path
) -> None:
    module = Stream(norm)
    answer = dimension(from_torch(module, (5,)), engine=False)
    assert (answer.image_dim, answer.certainty) == (float_rank(module, (5,), 40), "proved")
    assert checked(answer.certificate, tmp_path)


def checked(certificate: object, directory: Path) -> bool:
    """Return whether the checker accepts a certificate within its default limit."""
    path = directory / "certificate.json"
    path.write_text(json.dumps(certificate))
    command = [sys.executable, "-I", checker.__file__, str(path)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_a_causal_block_with_layer_norm_is_verified_within_the_default_limit(tmp_path: Path) -> None:
    """145 weights, and 58 symmetries.

    Two GL(2) for each head (16), norms' gains (8) and biases (8), biases of keys (4) and values (4), rows of weights behind
    centred arrays (12 + 5), and the bias of the attention's output, undone by the last one (1).
    """
    answer = dimension(from_torch(CausalBlock(), (1, 2, 4)), engine=False)
    assert (answer.image_dim, answer.certainty) == (145 - 58, "proved")
    assert checked(answer.certificate, tmp_path)
