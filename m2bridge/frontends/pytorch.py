"""Record a PyTorch module: ``torch.export`` returns the graph of its operations, which is evaluated on recorded arrays.

Trainable parameters are the weights; frozen ones and buffers are exact constants. Everything that depends on neither weights nor
inputs is computed by PyTorch itself, in float64. The recorded program is compared with the module at random weights and inputs
before it is returned.
"""

from __future__ import annotations

import copy
import io
import logging
import operator
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any

import numpy as np

from m2bridge.errors import DisagreementError, InputError, M2BridgeError, NotPolynomialError
from m2bridge.frontends.aten import REFUSED, Masked, applied
from m2bridge.frontends.recording import Recorded, Recording, record_call
from m2bridge.programs.evaluation import run
from m2bridge.programs.instructions import NAME, Shape
from m2bridge.programs.program import Program

_WHOLE = (
    "linear",
    "matmul",
    "einsum",
    "bilinear",
    "softmax",
    "scaled_dot_product_attention",
    "silu",
    "gelu",
    "square",
    "layer_norm",
    "rms_norm",
    "group_norm",
    "linalg_vector_norm",
    "lerp",
    *REFUSED,
)
"""Operations that are not decomposed: they are recorded as they are written, or refused by this name."""
_LARGEST_DIFFERENCE = 1e-8
"""Outputs of the module and of its program in float64 may differ by this, relative to their size."""
_COMPARED_DRAWS = 2
"""Random weights and inputs at which both are compared."""
_ADVICE = {
    r"data-dependent|GuardOnDataDependent|control flow":
        "forward branches on values of weights or inputs; branch on shapes and constants only, "
        "or use torch.where with a constant mask",
    r"numpy":
        "forward leaves PyTorch for NumPy, which cannot be recorded; write it with torch's functions",
    r"cuda|NVIDIA|mps|same device|not compiled with":
        "forward moves values to another device; take .to(device) and .cuda() out of forward, "
        "and call module.cpu() before from_torch",
    r"positional argument|unexpected keyword|missing \d+ required":
        "the number of inputs of forward differs from the number of shapes ({shapes}); give a list of shapes, one for each input",
    r"tensor for argument #\d 'indices'|scalar types? (Long|Int)|tensors used as indices":
        "forward takes integers, such as tokens, as input; keep them in a buffer, "
        "and give the embedded vectors as input",
    r"same dtype|(Half|Float|BFloat16|dtype).*(but found|!=|mismatch|expected)|(expected|found).*(Half|Float|dtype)":
        "forward mixes precisions; take .half(), .float() and dtype= out of it, since the module is read in float64",
    r"cannot be multiplied|size mismatch|must match|shape|Expected .*(input|tensor|dim)|channels|invalid for|dimension":
        "the input of shape {shapes} does not fit forward; input_shape is the exact shape of its tensor, batch axis included",
}  # fmt: skip
"""Patterns of PyTorch's errors, and what to change."""


def record_module(
    module: Any, input_shape: int | Sequence[int] | Sequence[Sequence[int]]
) -> tuple[Program, tuple[str, ...]]:
    """Record a ``torch.nn.Module`` as a program, with notes; :func:`~m2bridge.families.user_network.from_torch` documents it."""
    torch = pytorch()
    shapes = _shapes(input_shape)
    _check(torch, module)
    with _quiet_float64(torch):
        traced = _Traced(torch, module, shapes)
        recording = traced.recorded()
        traced.compare(recording)
    notes = [re.sub(r" \(aten\.py, line \d+\)", "", note) for note in recording.notes]
    return recording.program, (*notes, *traced.notes)


def state_constants(module: Any) -> dict[str, np.ndarray | str]:
    """Return the entries of ``state_dict()`` that are not weights by value, and for tied parameters the next entry tied to it."""
    constants: dict[str, np.ndarray | str] = {}
    tied: dict[int, list[str]] = {}
    for key, tensor in module.state_dict(keep_vars=True).items():
        if getattr(tensor, "requires_grad", False):
            tied.setdefault(id(tensor), []).append(key)
        elif isinstance(tensor, pytorch().Tensor):
            constants[key] = tensor.detach().cpu().double().numpy().copy()
    for keys in tied.values():
        if len(keys) > 1:
            constants |= dict(zip(keys, keys[1:] + keys[:1], strict=True))
    return constants


