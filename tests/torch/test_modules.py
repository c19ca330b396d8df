"""Modules of the kind people write: each is compared with PyTorch at weights and inputs that from_torch has not seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from m2bridge import dimension, from_torch, symmetries


def agree(module: nn.Module, *shapes: tuple[int, ...]):
    """The network of a module, after a comparison at the module's own weights."""
    network = from_torch(module, list(shapes))
    module = module.double()
    names = {name.replace(".", "_"): p for name, p in module.named_parameters() if p.requires_grad}
    weights = {
        name: names[name if name in names else name.removeprefix("p")].detach().numpy()
        for name in network.parameters
    }
    rng = np.random.default_rng(7)
    inputs = [rng.normal(size=shape) for shape in shapes]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        said = module(*[torch.as_tensor(x) for x in inputs])
    finally:
        torch.set_default_dtype(before)
    said = said if isinstance(said, tuple) else (said,)
    theirs = np.concatenate([t.detach().numpy().ravel() for t in said])
    given = inputs[0] if len(inputs) == 1 else np.concatenate([x.ravel() for x in inputs])
    np.testing.assert_allclose(
        np.asarray(network.forward(weights, given)).ravel(), theirs, rtol=1e-9, atol=1e-10
    )
    return network


class Written(nn.Module):
    """A module around one function of a linear layer and the input."""

    def __init__(self, function, d: int = 3) -> None:
        super().__init__()
        self.l, self.function = nn.Linear(d, d), function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.l, x)


class Square(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x**2


def test_linear_layers_with_bias_and_a_square():
    network = agree(nn.Sequential(nn.Linear(2, 3), Square(), nn.Linear(3, 1, bias=False)), (2,))
    assert network.parameters == {"p0_weight": (3, 2), "p0_bias": (3,), "p2_weight": (1, 3)}
    assert network.polynomial


def test_multihead_attention():
    network = agree(nn.MultiheadAttention(4, 2, batch_first=True), (1, 3, 4), (1, 3, 4), (1, 3, 4))
    assert network.parameter_count == 80
    assert not network.polynomial


def test_multihead_self_attention_with_a_causal_mask():
    class Causal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True, bias=False)
            self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(3))

        def forward(self, x: Tensor) -> Tensor:
            return self.attention(x, x, x, attn_mask=self.mask, need_weights=False)[0]

    network = agree(Causal(), (1, 3, 4))
    x = np.random.default_rng(0).normal(size=(1, 3, 4))
    weights = {
        name: np.random.default_rng(1).normal(size=shape) for name, shape in network.parameters.items()
    }
    first = network.forward(weights, x)[0, 0]
    x[0, 1:] += 1
    np.testing.assert_array_equal(network.forward(weights, x)[0, 0], first)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Conv1d(2, 3, 2), (1, 2, 5)),
        (nn.Conv1d(2, 4, 2, groups=2, dilation=2), (2, 5)),
        (nn.Conv2d(1, 2, 3, padding=1, stride=2), (1, 1, 4, 4)),
        (nn.Conv2d(2, 2, (2, 3), padding="same"), (1, 2, 4, 3)),
        (
            nn.Sequential(nn.Conv2d(1, 2, 2), Square(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(2, 1)),
            (1, 1, 3, 3),
        ),
    ],
)
def test_convolutions(module, shape):
    assert agree(module, shape).polynomial


@pytest.mark.parametrize(
    "moved",
    [
        lambda y: y.unfold(0, 2, 1),
        lambda y: y[[0, 2]][:, 1:],
        lambda y: torch.gather(y, 0, torch.tensor([[0, 2, 1]])),
        lambda y: torch.zeros(4, 3).scatter(0, torch.tensor([[3, 0, 1], [0, 1, 2]]), y),
        lambda y: torch.zeros(3, 3).index_put((torch.tensor([1]),), y[0]),
        lambda y: torch.softmax(
            (y @ y.T).masked_fill(torch.ones(3, 3).triu(1).bool(), -torch.inf)[:2, None].mT, -2
        ),
    ],
)
def test_entries_that_are_only_moved(moved):
    agree(Written(lambda f, x: moved(f(x))), (3, 3))


