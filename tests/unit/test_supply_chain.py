"""What the images install is pinned, hashed and listed; what no source of advisories knows is not called safe."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import REPOSITORY


@pytest.fixture(scope="module")
def scripts() -> Iterator[SimpleNamespace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(REPOSITORY / "scripts"))
        yield SimpleNamespace(
            images=importlib.import_module("supply_chain.images"),
            sbom=importlib.import_module("make_sbom"),
            audit=importlib.import_module("audit_dependencies"),
        )


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


def test_every_image_pins_what_pyproject_asks_for(scripts: SimpleNamespace) -> None:
    for image, extras in scripts.images.IMAGES.items():
        pinned = {
            canonicalize_name(pin.name) for pin in scripts.images.pins_of(scripts.images.lock_of(image).read_text())
        }
        assert _direct(extras) - pinned <= {"torch"}, f"{image}: run scripts/lock_dependencies.py"


def test_every_pin_has_hashes_and_the_version_of_the_constraints(scripts: SimpleNamespace) -> None:
    lines = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", scripts.images.CONSTRAINTS.read_text(), re.MULTILINE)
    constraints = {canonicalize_name(name): version for name, version in lines}
    for image in scripts.images.IMAGES:
        pins = scripts.images.pins_of(scripts.images.lock_of(image).read_text())
        assert pins
        for pin in pins:
            assert pin.hashes, f"{image}: {pin.name} has no hash"
            stated = constraints.get(canonicalize_name(pin.name))
            assert stated == pin.version, f"{image}: {pin.name} is {pin.version}, constraints.txt says {stated}"


def test_no_image_but_perturbations_carries_what_computes(scripts: SimpleNamespace) -> None:
    heavy = {"torch", "transformers", "sentence-transformers", "triton"}
    for image in scripts.images.IMAGES:
        names = {pin.name for pin in scripts.images.pins_of(scripts.images.lock_of(image).read_text())}
        found = {name for name in names if name in heavy or name.startswith("nvidia-")}
        assert found <= ({"transformers", "sentence-transformers"} if image == "perturbation" else set())


def test_a_bill_of_materials_lists_every_pin_with_its_hashes_in_the_same_bytes_each_time(
    scripts: SimpleNamespace,
) -> None:
    pytest.importorskip("cyclonedx_py")
    document = scripts.sbom.bill("registry")
    assert document == scripts.sbom.bill("registry")
    bill = json.loads(document)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = {
        (one["name"], one["version"]): {
            found["content"] for place in one["externalReferences"] for found in place.get("hashes", [])
        }
        for one in bill["components"]
    }
    pins = scripts.images.pins_of(scripts.images.lock_of("registry").read_text())
    assert listed == {(pin.name, pin.version): set(pin.hashes) for pin in pins}


def test_what_was_not_looked_up_is_not_called_safe(
    scripts: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    skipped = {"dependencies": [{"name": "amqp", "skip_reason": "not found"}], "fixes": []}
    clean = {"dependencies": [{"name": "amqp", "version": "5.4.2", "vulns": []}], "fixes": []}
    bad = {"dependencies": [{"name": "x", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}]}

    def status(document: dict[str, Any] | None) -> int:
        said = "" if document is None else json.dumps(document)
        run = SimpleNamespace(stdout=said, stderr="cannot be reached")
        monkeypatch.setattr(scripts.audit.subprocess, "run", lambda *_, **__: run)
        monkeypatch.setattr("sys.argv", ["audit_dependencies"])
        code: int = scripts.audit.main()
        return code

    assert [status(one) for one in (None, skipped, clean, bad)] == [3, 3, 0, 1]
    assert "x 1: CVE-1, mended in 2" in capsys.readouterr().out
