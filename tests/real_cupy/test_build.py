"""Where the real CuPy cannot be built, the reason is told, and nothing has failed."""

import importlib.metadata
import subprocess

import pytest

from tests.real_cupy import build, install


def ends(capsys, reason):
    assert build.main() == install.SKIPPED
    said = capsys.readouterr().err
    assert said.startswith("real CuPy without a GPU: skipped: ") and reason in said


def test_without_a_compiler(monkeypatch, capsys):
    monkeypatch.setenv("CXX", "/nowhere/g++")
    ends(capsys, "no C++ compiler: ")


@pytest.mark.parametrize("version", [None, "13.6.0"])
def test_without_that_cupy(monkeypatch, capsys, version):
    def found(name):
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(build, "_compiler", lambda: "g++")
    monkeypatch.setattr(importlib.metadata, "version", found)
    ends(capsys, f"it takes cupy-cuda13x {install.CUPY}, here is {version or 'none'}. Way out: ")


def test_without_the_package_index(monkeypatch, tmp_path):
    def fails(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found")

    monkeypatch.setattr(subprocess, "run", fails)
    with pytest.raises(install.CannotBuild, match="(?s)pip download .*No matching"):
        install.cupy_sources(tmp_path)


def test_a_driver_that_does_not_compile_is_no_reason(monkeypatch, tmp_path):
    """It is an error, or the tests would be gone one day and nobody would know."""
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "broken.cpp").write_text("int broken")
    monkeypatch.setattr(build, "HERE", tmp_path)
    monkeypatch.setattr(build, "_headers", lambda: tmp_path)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1")
    with pytest.raises(RuntimeError, match=r"expected|error"):
        build.main()


def test_the_versions_agree():
    assert f"cupy-cuda13x=={install.CUPY}\n" in install.REQUIREMENTS.read_text()
