"""compose.yaml: a valid one, of known images and variables, in which nothing has more rights than it needs.

It is not started by tests: where they run there is no Docker.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from proctor import __version__
from proctor.runtime.settings import Settings
from supply_chain.images import IMAGES
from tests.dockerfile import DOCKERFILE, stages
from tests.support import REPOSITORY, missing

COMPOSE = REPOSITORY / "compose.yaml"
SECRETS = REPOSITORY / "scripts" / "make_compose_secrets.sh"
_IMAGE = re.compile(r"\$\{PROCTOR_REPOSITORY:-proctor/\}(?P<target>\w+):\$\{PROCTOR_VERSION:-(?P<version>[\d.]+)\}")
_OWN = re.compile(r"PROCTOR_[A-Z0-9_]*[A-Z0-9]")


@cache
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(COMPOSE)
    return loaded


SERVICES: dict[str, dict[str, Any]] = compose()["services"]


@cache
def read_by_the_code() -> frozenset[str]:
    files = (REPOSITORY / "services" / "proctor").rglob("*.py")
    return frozenset(name for file in files for name in _OWN.findall(file.read_text("utf-8")))


def target_of(service: str) -> str:
    match = _IMAGE.fullmatch(SERVICES[service]["image"])
    assert match is not None, SERVICES[service]["image"]
    assert match["version"] == __version__
    return match["target"]


def drawn(folder: Path) -> dict[str, str]:
    """What the script writes, in a copy of the places that it knows."""
    if shutil.which("openssl") is None:
        missing("openssl is not installed")
    (folder / "scripts").mkdir(exist_ok=True)
    shutil.copy(SECRETS, folder / "scripts")
    subprocess.run([folder / "scripts" / SECRETS.name], check=True, stdout=subprocess.DEVNULL)
    return {path.name: path.read_text() for path in (folder / "compose.secrets").iterdir()}


def test_it_is_what_compose_takes() -> None:
    if importlib.util.find_spec("check_jsonschema") is None:
        missing("check-jsonschema is not installed: pip install check-jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_service_of_proctor_is_there_from_the_target_of_its_name() -> None:
    assert set(IMAGES) <= set(SERVICES)
    known = stages(DOCKERFILE.read_text("utf-8"))
    for name, service in SERVICES.items():
        target = target_of(name)
        assert target in known
        assert target == ("router" if name == "migrate" else name)
        if "build" in service:
            assert service["build"] == {"context": ".", "dockerfile": "services/images/Dockerfile", "target": target}


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_rights_and_limits(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] == "10001:10001"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert service["healthcheck"].get("test") or name == "migrate"
    assert "privileged" not in service


@pytest.mark.parametrize("name", SERVICES)
def test_every_variable_is_one_that_is_read(name: str) -> None:
    target = target_of(name)
    if target in IMAGES:
        known = read_by_the_code()
    else:
        script = REPOSITORY / "services" / "images" / "entrypoints" / f"serve-{target}"
        known = frozenset(re.findall(r"[A-Z][A-Z0-9_]+", script.read_text())) if script.is_file() else frozenset()
    assert set(SERVICES[name].get("environment", ())) <= known


def test_settings_take_what_a_service_is_told(tmp_path: Path) -> None:
    files = drawn(tmp_path)
    told = dict(line.split("=", 1) for line in files["services.env"].splitlines())
    assert set(told) | {"PROCTOR_GATEWAY_TOKEN"} <= read_by_the_code()
    environment = {**SERVICES["router"]["environment"], **told, "PROCTOR_HOME": str(tmp_path)}
    settings = Settings.from_environment(environment)
    assert settings.endpoints["reference"].private
    assert f":{files['valkey-password']}@valkey:6379" in str(settings.broker_url)
    assert f":{files['mlflow-password']}@mlflow:5000" in str(settings.registry_uri)
    assert json.loads(environment["PROCTOR_ENDPOINTS"])["reference"]["url"] == "grpc://triton:8001"


def test_only_the_gateway_is_reached_and_only_from_this_host() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert set(published) == {"gateway"}
    assert all(port.startswith("127.0.0.1:") for port in published["gateway"])
    assert compose()["networks"]["inside"] == {"internal": True}
    assert {name for name, one in SERVICES.items() if "outside" in one["networks"]} == {"gateway", "notifier"}


def test_the_secrets_are_drawn_once_and_are_nobody_elses(tmp_path: Path) -> None:
    first = drawn(tmp_path)
    used = {Path(secret["file"]).name for secret in compose()["secrets"].values()}
    files = {Path(file).name for service in SERVICES.values() for file in service.get("env_file", ())}
    assert used | files == set(first)
    assert drawn(tmp_path) == first
    assert stat.S_IMODE((tmp_path / "compose.secrets").stat().st_mode) == 0o700
    assert len({first[f"{name}-password"] for name in ("valkey", "postgresql", "mlflow")}) == 3