@contextmanager
def _quiet_float64(torch: Any) -> Iterator[None]:
    """Make new tensors in float64, as the module's are, and suppress PyTorch's warnings."""
    before, level = torch.get_default_dtype(), logging.root.manager.disable
    torch.set_default_dtype(torch.float64)
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.set_default_dtype(before)
        logging.disable(level)


def pytorch() -> Any:
    """Import torch, or raise an error with the command that installs it."""
    try:
        import torch
    except ImportError:
        raise InputError("PyTorch is not installed here; pip install 'm2bridge[torch]'") from None
    return torch


def _shapes(input_shape: Any) -> list[Shape]:
    """Return the shapes of the inputs, from one length, one shape or a list of shapes."""
    listed: list[Any] = [input_shape] if isinstance(input_shape, int) else list(input_shape)
    shapes = [tuple(listed)] if listed and isinstance(listed[0], int) else [tuple(shape) for shape in listed]
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for shape in shapes for n in shape):
        raise InputError(f"input_shape {listed} should contain positive integers", argument="input_shape")
    return shapes


def _check(torch: Any, module: Any) -> None:
    """Raise InputError for an object that is not a module with real parameters on the CPU."""
    if not isinstance(module, torch.nn.Module):
        what = f"the class {module.__name__}; make one: {module.__name__}(...)" if isinstance(module, type) else (
            f"the {type(module).__name__} {str(module)[:40]!r}"
        )  # fmt: skip
        raise InputError(f"from_torch takes a torch.nn.Module, not {what}")
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
            raise InputError(
                f"{name} is lazy and has no shape yet; run the module once on a tensor of the right shape"
            )
        if tensor.device.type == "meta":
            raise InputError(
                f"{name} is on the device 'meta', which has no numbers; make the module on the CPU, "
                "or call module.to_empty(device='cpu') and initialise it"
            )
        if tensor.is_complex():
            raise InputError(f"{name} is complex; write its real and imaginary parts as two parameters")


