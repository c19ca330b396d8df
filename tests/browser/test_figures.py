"""The interactive Figure 1 in a real browser: it draws without a network, and the pointer shows weights.

Needs Chromium (Debian's ``chromium``, or the program named in ``M2BRIDGE_CHROMIUM``); run by ``make test-all``.
"""

from __future__ import annotations

import html
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from m2bridge.families import Lightning
from m2bridge.papers.lightning_attention.figures import figure1, named_slices
from tests.running import run_command

pytestmark = pytest.mark.browser

# the resultant of two binary quadrics (Sylvester's determinant), as Macaulay2 writes the kernel
RESULTANT = "z2^2*z3^2-z1*z2*z3*z4+z0*z2*z4^2+z1^2*z3*z5-2*z0*z2*z3*z5-z0*z1*z4*z5+z0^2*z5^2"

PROBE = """<script>
window.addEventListener('load', () => {
  const plot = document.getElementById('figure'), seen = new Set(), errors = [];
  window.addEventListener('error', e => errors.push(e.message));
  const note = () => document.querySelectorAll('.hovertext').forEach(e => seen.add(
    [...e.querySelectorAll('.line, .nums, .name')].map(l => l.textContent).join('|') || e.textContent));
  let step = 0;
  const timer = setInterval(() => {
    const targets = plot.querySelectorAll('canvas, .gl-container, .gl-container div');
    const box = plot.getBoundingClientRect();
    const x = box.left + box.width * (0.3 + 0.01 * (step % 40)), y = box.top + box.height * (0.4 + 0.05 * (step % 7));
    targets.forEach(t => ['mouseover', 'mousemove'].forEach(kind => t.dispatchEvent(
      new MouseEvent(kind, {bubbles: true, clientX: x, clientY: y, view: window}))));
    note();
    if (++step > 1500 || [...seen].some(t => t.includes('A = [['))) {
      clearInterval(timer);
      const report = document.createElement('pre');
      report.id = 'report';
      report.textContent = JSON.stringify({
        canvases: plot.querySelectorAll('canvas').length, title: plot.querySelector('.gtitle')?.textContent,
        seen: [...seen].slice(0, 20), errors,
        remote: performance.getEntriesByType('resource').map(r => r.name).filter(n => !/^(file|data|blob):/.test(n))});
      document.body.appendChild(report);
    }
  }, 80);
});
</script>"""


def chromium() -> str:
    named = os.environ.get("M2BRIDGE_CHROMIUM")
    for name in [named] if named else ["chromium", "chromium-browser", "google-chrome"]:
        if name and (found := shutil.which(name)):
            return found
    pytest.fail("browser tests need Chromium: apt-get install chromium, or set M2BRIDGE_CHROMIUM")


def browse(page: Path, profile: Path, *arguments: str) -> str:
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--use-angle=swiftshader",
        "--enable-unsafe-swiftshader",
        "--ignore-gpu-blocklist",
        "--window-size=1100,900",
    ]
    command = [chromium(), *flags, f"--user-data-dir={profile}", *arguments, page.as_uri()]
    return run_command(command).stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("figure") / "figure-1.html"
    figure1.draw(figure1.section(named_slices.SLICES["conoid"], [RESULTANT]), path)
    return path


def test_pointer_shows_weights_that_reach_the_point(page: Path, tmp_path: Path) -> None:
    import json

    probe = tmp_path / "probe.html"
    probe.write_text(page.read_text(encoding="utf-8").replace("</body>", PROBE + "</body>"), encoding="utf-8")
    text = browse(probe, tmp_path / "profile", "--virtual-time-budget=200000", "--dump-dom")
    match = re.search(r'<pre id="report">(.*?)</pre>', text, re.DOTALL)
    assert match, "the page did not finish its report"
    report = json.loads(html.unescape(match[1]))
    assert report["errors"] == []
    assert report["remote"] == []
    assert report["canvases"] >= 1
    assert "M(2,1,2)" in report["title"]
    labels = [label for label in report["seen"] if "A = [[" in label]
    assert labels, f"no weights under the pointer: {report['seen']}"
    numbers = [
        float(x) for x in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", labels[0].replace("\N{MINUS SIGN}", "-"))
    ]
    xyz, weights = np.array(numbers[:3]), numbers[3:9]
    model = Lightning(d=2, dp=1, parametrization="attention")
    reached = model.coordinates(
        {"A": np.array(weights[:4]).reshape(2, 2), "V": np.array(weights[4:]).reshape(1, 2)}
    )
    wanted = named_slices.SLICES["conoid"].points(xyz[None])[0]
    assert np.allclose(reached, wanted, atol=0.02)  # three digits are shown


def test_page_is_drawn(page: Path, tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    browse(page, tmp_path / "profile", "--virtual-time-budget=9000", f"--screenshot={shot}")
    from matplotlib.image import imread

    pixels = imread(shot)[:, :, :3]
    blueish = (pixels[:, :, 2] > pixels[:, :, 0] + 0.15).mean()
    reddish = (pixels[:, :, 0] > pixels[:, :, 2] + 0.4).mean()
    assert blueish > 0.08  # the surface
    assert reddish > 0.0005  # the singular curve
