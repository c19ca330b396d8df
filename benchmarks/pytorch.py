"""A causal transformer of two blocks in PyTorch: its dimension with m2bridge, beside eight lines of torch.func, in one run.

Run in an environment with the extra ``torch``: ``python benchmarks/pytorch.py [WIDTH HIDDEN]``. Prints answers and seconds.
"""

from __future__ import annotations

import sys
import time

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from m2bridge import dimension, from_torch

TOKENS = 4


class Block(nn.Module):
    """Causal attention with a skip, then a perceptron with squares and a skip."""

    def __init__(self, d: int, hidden: int, heads: int = 2) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down, self.heads = nn.Linear(d, hidden), nn.Linear(hidden, d), heads

    def forward(self, x: Tensor) -> Tensor:
        t, d = x.shape
        q, k, v = self.qkv(x).reshape(t, 3, self.heads, d // self.heads).permute(1, 2, 0, 3)
        mixed = functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        x = x + self.out(mixed.permute(1, 0, 2).reshape(t, d))
        return x + self.down(self.up(x) ** 2)


def by_torch_func(module: nn.Module, d: int) -> tuple[int, float]:
    """The rank of the Jacobian at random float64 weights and inputs, and the gap in its singular values."""
    module = module.double()
    weights = {name: torch.randn_like(w) / w.shape[-1] ** 0.5 for name, w in module.named_parameters()}
    count = sum(w.numel() for w in weights.values())
    samples = torch.randn(count // (TOKENS * d) + 10, TOKENS, d, dtype=torch.double)
    with sdpa_kernel(SDPBackend.MATH):  # the kernel that vmap knows
        rows = vmap(jacrev(lambda w, x: functional_call(module, w, x)), (None, 0))(weights, samples)
    jacobian = torch.cat([part.flatten(0, 2).flatten(1) for part in rows.values()], dim=1)
    values = torch.linalg.svdvals(jacobian)
    rank = int((values > values[0] * max(jacobian.shape) * 2.2e-16).sum())
    return rank, float(values[rank - 1] / values[rank]) if rank < len(values) else float("inf")


def main() -> None:
    d, hidden = (int(text) for text in sys.argv[1:3]) if len(sys.argv) > 2 else (12, 16)
    torch.manual_seed(0)
    module = nn.Sequential(Block(d, hidden), Block(d, hidden))
    print(
        f"{sum(p.numel() for p in module.parameters())} parameters, width {d}, hidden {hidden}, {TOKENS} tokens"
    )
    start = time.perf_counter()
    rank, gap = by_torch_func(module, d)
    theirs = time.perf_counter() - start
    print(f"torch.func: rank {rank} in float64, gap {gap:.1e}; {theirs:.1f} s")
    start = time.perf_counter()
    network = from_torch(module.float(), (TOKENS, d))
    traced = time.perf_counter() - start
    print(
        f"m2bridge: traced and compared, {len(network.recorded.instructions)} instructions; {traced:.1f} s",
        flush=True,
    )
    start = time.perf_counter()
    found = dimension(network, engine=False)
    ours = time.perf_counter() - start
    print(
        f"m2bridge: dimension {found.lower_bound} to {found.upper_bound}, {found.certainty.value}, "
        f"symmetries {found.symmetry_dim}; {ours:.1f} s"
    )
    print(found.statement)


if __name__ == "__main__":
    main()