def test_bilinear():
    assert agree(nn.Bilinear(2, 3, 2), (2,), (3,)).polynomial


def test_tied_weights_occur_once():
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down, self.up = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
            self.up.weight = self.down.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.up(self.down(x) ** 2)

    network = from_torch(Tied(), (3,))
    assert list(network.parameters) == ["down_weight"]
    assert agree(Tied(), (3,)).parameter_count == 9


def test_frozen_parameters_and_buffers_are_exact_constants():
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(2, 2, bias=False), nn.Linear(2, 1, bias=False)
            self.first.weight = nn.Parameter(torch.tensor([[0.5, -3.0], [0.1, 2.0]]), requires_grad=False)
            self.register_buffer("shift", torch.tensor([7.0, 0.25]))

        def forward(self, x: Tensor) -> Tensor:
            return self.last((self.first(x) + self.shift) ** 2)

    network = from_torch(Frozen(), (2,))
    assert network.parameters == {"last_weight": (1, 2)}
    assert "7 1/4" in network.recorded.text
    assert "13421773/134217728" in network.recorded.text, "0.1 in float32 is this dyadic number"
    assert any("dyadic" in note for note in network.notes)


def test_causal_attention_of_torch_itself():
    network = agree(
        Written(lambda f, x: functional.scaled_dot_product_attention(f(x), x, x, is_causal=True), 4),
        (1, 3, 4),
    )
    assert "scale 1/2" in network.recorded.text


def normalised(e: Tensor) -> Tensor:
    return e / e.sum(-1, keepdim=True)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda f, x: x + f(x) ** 3, (3,)),
        (lambda f, x: (f(x) @ x.mT).masked_fill(torch.ones(3, 3).triu(1).bool(), float("-inf")).softmax(-1) @ x, (3, 3)),
        (lambda f, x: ((f(x) @ x.mT + torch.full((3, 3), float("-inf")).triu(1)) / 2).softmax(-1) @ x, (3, 3)),
        (lambda f, x: functional.silu(f(x)) + torch.tanh(x) * torch.sigmoid(f(x)), (3,)),
        (lambda f, x: torch.sinh(f(x)) + torch.cosh(x) * torch.expm1(f(x)), (3,)),
        (lambda f, x: torch.lerp(x, f(x), torch.sigmoid(f(x))) + torch.lerp(x, f(x), 0.25), (3,)),
        (lambda f, x: normalised(torch.exp(f(x) - f(x).amax(-1, keepdim=True))), (2, 3)),
        (lambda f, x: normalised(torch.exp(f(x) - f(x).max(-1, keepdim=True).values)), (2, 3)),
        (lambda f, x: normalised(torch.exp(f(x) - f(x).max())), (3,)),
        (lambda f, x: torch.einsum("ij,kj,kl->il", f(x), x, x), (2, 3)),
        (lambda f, x: torch.stack([f(x)[1], x[0]]).flip(0).roll(1, 0)[:, ::2].reshape(4).unsqueeze(0), (2, 3)),
        (lambda f, x: torch.cat(f(x).chunk(2, -2), -1).permute(1, 0) * torch.arange(6.0)[:, None], (2, 3)),
        (lambda f, x: f(x).mean(0, keepdim=True) - x.sum(-1, keepdim=True) * x.prod(-1, keepdim=True), (2, 3)),
        (lambda f, x: 1 / (1 + f(x) ** 2) + x**-2, (3,)),
        (lambda f, x: functional.pad(f(x), (1, 2))[..., 1:4].cumsum(-1).tril(), (3, 3)),
        (lambda f, x: f(f.weight.diagonal()) * x, (3,)),
        (lambda f, x: f(x).var() + x.var(0, correction=0) * torch.var(f(x), 1, False) + x.cumprod(0), (3, 3)),
        (lambda f, x: torch.linalg.det(f.weight) * torch.det(x[:2, :2]) * f(x), (3, 3)),
    ],
)  # fmt: skip
def test_functions_of_torch(function, shape):
    agree(Written(function), shape)


