"""One ``nn.Module`` for each built-in family is the family's own function, by evaluation at random points."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from m2bridge import from_torch
from m2bridge.families import parse_spec
from m2bridge.linear.residues import Mod

P = 8_388_593


class Lightning(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.Q, self.K, self.V = (nn.Parameter(torch.randn(n, 3)) for n in (2, 2, 1))

    def forward(self, X: Tensor) -> Tensor:
        return self.V @ X @ (self.K @ X).mT @ self.Q @ X


class Deep(nn.Module):
    """Layers of attention with columns for tokens: plain, with skips, with heads, or normalised."""

    def __init__(self, *, heads: int = 0, layers: int = 2, skip: bool = False, softmax: bool = False) -> None:
        super().__init__()
        lead = (heads,) if heads else ()
        for i in range(1, layers + 1):
            for letter, rows in (("Q", 2), ("K", 2), ("V", 3)):
                setattr(self, f"{letter}{i}", nn.Parameter(torch.randn(*lead, rows, 3)))
        self.heads, self.layers, self.skip, self.softmax = heads, layers, skip, softmax

    def forward(self, X: Tensor) -> Tensor:
        for i in range(1, self.layers + 1):
            Q, K, V = (getattr(self, f"{letter}{i}") for letter in "QKV")
            scores = (K @ X).mT @ (Q @ X)
            attention = functional.softmax(scores, -1).mT if self.softmax else scores
            output = V @ (X @ attention)
            output = output.sum(0) if self.heads else output
            X = X + output if self.skip else output
        return X


class Perceptron(nn.Module):
    def __init__(self, r: int, *widths: int) -> None:
        super().__init__()
        for i, (before, after) in enumerate(pairwise(widths), start=1):
            setattr(self, f"W{i}", nn.Parameter(torch.randn(after, before)))
        self.r, self.layers = r, len(widths) - 1

    def forward(self, x: Tensor) -> Tensor:
        x = functional.linear(x, self.W1)
        for i in range(2, self.layers + 1):
            x = functional.linear(x.pow(self.r), getattr(self, f"W{i}"))
        return x


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w2, self.w3 = (nn.Parameter(torch.randn(n)) for n in (3, 2, 2))

    def forward(self, x: Tensor) -> Tensor:
        for w, stride in ((self.w1, 2), (self.w2, 1), (self.w3, 1)):
            x = functional.conv1d(x[None, None], w[None, None], stride=stride)[0, 0]
            x = x**2 if w is not self.w3 else x
        return x


class Weights(nn.Module):
    """Parameters with the names and shapes of a family."""

    def __init__(self, **shapes: tuple[int, ...]) -> None:
        super().__init__()
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.randn(*shape)))


class Causal(Weights):
    """Self-attention under a mask, with Q = K where there is no Q, with positions where there are any."""

    def __init__(self, r: int = 1, **shapes: tuple[int, ...]) -> None:
        super().__init__(**shapes)
        self.r = r
        self.register_buffer("mask", torch.triu(torch.ones(2, 2)))

    def forward(self, X: Tensor) -> Tensor:
        X = X + self.P if hasattr(self, "P") else X
        Q = getattr(self, "Q1", self.K1)
        scores = ((self.K1 @ X).mT @ (Q @ X)).pow(self.r)
        return self.V1 @ X @ (scores * self.mask)


class Block(Weights):
    """A transformer block with two heads; softmax by PyTorch's own attention."""

    def __init__(self, softmax: bool = False, **shapes: tuple[int, ...]) -> None:
        super().__init__(**shapes)
        self.softmax = softmax
        self.register_buffer("mask", torch.triu(torch.ones(2, 2)))

    def forward(self, X: Tensor) -> Tensor:
        if self.softmax:  # tokens as rows; the one that asks is multiplied with K, as in Equation 15
            asks, answers, values = ((W @ X).mT for W in (self.K1, self.Q1, self.V1))
            heads = functional.scaled_dot_product_attention(asks, answers, values, is_causal=True, scale=1.0)
            X = X + heads.mT.sum(0)
        else:
            X = X + (self.V1 @ X @ ((self.K1 @ X).mT @ (self.Q1 @ X) * self.mask)).sum(0)
        return X + self.U1 @ (self.W1 @ X).square()


BLOCK = {"Q1": (2, 1, 2), "K1": (2, 1, 2), "V1": (2, 2, 2), "W1": (3, 2), "U1": (2, 3)}


