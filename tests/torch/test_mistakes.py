"""Mistakes people make: each is answered with a line that says what to do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from m2bridge import from_torch
from m2bridge.errors import DisagreementError, InputError, M2BridgeError, NotPolynomialError


class Written(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.l, self.function = nn.Linear(3, 3), function

    def forward(self, x):
        return self.function(self.l, x)


def block(*parts: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3), nn.Sequential(*parts))


CHANGES = {
    "relu": (block(nn.ReLU()), (3,), "1.0 (ReLU): relu", "x**2"),
    "gelu": (block(nn.GELU()), (3,), "1.0 (GELU): gelu", "x**2"),
    "norm-of-order-1": (Written(lambda f, x: f(x).norm(p=1)), (3,), "order 1", "Euclidean"),
    "dropout": (block(nn.Dropout(0.1)), (3,), "1.0 (Dropout)", "module.eval()"),
    "max-pool": (block(nn.MaxPool1d(2)), (1, 3), "1.0 (MaxPool1d)", "average pooling"),
    "batch-norm": (block(nn.BatchNorm1d(3)), (2, 3), "(BatchNorm1d)", "module.eval()"),
    "normalize": (
        Written(lambda f, x: functional.normalize(f(x), dim=-1)),
        (3,),
        "clamp_min",
        "x.norm(dim=-1",
    ),
    "root": (Written(lambda f, x: f(x) ** 0.25), (3,), "power 0.25", "integer"),
    "comparison": (Written(lambda f, x: torch.where(f(x) > 0, f(x), x)), (3,), "gt", "constant mask"),
    "largest": (
        Written(lambda f, x: f(x).amax(-1)),
        (3,),
        "itself (Written)",
        "only in a softmax",
    ),
    "index-of-the-largest": (
        Written(lambda f, x: x[f(x).max(-1).indices]),
        (3,),
        "the indices of the largest",
        "constant indices",
    ),
    "larger": (Written(lambda f, x: torch.max(f(x), x)), (3,), "maximum", "constant mask"),
    "distances": (Written(lambda f, x: torch.cdist(f(x), x)), (3, 3), "cdist", ".norm(dim=-1)"),
    "log-softmax": (
        Written(lambda f, x: functional.log_softmax(f(x), -1)),
        (3,),
        "log_softmax",
        "softmax itself",
    ),
    "float16-inside": (Written(lambda f, x: f(x).half().double()), (3,), "float16", "take it out of forward"),
    "inverse": (
        Written(lambda f, x: torch.linalg.inv(f(x))),
        (3, 3),
        "itself (Written)",
        "make the inverse a weight",
    ),
}


@pytest.mark.parametrize("mistake", CHANGES)
def test_non_polynomial_operations_are_refused_with_position_and_advice(mistake):
    module, shape, where, remedy = CHANGES[mistake]
    with pytest.raises(M2BridgeError) as caught:
        from_torch(module, shape)
    assert isinstance(caught.value, (NotPolynomialError, InputError))
    assert where in str(caught.value)
    assert remedy in str(caught.value)


USES = {
    "numpy-inside": (lambda: Written(lambda f, x: f(torch.tensor(np.square(x.numpy())))), (3,), "torch's functions"),
    "branch-on-values": (lambda: Written(lambda f, x: f(x) if x.sum() > 0 else x), (3,), "constant mask"),
    "float-of-a-value": (lambda: Written(lambda f, x: f(x) * float(x.sum())), (3,), "branch on shapes and constants"),
    "in-place-on-input": (lambda: Written(lambda f, x: f(x.add_(1))), (3,), "x = x + 1"),
    "wrong-shape": (lambda: nn.Linear(3, 3), (4,), "exact shape of its tensor"),
    "two-shapes": (lambda: nn.Linear(3, 3), [(3,), (3,)], "one for each input"),
    "not-a-size": (lambda: nn.Linear(3, 3), (0,), "positive integers"),
    "mixed-precision": (lambda: Written(lambda f, x: f(x.half())), (3,), "take .half()"),
    "missing-device": (lambda: Written(lambda f, x: f(x).to("cuda:7")), (3,), "module.cpu()"),
    "meta-device": (lambda: nn.Linear(3, 3, device="meta"), (3,), "to_empty"),
    "lazy": (lambda: nn.LazyLinear(3), (3,), "run the module once"),
    "a-class": (lambda: nn.Linear, (3,), "make one: Linear(...)"),
    "tokens": (lambda: nn.Embedding(4, 2), (3,), "keep them in a buffer"),
    "nothing-trainable": (lambda: nn.Linear(3, 3).requires_grad_(False), (3,), "requires_grad_()"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", USES)
def test_a_mistake_is_answered_with_what_to_do(mistake, capfd):
    make, shape, remedy = USES[mistake]
    with pytest.raises(InputError, match=r"^[^\n]+(\n  PyTorch reports: [^\n]+)?$") as caught:
        from_torch(make(), shape)
    assert remedy in str(caught.value)
    assert capfd.readouterr() == ("", ""), "PyTorch's own warnings are not for the user"


def test_a_forward_that_depends_on_something_else_is_found():
    """A number that changes with every call cannot be recorded; the comparison finds it."""
    count = iter(range(1, 100))
    with pytest.raises(DisagreementError, match="module"):
        from_torch(Written(lambda f, x: f(x) * next(count)), (3,))
