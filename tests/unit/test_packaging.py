"""What a package index, an archive and the image read: README with absolute links, one address, one version of each engine."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from m2bridge import __version__
from m2bridge.engine.install import MACAULAY2, MSOLVE

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]


def module_at(path: str) -> Any:
    """Import a file that is not part of the package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def absolute_links() -> Any:
    pytest.importorskip("hatchling")
    return module_at("packaging/absolute_links.py")


def test_every_link_of_the_readme_is_absolute_on_an_index(absolute_links: Any) -> None:
    assert doctest.testmod(absolute_links).failed == 0
    metadata = {"urls": PROJECT["urls"], "version": "1.2.3"}
    absolute_links.AbsoluteLinks(str(ROOT), {}).update(metadata)
    targets = re.findall(r"\]\(([^)]+)\)", metadata["readme"]["text"])
    assert all(target.startswith("https://") for target in targets)
    assert f"{REPOSITORY}/raw/v1.2.3/results/figures/figure-1.png" in targets


def test_every_relative_link_of_the_readme_leads_to_a_file() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    relative = [target.partition("#")[0] for target in targets if not target.startswith("https://")]
    assert len(relative) > 20
    assert [target for target in relative if not (ROOT / target).is_file()] == []


def test_the_address_of_the_repository_is_the_same_everywhere() -> None:
    assert json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))["codeRepository"] == REPOSITORY
    assert f'repository-code: "{REPOSITORY}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"repository: {REPOSITORY}\n" in (ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8")
    assert all(PROJECT["urls"][name].startswith(REPOSITORY) for name in ("Changelog", "Issues"))


def test_the_image_and_the_extra_have_the_engines_of_engine_install() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    for wheel in (MACAULAY2, MSOLVE):
        assert re.findall(rf"{wheel.package}==([\d.]+)", dockerfile) == [wheel.version]
    assert set(re.findall(r"sha256:([0-9a-f]{64})", dockerfile)) <= {*MACAULAY2.hashes, *MSOLVE.hashes}
    assert PROJECT["optional-dependencies"]["macaulay2"] == [f"{MACAULAY2.package}=={MACAULAY2.version}"]


def test_the_conda_recipe_has_the_dependencies_of_the_package() -> None:
    recipe = (ROOT / "packaging/conda/recipe.yaml").read_text(encoding="utf-8")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    listed = {line.removeprefix("    - ") for line in run.splitlines()}
    needed = {requirement.replace(">=", " >=") for requirement in PROJECT["dependencies"]}
    assert listed == {*needed, f"python {PROJECT['requires-python']}"}


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("CITATION.cff", f"version: {__version__}"),
        ("codemeta.json", f'"version": "{__version__}",'),
        ("packaging/conda/recipe.yaml", f'version: "{__version__}"'),
        ("Dockerfile", f"ARG VERSION={__version__}"),
    ],
)
def test_published_metadata_has_this_version(file: str, line: str) -> None:
    assert f"\n{line}\n" in (ROOT / file).read_text(encoding="utf-8").replace("\n  ", "\n")


def test_the_checker_alone_verifies_the_published_certificates_as_listed() -> None:
    listed = (ROOT / "results" / "certificates" / "README.md").read_text(encoding="utf-8")
    assert listed == module_at("results/certificates/make.py").list_of_certificates()
    assert listed.count("| Verified: ") == len(list((ROOT / "results" / "certificates").glob("*.json")))