class _Traced:
    """A module in float64 on the CPU, with the graph of its operations."""

    def __init__(self, torch: Any, module: Any, shapes: list[Shape]) -> None:
        self.torch, self.shapes = torch, shapes
        self.notes: list[str] = []
        try:
            self.module = copy.deepcopy(module).cpu()
        except Exception as error:
            raise InputError(f"the module cannot be copied: {first_line(error)}") from error
        kinds = sorted({str(p.dtype).removeprefix("torch.") for p in self.module.parameters()})
        if half := next((kind for kind in kinds if kind in ("bfloat16", "float16")), None):
            self.notes.append(
                f"The module is in {half}; it is read in float64, without the roundings of {half}."
            )
        self._name_epsilon()
        self.module.double()
        self.kept: list[int] = []
        self.exported = self._export([torch.randn(shape, dtype=torch.float64) for shape in shapes])
        signature = self.exported.graph_signature
        self._check_mutations(signature)
        self.weights = self._named_weights(signature)
        taken = [name for name, _ in self.weights.values()]
        self.inputs: dict[str, str] = {}  # placeholder -> name of the input
        for placeholder in signature.user_inputs:
            self.inputs[placeholder] = free_name(str(placeholder), [*taken, *self.inputs.values()])

    def _name_epsilon(self) -> None:
        """Give norms without `eps` that of the precision of the module, as PyTorch does, before it is read in float64."""
        for part in self.module.modules():
            if isinstance(part, self.torch.nn.RMSNorm) and part.eps is None:
                parameter = next(part.parameters(), next(self.module.parameters()))
                part.eps = self.torch.finfo(parameter.dtype).eps

    def _export(self, arguments: list[Any]) -> Any:
        torch = self.torch
        table = torch.export.default_decompositions()
        for operation in [key for key in table.keys() if operation_name(key) in _WHOLE]:  # noqa: SIM118
            table.pop(operation)
        try:
            with torch.no_grad():
                copy.deepcopy(self.module)(*[a.clone() for a in arguments])
            exported = torch.export.export(self.module, tuple(arguments), strict=False)
            return exported.run_decompositions(table)
        except Exception as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> InputError:
        """Make an error from that of PyTorch, with what to change."""
        text = f"{type(error).__name__} {error}"
        shown = ", ".join(str(shape) for shape in self.shapes)
        for pattern, advice in _ADVICE.items():
            if re.search(pattern, text, re.IGNORECASE):
                return InputError(f"{advice.format(shapes=shown)}\n  PyTorch reports: {first_line(error)}")
        return InputError(f"torch.export cannot read the module: {first_line(error)}")

    def _check_mutations(self, signature: Any) -> None:
        if changed := list(signature.user_inputs_to_mutate.values()):
            raise InputError(
                f"forward changes its input {changed[0]!r} in place; make a new tensor: x = x + 1 for x += 1, x * 2 for x.mul_(2)"
            )
        if changed := [
            *signature.buffers_to_mutate.values(),
            *getattr(signature, "parameters_to_mutate", {}).values(),
        ]:
            owner = self.module.get_submodule(changed[0].rpartition(".")[0])
            raise InputError(
                f"forward changes {changed[0]!r} ({type(owner).__name__}), so that the function depends on what was computed "
                "before; call module.eval() first, or keep state outside forward"
            )

    def _named_weights(self, signature: Any) -> dict[str, tuple[str, Any]]:
        """Map placeholders to names of weights and parameters; tied parameters have one name."""
        weights: dict[str, tuple[str, Any]] = {}
        names: dict[int, str] = {}
        for placeholder, path in signature.inputs_to_parameters.items():
            parameter = self.module.get_parameter(path)
            if not parameter.requires_grad:
                continue
            if id(parameter) not in names:
                names[id(parameter)] = free_name(path, names.values())
            weights[placeholder] = (names[id(parameter)], parameter)
        if not weights:
            raise InputError("the module has no trainable parameters: see requires_grad_()")
        return weights

    # -- recording the graph -----------------------------------------------------------------------------

    def recorded(self) -> Recording:
        weights = {name: tuple(parameter.shape) for name, parameter in self.weights.values()}
        inputs = dict(zip(self.inputs.values(), self.shapes, strict=True))
        nodes = [node.name for node in self.exported.graph.nodes if node.op == "placeholder" and node.users]
        used = {self.weights[name][0] for name in nodes if name in self.weights}
        if unused := [name for name in weights if name not in used]:
            self.notes.append(f"forward does not use {', '.join(unused)}.")
        return record_call(self._run_graph, weights, inputs)

    def _run_graph(self, weights: dict[str, Recorded], inputs: dict[str, Recorded]) -> Any:
        values: dict[Any, Any] = {}
        constants = self._constants()
        for node in self.exported.graph.nodes:
            if node.op == "placeholder":
                if node.name in self.weights:
                    values[node] = weights[self.weights[node.name][0]]
                elif node.name in self.inputs:
                    values[node] = inputs[self.inputs[node.name]]
                else:
                    values[node] = constants.get(node.name)
            elif node.op == "output":
                return self._outputs([values.get(n) for n in node.args[0]])
            elif node.op == "get_attr":
                values[node] = operator.attrgetter(node.target)(self.exported.graph_module)
            else:
                values[node] = self._value(node, values)
        raise AssertionError("a graph ends with its output")

    def _constants(self) -> dict[str, Any]:
        signature = self.exported.graph_signature
        state = {**self.exported.state_dict, **self.exported.constants}
        paths = {
            **signature.inputs_to_parameters,
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        return {name: state[path] for name, path in paths.items() if name not in self.weights}

    def _outputs(self, values: list[Any]) -> Any:
        """Return the outputs that depend on weights or inputs: one array, or a list of several."""
        self.kept = [k for k, value in enumerate(values) if isinstance(value, Recorded)]
        outputs = [values[k] for k in self.kept]
        if any(isinstance(value, Masked) for value in values):
            raise NotPolynomialError(
                "the module returns scores of -infinity; return what comes after the softmax"
            )
        if not outputs:
            raise InputError("the module's output depends on neither weights nor inputs")
        return outputs[0] if len(outputs) == 1 else outputs

    def _value(self, node: Any, values: dict[Any, Any]) -> Any:
        torch = self.torch
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: values[n])
        if node.target is operator.getitem:
            if isinstance(args[0], tuple) and args[1] >= len(args[0]):
                raise NotPolynomialError(
                    f"{location_of_node(node)}: the indices of the largest entries cannot be recorded; use constant indices"
                )
            return args[0][args[1]] if args[0] is not None else None
        if not any(isinstance(item, (Recorded, Masked)) for item in leaves(torch, (args, kwargs))):
            with torch.no_grad():
                return node.target(*args, **kwargs)
        base = operation_name(node.target)
        if base.startswith(("_assert", "sym_")):
            return None

        def moves(arrays: dict[int, np.ndarray]) -> Any:
            replaced = [torch.as_tensor(arrays[k]) if k in arrays else a for k, a in enumerate(args)]
            return numpy_arrays(torch, node.target(*replaced, **kwargs))

        try:
            plain, named = numpy_arrays(torch, (list(args), dict(kwargs)))
            result = applied(base, plain, named, moves)
        except M2BridgeError as error:
            kind = NotPolynomialError if isinstance(error, NotPolynomialError) else InputError
            raise kind(f"{location_of_node(node)}: {error.message.rpartition(chr(10))[2]}") from None
        except Exception as error:
            raise InputError(
                f"{location_of_node(node)}: {base} cannot be recorded: {first_line(error)}"
            ) from error
        if base in ("max", "amax"):
            largest = result[0] if isinstance(result, tuple) else result
            largest.recorder.maxima[largest.index] = location_of_node(node)
        return torch.as_tensor(result) if type(result) is np.ndarray else result

    # -- the comparison ---------------------------------------------------------------------------------

    def compare(self, recording: Recording) -> None:
        """Raise DisagreementError if program and module differ in float64 at random weights and inputs."""
        rng = np.random.default_rng(0)
        program = recording.program
        for _ in range(_COMPARED_DRAWS):
            weights: dict[str, np.ndarray] = {}
            with self.torch.no_grad():
                for name, parameter in self.weights.values():
                    scale = np.sqrt(max(1, parameter.shape[-1] if parameter.ndim else 1))
                    weights[name] = rng.normal(size=tuple(parameter.shape)) / scale
                    parameter.copy_(self.torch.as_tensor(weights[name]))
                inputs = [rng.normal(size=shape) for shape in self.shapes]
                outputs = self.module(*[self.torch.as_tensor(x) for x in inputs])
            recorded = np.asarray(
                run(program, weights, dict(zip(program.inputs, inputs, strict=True)))
            ).ravel()
            parts = self.torch.utils._pytree.tree_leaves(outputs)
            expected = np.concatenate([parts[k].detach().numpy().ravel() for k in self.kept])
            if recorded.shape != expected.shape or not np.allclose(
                recorded, expected, rtol=_LARGEST_DIFFERENCE, atol=_LARGEST_DIFFERENCE
            ):
                gap = (
                    np.abs(recorded - expected).max() if recorded.shape == expected.shape else "another shape"
                )
                raise DisagreementError(
                    f"the recorded program differs from the module by {gap} at random weights and inputs; "
                    "check that forward depends only on weights and inputs, and does not change the precision"
                )


