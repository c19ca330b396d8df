"""The examples in the docstrings of the models stage run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import m2bridge.models

MODULES = sorted(module.name for module in pkgutil.iter_modules(m2bridge.models.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"m2bridge.models.{name}")).failed == 0
