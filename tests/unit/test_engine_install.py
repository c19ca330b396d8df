"""Installation and removal of an engine, with a program in place of pip."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from m2bridge.cli import engine
from m2bridge.engine import install
from m2bridge.errors import NoEngineError

GOOD = "#!/bin/sh\ncat ../gate > /dev/null\necho '@m2b-probe 1.26.06 3 3'\n"
BAD = "#!/bin/sh\nkill -ILL $$\n"


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Simulate a machine without Macaulay2, and a pip that copies the wheel from the directory that is returned."""
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.delenv("M2BRIDGE_M2", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("m2bridge.engine.discovery.sysconfig.get_path", lambda _: "/nonexistent")
    monkeypatch.setattr(install, "wheel_available", lambda: (True, "a wheel"))
    monkeypatch.setattr("m2bridge.cli.engine.wheel_available", lambda: (True, "a wheel"))
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, shutil, sys\n"
        f"source = pathlib.Path({str(tmp_path)!r}) / 'the.whl'\n"
        "target = sys.argv[sys.argv.index('--dest') + 1]\n"
        "if not source.exists(): sys.exit('ERROR: no matching distribution')\n"
        "print('Downloading the.whl (1 MB)')\n"
        "shutil.copy(source, target)\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(install, "PYTHON", str(program))
    return tmp_path


def wheel(directory: Path, text: str) -> None:
    with zipfile.ZipFile(directory / "the.whl", "w") as archive:
        archive.writestr("sage_wheels/bin/M2", text)
        archive.writestr("sage_wheels/share/Core.m2", "-- core")


def test_install_twice_then_remove(pip: Path) -> None:
    wheel(pip, GOOD)
    messages: list[str] = []
    path = install.install(messages.append)
    assert path == install.installed()[0]
    assert any("Downloading" in line for line in messages)
    (pip / "the.whl").unlink()
    assert install.install(messages.append) == path
    assert "1.26.06" in messages[-1]
    assert [directory.name for directory in install.remove()] == [
        f"{install.MACAULAY2.package}-{install.MACAULAY2.version}"
    ]
    assert install.installed() == ()
    assert install.remove() == ()
    assert list(pip.glob("XDG_DATA_HOME/m2bridge/*")) == []


def test_an_engine_that_broke_is_replaced(pip: Path) -> None:
    wheel(pip, GOOD)
    path = install.install()
    path.write_text(BAD)
    assert install.install() == path
    assert path.read_text() == GOOD


@pytest.mark.parametrize("present", [True, False])
def test_a_bad_download_leaves_nothing(pip: Path, present: bool) -> None:
    if present:
        wheel(pip, BAD)
    with pytest.raises(NoEngineError, match="SIGILL" if present else "no matching distribution"):
        install.install()
    assert list(install.engines_directory().iterdir()) == []


def test_another_wheel_of_the_same_name_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real pip is used, with an index that contains a manipulated wheel."""
    name = f"passagemath_macaulay2-{install.MACAULAY2.version}"
    with zipfile.ZipFile(tmp_path / f"{name}-py3-none-any.whl", "w") as archive:
        archive.writestr("sage_wheels/bin/M2", "#!/bin/sh\ntouch pwned\n")
        archive.writestr(
            f"{name}.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: {install.MACAULAY2.package}\nVersion: {install.MACAULAY2.version}\n",
        )
        archive.writestr(
            f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}.dist-info/RECORD", "")
    for variable, value in (("FIND_LINKS", str(tmp_path)), ("NO_INDEX", "1"), ("CONFIG_FILE", "/dev/null")):
        monkeypatch.setenv(f"PIP_{variable}", value)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(install, "wheel_available", lambda: (True, "a wheel"))
    with pytest.raises(NoEngineError, match=r"(?i)hash"):
        install.install()
    assert install.installed() == ()


def test_no_wheel_for_this_platform(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "wheel_available", lambda: (False, "there is no wheel for this"))
    with pytest.raises(NoEngineError, match=r"wheel.*apt-get"):
        install.install()


def test_no_pip(pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NoEngineError, match=r"\bpip\b"):
        install.install()


@pytest.fixture
def app() -> typer.Typer:
    application = typer.Typer()
    engine.register(application)
    return application


def test_the_commands(pip: Path, app: typer.Typer) -> None:
    run = CliRunner().invoke
    none = run(app, ["doctor"])
    assert none.exit_code == 4
    assert "engine install" in none.output
    assert run(app, ["doctor", "--quiet"]).output == ""
    wheel(pip, GOOD)
    assert run(app, ["engine", "install"]).exit_code == 0
    doctor = run(app, ["doctor", "--json"])
    assert doctor.exit_code == 0
    assert '"1.26.06"' in doctor.output
    shown = run(app, ["doctor"]).output
    assert "1.26.06 works" in shown
    assert "\x1b" not in shown
    assert "removed" in run(app, ["engine", "remove"]).output
    assert run(app, ["doctor"]).exit_code == 4


def test_doctor_shows_why_an_explicit_engine_is_rejected(pip: Path, app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["doctor", "--engine", "/nonexistent/M2"])
    assert result.exit_code == 4
    assert "/nonexistent/M2" in result.output


def test_without_msolve_the_installation_succeeds(pip: Path, app: typer.Typer) -> None:
    """The wheel that pip copies contains Macaulay2 only, so the test of msolve fails; `--msolve` alone is then an error."""
    wheel(pip, GOOD)
    result = CliRunner().invoke(app, ["engine", "install"])
    assert result.exit_code == 0
    assert "msolve" in result.output
    assert [path.name for path in install.installed()] == ["M2"]
    assert install.installed(install.MSOLVE) == ()
    with pytest.raises(NoEngineError):
        install.install(wheel=install.MSOLVE)