# -- nodes of the graph of torch.export ----------------------------------------------------------


def operation_name(target: Any) -> str:
    """Return the name of an operation without its overload: ``linear`` of ``aten.linear.default``."""
    name = getattr(getattr(target, "_schema", None), "name", None) or getattr(target, "__name__", str(target))
    return str(name).rpartition("::")[2]


def leaves(torch: Any, value: Any) -> list[Any]:
    """List the items of nested lists, tuples and dictionaries."""
    items: list[Any] = []
    torch.fx.node.map_aggregate(value, items.append)
    return items


def numpy_arrays(torch: Any, value: Any) -> Any:
    """Convert the tensors in nested values to NumPy arrays."""

    def plain(item: Any) -> Any:
        return item.detach().cpu().numpy() if isinstance(item, torch.Tensor) else item

    return torch.fx.node.map_aggregate(value, plain)


def location_of_node(node: Any) -> str:
    """Describe the location of a node: the submodule's path and class, and the line of forward."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, kind = stack[-1] if stack else ("", "")
    kind = (kind if isinstance(kind, str) else kind.__name__).rpartition(".")[2]
    lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    users = [f"{file.rpartition('/')[2]}, line {line}" for file, line in lines if "/torch/" not in file]
    where = f"{path} ({kind})" if path else f"the module itself ({kind})"
    return f"{where}, {users[-1]}" if users else where


def first_line(error: Exception) -> str:
    """Return the first non-empty line of an error's message, at most 300 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0][:300]


def free_name(path: str, taken: Any) -> str:
    """Make a name from a path: underscores for dots, and a number if it is taken."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", path)[:56]
    name = name if NAME.fullmatch(name) else f"p{name}"
    free, k = name, 2
    while free in taken:
        free, k = f"{name}_{k}", k + 1
    return free
