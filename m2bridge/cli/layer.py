"""CLI: which model a command is about: a spec string, or ``--d --dp --a --t`` for one layer of lightning attention."""

from __future__ import annotations

from pathlib import Path

from m2bridge.errors import InputError
from m2bridge.models import Lightning, Model, parse_spec
from m2bridge.models.code import is_code, model_from_code


def read_model(spec: str) -> Model:
    """The model of a specification; nothing at all is no specification. A file of code that the user named here is run."""
    if not spec.strip():
        raise InputError("the model is missing: give a specification such as 'lightning(d=2,dp=1)'")
    if Path(spec).suffix in (".toml", ".json") and ":" not in spec:
        raise InputError(f"{spec} is the name of a file: write file:{spec}")
    return model_from_code(spec) if is_code(spec) else parse_spec(spec)


def model_from(spec: str | None, d: int | None, dp: int | None, a: int | None, t: int | None) -> Model:
    """The model that the arguments name; exactly one of the two ways must be used."""
    sizes = {"--d": d, "--dp": dp, "--a": a, "--t": t}
    given = [name for name, value in sizes.items() if value is not None]
    if spec is not None:
        if given:
            raise InputError(f"give either a model specification or {', '.join(given)}, not both")
        return read_model(spec)
    if d is None or dp is None:
        raise InputError(
            "say which model: a specification such as 'lightning(d=2,dp=1)', or --d and --dp for one layer"
        )
    for name, value in sizes.items():
        if value is not None and value < 1:
            raise InputError(f"{name} {value}: a size is a positive integer")
    return Lightning(d=d, dp=dp, a=d if a is None else a, t=2 if t is None else t)