class RankOnes(Weights):
    def forward(self, x: Tensor) -> Tensor:
        U = [part @ factor for factor, part in zip(self.parameters(), (x[:2], x[2:5], x[5:]), strict=True)]
        return (U[0] * U[1] * U[2]).sum()[None]


POLYNOMIAL = [
    ("lightning(d=3,dp=1,a=2,t=2)", Lightning, (3, 2)),
    ("deep-lightning(d=[3,3,3],a=[2,2],t=2)", Deep, (3, 2)),
    ("multi-head(d=3,dp=3,a=2,heads=2,t=2)", lambda: Deep(heads=2, layers=1), (3, 2)),
    ("skip-lightning(d=[3,3,3],a=[2,2],t=2)", lambda: Deep(skip=True), (3, 2)),
    ("mlp(widths=[2,3,3,2],r=3)", lambda: Perceptron(3, 2, 3, 3, 2), (2,)),
    ("linear(widths=[3,2,3])", lambda: Perceptron(1, 3, 2, 3), (3,)),
    ("convolution(filters=[3,2,2],r=2,strides=[2,1,1])", Convolution, (7,)),
    (
        "attention(d=[3,2],a=2,t=2,causal=true,r=2)",
        lambda: Causal(r=2, Q1=(2, 3), K1=(2, 3), V1=(2, 3)),
        (3, 2),
    ),
    (
        "attention(d=[3,2],a=2,t=2,causal=true,tied=true,positions=true)",
        lambda: Causal(P=(3, 2), K1=(2, 3), V1=(2, 3)),
        (3, 2),
    ),
    ("transformer(d=2,a=1,t=2,heads=2,hidden=3,r=2,causal=true)", lambda: Block(**BLOCK), (2, 2)),
]


@pytest.mark.parametrize(
    ("spec", "make", "shape"), POLYNOMIAL, ids=[spec.split("(")[0] for spec, _, _ in POLYNOMIAL]
)
def test_a_module_of_a_polynomial_family_is_that_family(spec, make, shape):
    model, own = parse_spec(spec), from_torch(make(), shape)
    assert own.polynomial
    assert own.parameters == model.parameters
    assert own.input_shape == model.input_shape
    rng = np.random.default_rng(1)
    for _ in range(5):
        weights = {name: Mod(w, P) for name, w in model.draw_weights(rng, P).items()}
        x = Mod(rng.integers(0, P, size=shape), P)
        theirs = model.forward(weights, x).values
        assert (own.forward(weights, x).values == theirs).all()
        assert theirs.any()


def test_a_module_of_normalised_attention_is_that_family():
    model, own = parse_spec("softmax(d=[3,3,3],a=[2,2],t=3)"), from_torch(Deep(softmax=True), (3, 3))
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3, 3))
    weights = {name: rng.normal(size=shape) for name, shape in model.parameters.items()}
    assert not own.polynomial
    np.testing.assert_allclose(own.forward(weights, x), model.forward(weights, x), rtol=1e-10)


def test_a_module_of_a_causal_transformer_is_that_family():
    model = parse_spec("transformer(d=2,a=1,t=2,heads=2,hidden=3,r=2,causal=true,softmax=true)")
    network = from_torch(Block(softmax=True, **BLOCK), (2, 2))
    rng = np.random.default_rng(2)
    weights = {name: rng.normal(size=shape) for name, shape in model.parameters.items()}
    x = rng.normal(size=(2, 2))
    np.testing.assert_allclose(network.forward(weights, x), model.forward(weights, x), rtol=1e-10)


def test_a_multilinear_module_has_the_tensor_for_coefficients():
    model = parse_spec("cp(sizes=[2,3,2],rank=2)")
    network = from_torch(RankOnes(U1=(2, 2), U2=(3, 2), U3=(2, 2)), (7,))
    drawn = model.draw_weights(np.random.default_rng(3), P)
    weights = {name: Mod(w, P) for name, w in drawn.items()}
    entries = model.coordinates(weights).values.reshape(model.sizes)
    assert network.parameters == model.parameters
    units = np.eye(7, dtype=np.int64)
    for i, j, k in np.ndindex(*model.sizes):
        x = Mod(units[i] + units[2 + j] + units[5 + k], P)
        assert network.forward(weights, x).values.tolist() == [entries[i, j, k]]
