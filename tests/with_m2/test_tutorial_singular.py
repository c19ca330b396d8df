"""The tutorial about singular points runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "tutorials" / "singular.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_python_blocks_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 3
    scope: dict[str, object] = {}
    for block in blocks:
        exec(block, scope)
