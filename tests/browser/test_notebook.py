"""A notebook of the gallery in Jupyter, in a real browser: all cells run, and answers are shown as boxes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.browser.conftest import ROOT

pytestmark = pytest.mark.browser

_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\S*\?token=(\w{48})")
_SETTINGS = ("--no-browser", "--ip=127.0.0.1", "--port=0", "--ServerApp.log_level=INFO", "--allow-root")


@pytest.fixture
def jupyter(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A Jupyter server on loopback for a directory with one notebook; its address and token."""
    nbformat = pytest.importorskip("nbformat", reason="pip install 'm2bridge[browser]'")
    text = (ROOT / "docs/gallery/attention.py").read_text(encoding="utf-8")
    _, first, *_ = re.split(r"^# %%.*$", text, flags=re.MULTILINE)
    cells = ["import m2bridge", first, "answer"]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    code = [nbformat.v4.new_code_cell(cell.strip()) for cell in cells]
    notebook = nbformat.v4.new_notebook(cells=code, metadata=kernel)
    nbformat.write(notebook, tmp_path / "attention.ipynb")
    log = tmp_path / "server.log"
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
    }
    with log.open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "notebook", *_SETTINGS, str(tmp_path)], stdout=output, stderr=output, env=environment,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield _address(server, log)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def _address(server: subprocess.Popen[bytes], log: Path) -> tuple[str, str]:
    """Wait until the server answers; return its address and token."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        if found := _ADDRESS.search(log.read_text()):
            base = found[0].partition("/tree")[0].partition("?")[0].rstrip("/")
            with contextlib.suppress(URLError), urlopen(f"{base}/api?token={found[1]}", timeout=60):
                return base, found[1]
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def _wait_for_kernel(base: str, token: str) -> None:
    """Wait until the kernel of the notebook is ready and has a connection to the page."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with urlopen(f"{base}/api/kernels?token={token}", timeout=60) as answer:
            kernels = json.load(answer)
        if any(kernel["execution_state"] == "idle" and kernel["connections"] for kernel in kernels):
            return
        time.sleep(0.2)
    raise AssertionError(kernels)


def test_a_notebook_runs(jupyter: tuple[str, str], chromium: Any, shots: Path) -> None:
    base, token = jupyter
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    context.set_default_timeout(180_000)
    page = context.new_page()
    outside: list[str] = []
    page.on(
        "request", lambda r: None if r.url.startswith((base, "data:", "blob:")) else outside.append(r.url)
    )
    try:
        page.goto(f"{base}/notebooks/attention.ipynb?token={token}")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        _wait_for_kernel(base, token)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        page.wait_for_selector(".jp-OutputArea-output >> text=dimension 5, affine")
        assert page.locator(".m2b td").first.evaluate("cell => getComputedStyle(cell).textAlign") == "left"
        assert page.locator(".jp-RenderedText[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
        assert page.locator(".jp-OutputArea-output:has-text('Traceback')").count() == 0
    finally:
        page.screenshot(path=shots / "notebook.png")
        context.close()
    assert outside == []