def test_a_weight_may_be_an_output_beside_others():
    network = agree(Written(lambda f, x: (f(x), f.bias)), (3,))
    assert list(network.recorded.output_shapes.values()) == [(3,), (3,)]


def test_filling_a_new_tensor_in_place():
    def filled(f, x):
        z = torch.zeros(2, 3)
        z[0] = f(x)
        z[1, :2] = x[1:]
        return z

    assert agree(Written(filled), (3,)).polynomial


def test_constant_embeddings_and_positions():
    class Embedded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(5, 3)
            self.register_buffer("tokens", torch.tensor([4, 0, 4]))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.table(self.tokens)

    assert agree(Embedded(), (3, 3)).parameters == {"table_weight": (5, 3)}


def test_batch_normalisation_in_evaluation_mode_is_affine():
    network = agree(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), Square()).eval(), (2, 3))
    assert network.polynomial


def test_half_precision_gives_a_note():
    network = from_torch(nn.Linear(2, 2).half(), (2,))
    assert any("float16" in note for note in network.notes)


def test_unused_parameters_give_a_note():
    module = Written(lambda f, x: x @ f.weight)
    network = from_torch(module, (3,))
    assert any("l_bias" in note for note in network.notes)


def test_dimension_of_a_module_of_torch():
    module = nn.Sequential(nn.Linear(2, 3, bias=False), Square(), nn.Linear(3, 1, bias=False))
    answer = dimension(from_torch(module, (2,)), engine=False)
    assert (answer.image_dim, answer.certainty.value) == (3, "proved"), "all quadratic forms in two variables"


def test_gelu_in_its_tanh_form():
    network = agree(nn.Sequential(nn.Linear(2, 3), nn.GELU(approximate="tanh"), nn.Linear(3, 1)), (2,))
    answer = dimension(network, engine=False)
    assert (answer.image_dim, answer.certainty.value) == (13, "proved")


def test_embeddings_of_given_tokens_are_weights():
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.out = nn.Embedding(3, 2), nn.Linear(2, 2, bias=False)
            self.register_buffer("tokens", torch.tensor([0, 2, 2]))

        def forward(self) -> Tensor:
            return self.out(self.embedding(self.tokens))

    network = from_torch(Reader(), [])
    assert network.parameter_count == 10
    # outputs are the products of W with two vectors: 4 numbers
    assert dimension(network, engine=False).image_dim == 4


class Heads(nn.Module):
    """Attention as nanoGPT writes it without a kernel, with a causal mask in a buffer; or with heads that share keys."""

    def __init__(self, shared: bool) -> None:
        super().__init__()
        self.qkv, self.shared = nn.Linear(4, 8 if shared else 12), shared
        self.register_buffer("mask", torch.tril(torch.ones(3, 3)).view(1, 3, 3))

    def forward(self, x: Tensor) -> Tensor:
        sizes = (4, 2, 2) if self.shared else (4, 4, 4)
        q, k, v = (y.view(3, -1, 2).transpose(0, 1) for y in self.qkv(x).split(sizes, dim=-1))
        if self.shared:
            y = functional.scaled_dot_product_attention(q[None], k[None], v[None], enable_gqa=True)[0]
        else:
            y = (q @ k.mT).masked_fill(self.mask == 0, float("-inf")).softmax(-1) @ v
        return y.transpose(0, 1).reshape(3, 4)


@pytest.mark.parametrize("shared", [False, True])
def test_symmetries_of_keys_under_a_mask_and_of_shared_keys(shared: bool) -> None:
    """The key biases change nothing, and GL(2) acts on queries and keys, one for each head of keys."""
    groups = symmetries(from_torch(Heads(shared), (3, 4)), engine=False).groups
    assert {(group.name, group.dim) for group in groups} == (
        {("GL(2)", 4), ("R^2", 2)} if shared else {("GL(2)^2", 8), ("R^4", 4)}
    )
