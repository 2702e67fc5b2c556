"""What the images install is pinned, hashed and listed; what no source of advisories knows is not called safe."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import audit_dependencies
import make_sbom
from supply_chain import images
from tests.support import REPOSITORY


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return project


def _direct(extras: tuple[str, ...]) -> set[str]:
    """What pyproject.toml itself asks for, extras of extras included."""
    project = _project()
    names: set[str] = set()
    waiting = [*map(Requirement, project["dependencies"])]
    waiting += [Requirement(text) for extra in extras for text in project["optional-dependencies"][extra]]
    while waiting:
        one = waiting.pop()
        if one.name == "proctor":
            waiting += [Requirement(text) for extra in one.extras for text in project["optional-dependencies"][extra]]
        else:
            names.add(canonicalize_name(one.name))
    return names


def test_every_image_pins_what_pyproject_asks_for() -> None:
    for image, extras in images.IMAGES.items():
        pinned = {canonicalize_name(pin.name) for pin in images.pins_of(images.lock_of(image).read_text())}
        assert _direct(extras) - pinned <= {"torch"}, f"{image}: run scripts/lock_dependencies.py"


def test_every_pin_has_hashes_and_the_version_of_the_constraints() -> None:
    lines = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", images.CONSTRAINTS.read_text(), re.MULTILINE)
    constraints = {canonicalize_name(name): version for name, version in lines}
    for image in images.IMAGES:
        pins = images.pins_of(images.lock_of(image).read_text())
        assert pins
        for pin in pins:
            assert pin.hashes, f"{image}: {pin.name} has no hash"
            stated = constraints.get(canonicalize_name(pin.name))
            assert stated == pin.version, f"{image}: {pin.name} is {pin.version}, constraints.txt says {stated}"


def test_no_image_but_perturbations_carries_what_computes() -> None:
    heavy = {"torch", "transformers", "sentence-transformers", "triton"}
    for image in images.IMAGES:
        names = {pin.name for pin in images.pins_of(images.lock_of(image).read_text())}
        found = {name for name in names if name in heavy or name.startswith("nvidia-")}
        assert found <= ({"transformers", "sentence-transformers"} if image == "perturbation" else set())


def test_a_bill_of_materials_lists_every_pin_with_its_hashes_in_the_same_bytes_each_time() -> None:
    pytest.importorskip("cyclonedx_py")
    document = make_sbom.bill("registry")
    assert document == make_sbom.bill("registry")
    bill = json.loads(document)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = {
        (one["name"], one["version"]): {
            found["content"] for place in one["externalReferences"] for found in place.get("hashes", [])
        }
        for one in bill["components"]
    }
    pins = images.pins_of(images.lock_of("registry").read_text())
    assert listed == {(pin.name, pin.version): set(pin.hashes) for pin in pins}


def test_what_was_not_looked_up_is_not_called_safe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    skipped = {"dependencies": [{"name": "amqp", "skip_reason": "not found"}], "fixes": []}
    clean = {"dependencies": [{"name": "amqp", "version": "5.4.2", "vulns": []}], "fixes": []}
    bad = {"dependencies": [{"name": "x", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}]}

    def status(document: dict[str, Any] | None) -> int:
        said = "" if document is None else json.dumps(document)
        run = SimpleNamespace(stdout=said, stderr="cannot be reached")
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: run)
        monkeypatch.setattr("sys.argv", ["audit_dependencies"])
        return audit_dependencies.main()

    assert [status(one) for one in (None, skipped, clean, bad)] == [3, 3, 0, 1]
    assert "x 1: CVE-1, mended in 2" in capsys.readouterr().out
