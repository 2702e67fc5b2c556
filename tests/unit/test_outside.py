"""What `proctor doctor` says of what the settings point to outside of the machine."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from proctor.domain.endpoint import EndpointSliceDiscovery
from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import OperatorEndpoint, OtherEndpoints
from proctor.localstack.doctor.cluster import examine_cluster
from proctor.localstack.doctor.configured import examine_outside, readable_settings
from proctor.localstack.doctor.installed import State
from proctor.runtime.settings import Settings

SLICES = OperatorEndpoint(discovery=EndpointSliceDiscovery(namespace="prod", service="triton", port="grpc"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def absent(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def find_spec(name: str, *rest: Any) -> Any:
        return None if name == package else found(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)


def test_endpoints_are_counted_with_what_else_may_be_asked(settings: Settings) -> None:
    named = {f"e{index}": OperatorEndpoint(url="grpc://a") for index in range(7)}
    (finding,) = examine_outside(
        settings.model_copy(update={"endpoints": named, "other_endpoints": OtherEndpoints.NONE})
    )
    assert finding.found == "7 named (e0, e1, e2, e3, e4 and 2 more); no other URL may be asked"
    assert examine_outside(settings)[0].found == "none named; other URLs on this machine only"


@pytest.mark.parametrize(
    ("package", "changed"), [("obstore", {"artifacts": "s3://bucket/x"}), ("kubernetes", {"endpoints": {"k": SLICES}})]
)
def test_a_client_library_that_the_settings_need_and_nobody_installed_is_missing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, package: str, changed: dict[str, Any]
) -> None:
    absent(package, monkeypatch)
    *_, finding = examine_outside(settings.model_copy(update=changed))
    assert (finding.state, finding.required) == (State.MISSING, True)
    assert package in finding.found
    assert finding.mend.startswith("pip install 'proctor[")


def test_no_client_library_is_looked_for_that_the_settings_do_not_need(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent("obstore", monkeypatch)
    assert [finding.state for finding in examine_outside(settings)] == [State.OK]


def test_endpoints_that_cannot_be_read_are_a_finding_with_its_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROCTOR_ENDPOINTS", f"@{tmp_path / 'absent.json'}")
    assert main(["doctor", "--home", str(tmp_path), "--format", "json"]) == 1
    (finding,) = (one for one in json.loads(capsys.readouterr().out)["findings"] if one["name"] == "endpoints")
    assert finding["state"] == "missing"
    assert "absent.json" in finding["found"]
    assert finding["mend"].startswith("mend the path behind the @")


def test_another_variable_that_cannot_be_used_is_refused_as_everywhere(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="PROCTOR_LEASE_S"):
        readable_settings({"PROCTOR_HOME": str(tmp_path), "PROCTOR_ENDPOINTS": "[", "PROCTOR_LEASE_S": "soon"})


def test_a_lease_that_is_none_is_a_finding_in_a_pod_and_nothing_elsewhere(settings: Settings) -> None:
    said = {"PROCTOR_LEADER_LEASE": "router"}
    assert examine_cluster(settings, said) == []
    (found,) = examine_cluster(settings, {**said, "KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert (found.state, found.mend) == (State.MISSING, "mend the variable")
    assert "NAMESPACE/NAME" in found.found
