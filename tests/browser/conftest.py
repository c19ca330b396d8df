"""A real browser: Debian's Chromium, driven by Playwright. A page that logs an error or asks the network for anything fails.

Needs ``chromium`` (or the program named in ``M2BRIDGE_CHROMIUM``) and the extra ``browser``; run by ``make browser``.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'm2bridge[browser]'")
    named = os.environ.get("M2BRIDGE_CHROMIUM")
    names = [named] if named else ["chromium", "chromium-browser", "google-chrome"]
    program = next((found for name in names if (found := shutil.which(name))), None)
    if program is None:
        pytest.fail("browser tests need Chromium: apt-get install chromium, or set M2BRIDGE_CHROMIUM")
    with playwright.sync_playwright() as started:
        flags = ["--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
        browser = started.chromium.launch(executable_path=program, args=flags, timeout=180_000)
        yield browser
        browser.close()


Opened = Callable[..., Any]


@pytest.fixture
def opened(chromium: Any) -> Iterator[Opened]:
    """Opens a file in a new page; at the end of the test no error was logged and no request has left the machine."""
    complaints: list[str] = []
    contexts = []

    def open_page(path: Path, *, width: int = 1400, dark: bool = False, script: bool = True) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
        )
        context.set_default_timeout(120_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(f"console: {m.text}") if m.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "request",
            lambda r: (
                complaints.append(f"request: {r.url}")
                if not r.url.startswith(("file:", "data:", "blob:"))
                else None
            ),
        )
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def fits(page: Any) -> bool:
    """Whether nothing makes the page wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.fixture(scope="session")
def shots() -> Path:
    """Where screenshots go, for people to look at."""
    directory = Path(os.environ.get("M2BRIDGE_SHOTS", ROOT / "docs/_build/screenshots"))
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def until(page: Any, condition: str) -> None:
    """Wait until a condition in JavaScript holds; asked from here, since the page's policy lets no text become a script."""
    deadline = time.monotonic() + 120
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, condition
        time.sleep(0.1)
