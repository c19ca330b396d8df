"""The graph that ``torch.export`` writes: names, places and arguments of its nodes, and what PyTorch's errors mean for a user."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from m2bridge.errors import NotPolynomialError
from m2bridge.models.aten import OPERATIONS, REARRANGING, REFUSED, Masked
from m2bridge.programs.instructions import NAME
from m2bridge.programs.recording import Recorded


def operation_name(target: Any) -> str:
    """The name of an operation without its overload: ``linear`` of ``aten.linear.default``."""
    name = getattr(getattr(target, "_schema", None), "name", None) or getattr(target, "__name__", str(target))
    return str(name).rpartition("::")[2]


def mapped(value: Any, of: Callable[[Any], Any], kind: type) -> Any:
    """Nested arguments of a node with the values of other nodes put in."""
    if isinstance(value, kind):
        return of(value)
    if isinstance(value, (list, tuple)):
        return [mapped(item, of, kind) for item in value]
    if isinstance(value, dict):
        return {key: mapped(item, of, kind) for key, item in value.items()}
    return value


def holds_recorded(value: Any) -> bool:
    """Whether nested arguments hold an array that depends on weights or inputs."""
    if isinstance(value, (list, tuple)):
        return any(holds_recorded(item) for item in value)
    if isinstance(value, dict):
        return any(holds_recorded(item) for item in value.values())
    return isinstance(value, (Recorded, Masked))


def arrays(value: Any, torch: Any) -> Any:
    """Nested arguments with NumPy arrays for tensors."""
    return mapped(value, lambda tensor: tensor.detach().cpu().numpy(), torch.Tensor)


def applied(base: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What an operation makes of recorded arrays."""
    if base in REFUSED:
        raise NotPolynomialError(f"{base} cannot be recorded; {REFUSED[base]}")
    if base not in OPERATIONS:
        raise NotPolynomialError(
            f"{base} is not among the operations that are understood; write it with +, *, @, ** and sums"
        )
    dtype = str(kwargs.get("dtype") or "torch.float64")
    if dtype not in ("torch.float64", "torch.double"):
        raise NotPolynomialError(
            f"a conversion to {dtype.removeprefix('torch.')} rounds values, which is not a polynomial; take it out of forward"
        )
    if base in REARRANGING and isinstance(args[0], Masked):
        move = REARRANGING[base]
        kept = np.broadcast_to(args[0].kept, args[0].scores.shape)
        return Masked(move(args[0].scores, *args[1:]), move(kept, *args[1:]))
    if any(isinstance(item, Masked) for item in args) and base not in _OF_MASKED:
        raise NotPolynomialError(f"-infinity is understood only before a softmax, not in {base}")
    return OPERATIONS[base](*args, **kwargs)


_OF_MASKED = ("add", "mul", "div", "exp", "softmax", "_softmax")


def place_of_node(node: Any) -> str:
    """Where a node stands: the submodule's path and class, and the line of forward."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, kind = stack[-1] if stack else ("", "")
    kind = (kind if isinstance(kind, str) else kind.__name__).rpartition(".")[2]
    lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    own = [f"{file.rpartition('/')[2]}, line {line}" for file, line in lines if "/torch/" not in file]
    where = f"{path} ({kind})" if path else f"the module itself ({kind})"
    return f"{where}, {own[-1]}" if own else where


def first_line(error: Exception) -> str:
    """The first line of an error's message that says something, cut to 300 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0][:300]


def free_name(path: str, taken: Any) -> str:
    """A name for a program from a path: underscores for dots; a number is added when it is taken."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", path)[:56]
    name = name if NAME.fullmatch(name) else f"p{name}"
    found, k = name, 2
    while found in taken:
        found, k = f"{name}_{k}", k + 1
    return found


ADVICE = (
    (
        r"data-dependent|GuardOnDataDependent|control flow",
        "forward branches on values of weights or inputs; branch on shapes and constants only, "
        "or use torch.where with a constant mask",
    ),
    (
        r"numpy",
        "forward leaves PyTorch for NumPy, where nothing can be followed; write it with torch's functions",
    ),
    (
        r"cuda|NVIDIA|mps|same device|not compiled with",
        "forward moves values to another device; take .to(device) and .cuda() out of forward, "
        "and call module.cpu() before from_torch",
    ),
    (
        r"positional argument|unexpected keyword|missing \d+ required",
        "forward takes another number of inputs than there are shapes ({shapes}); give a list of shapes, one for each input",
    ),
    (
        r"tensor for argument #\d 'indices'|scalar types? (Long|Int)|tensors used as indices",
        "forward takes whole numbers, such as tokens, for its input; keep them in a buffer, "
        "and give the embedded vectors as input",
    ),
    (
        r"same dtype|(Half|Float|BFloat16|dtype).*(but found|!=|mismatch|expected)|(expected|found).*(Half|Float|dtype)",
        "forward mixes precisions; take .half(), .float() and dtype= out of it, since the module is read in float64",
    ),
    (
        r"cannot be multiplied|size mismatch|must match|shape|Expected .*(input|tensor|dim)|channels|invalid for|dimension",
        "the input of shape {shapes} does not fit forward; input_shape is the exact shape of its tensor, batch axis included",
    ),
)
"""What stands in PyTorch's error, and what to change then."""
