"""The main job on real parts: `proctor demo`, twice, and what the servers themselves count."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.messages import SERVICES
from tests.support import ending, missing, run_proctor, wait_until

pytestmark = pytest.mark.timeout(300)

#: What may differ between two runs of a home: where files lie, and the versions that each registers anew. No time is in
#: the document.
_OWN = ("report_path", "registry_version")


def demo_command(home: Path) -> list[str]:
    return [sys.executable, "-m", "proctor", "demo", "--home", str(home), "--format", "json"]


def need_triton() -> None:
    from proctor.localstack.triton_server import find

    if find() is None:
        missing("Triton is not installed: python scripts/setup_triton.py")


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any], Path, str]:
    """The demo's document from a fresh home, and from the same home again; what the first run said meanwhile."""
    need_triton()
    home = tmp_path_factory.mktemp("demo")
    documents, said = [], []
    for _ in range(2):
        run = subprocess.run(demo_command(home), capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        documents.append(json.loads(run.stdout))
        said.append(run.stderr)
    return documents[0], documents[1], home, said[0]


@pytest.fixture(scope="module")
def sequential_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """The documents of two demos with sequential audits, each from a home of its own."""
    need_triton()
    documents = []
    for _ in range(2):
        home = tmp_path_factory.mktemp("sequential")
        run = subprocess.run([*demo_command(home), "--design", "sequential"], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        documents.append(json.loads(run.stdout))
    return documents[0], documents[1]


def test_sequential_audits_end_with_the_same_decisions_at_fewer_trials(two_runs: Any, sequential_runs: Any) -> None:
    fixed, sequential = by_model(two_runs[0]), by_model(sequential_runs[0])
    for model, found in sequential.items():
        assert found["decision"] == fixed[model]["decision"]
        assert 0 < found["n_trials"] < fixed[model]["n_trials"] / 2
        assert found["sequential"]["stop"] in ("approved", "blocked")
        assert fixed[model]["sequential"] is None


def test_two_sequential_runs_write_the_same_reports_byte_for_byte(sequential_runs: Any) -> None:
    first, second = (by_model(document) for document in sequential_runs)
    for model in first:
        assert first[model]["report_digest"] == second[model]["report_digest"]
        documents = [Path(one[model]["report_path"]).with_suffix(".json").read_bytes() for one in (first, second)]
        assert documents[0] == documents[1]


def by_model(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {model["model"]: model for model in document["models"]}


def test_the_clean_model_is_approved_and_the_leaked_one_blocked(two_runs: Any) -> None:
    models = by_model(two_runs[0])
    assert models["reference-clean"]["decision"] == "approve"
    assert models["reference-leaked"]["decision"] == "block"
    assert models["reference-leaked"]["p_value"] < 0.001
    low, high = models["reference-leaked"]["contamination_score_ci"]
    assert low < models["reference-leaked"]["contamination_score"] < high


def test_two_runs_agree_in_everything_but_paths(two_runs: Any) -> None:
    first, second = ({**document, "models": [dict(model) for model in document["models"]]} for document in two_runs[:2])
    for document in (first, second):
        document["counts"] = {**document["counts"], "mlflow_decisions": None}
        del document["loop"]
        for model in document["models"]:
            for key in _OWN:
                model.pop(key)
    assert first == second


def test_registered_versions_are_audited_by_themselves_and_their_decisions_come_back(two_runs: Any) -> None:
    for number, document in enumerate(two_runs[:2], 1):
        models, loop = by_model(document), document["loop"]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", loop["dashboard"])
        assert {one["model"] for one in loop["versions"]} == set(models)
        for one in loop["versions"]:
            assert (one["version"], one["asked_by"]) == (str(number), "webhook")
            assert one["decision"] == models[one["model"]]["decision"]
            assert {"proctor.decision", "proctor.fingerprint"} <= set(one["tags"])
            approved = one["decision"] == "approve"
            assert approved or "proctor-approved" not in one["aliases"]
            # Later there are two versions of the same weights, and the alias points at one of them.
            assert number > 1 or ("proctor-approved" in one["aliases"]) is approved
            assert Path(models[one["model"]]["report_path"]).parent.name == one["audit_id"]


def test_each_step_of_the_way_is_said_in_its_order(two_runs: Any) -> None:
    said = two_runs[3]
    for model in by_model(two_runs[0]):
        steps = [f"Registered: {model},", f"told the gateway of {model},", f"of {model}, version 1 has begun by itself"]
        steps += [f"{model}: answering", f"{model}: decided", f"Tags: {model}, version 1, has proctor.decision"]
        found = [said.find(step) for step in steps]
        assert -1 not in found, (steps, said)
        assert found == sorted(found)
    assert said.index("Dashboard: http://127.0.0.1:") < said.index("Registered:")


def test_the_most_suspected_items_are_the_leaked_ones(two_runs: Any, bundle: Path) -> None:
    truth = json.loads((bundle / "models" / "reference-leaked" / "leaked_items.json").read_text())
    leaked = set(truth["item_ids"])
    model = by_model(two_runs[0])["reference-leaked"]
    ranked = [item["item_id"] for item in model["items"] if item["rank"] is not None]
    assert len(ranked) == model["n_suspected_items"]
    hits = len(leaked & set(ranked[: len(leaked)]))
    assert hits / len(leaked) >= 0.85
    assert two_runs[0]["planted_truth"] == {
        "leaked_items": len(leaked),
        "most_suspected": min(len(leaked), len(ranked)),
        "found_among_most_suspected": hits,
    }


def test_no_item_of_the_clean_model_is_flagged(two_runs: Any) -> None:
    models = by_model(two_runs[0])
    assert not any(item["flagged"] for item in models["reference-clean"]["items"])
    assert any(item["flagged"] for item in models["reference-leaked"]["items"])


def test_each_report_lists_every_item_with_its_rewordings_and_rejections(two_runs: Any) -> None:
    for model in two_runs[0]["models"]:
        report = json.loads(Path(model["report_path"]).with_suffix(".json").read_bytes())
        made, rows = report["variants"], report["variants"]["items"]
        assert len({row["item_id"] for row in rows}) == report["counts"]["items_selected"] > 0
        assert sum(len(row["variants"]) for row in rows) == made["admitted"] > 0
        assert sum(sum(row["rejected"].values()) for row in rows) == sum(made["rejected"].values())
        page = Path(model["report_path"]).read_text()
        assert all(f">{row['item_id']}</bdi>" in page for row in rows)


def test_what_triton_the_ledger_and_mlflow_count_is_what_was_asked_and_decided(two_runs: Any) -> None:
    document = two_runs[0]
    trials = {model["model"]: model["n_trials"] for model in document["models"]}
    assert all(count > 0 for count in trials.values())
    # The probe asks each model once to state its weights; beyond that, Triton ran a model for nothing but trials.
    assert document["counts"]["triton_answers"] == {model: count + 1 for model, count in trials.items()}
    assert document["counts"]["ledger_answers"] == trials
    assert document["counts"]["mlflow_decisions"] == len(document["models"])


def test_the_services_are_named_with_their_versions(two_runs: Any) -> None:
    services = two_runs[0]["services"]
    workers = {f"worker-{name}" for name in SERVICES}
    assert set(services) == {"valkey", "triton", "mlflow", "gateway"} | workers
    assert all(re.fullmatch(r"\w+ \d+\.\d+(\.\d+)?\S*", version) for version in services.values()), services


def test_the_protocol_digest_is_shared_and_the_fingerprints_are_not(two_runs: Any) -> None:
    document = two_runs[0]
    assert {model["protocol_digest"] for model in document["models"]} == {document["protocol_digest"]}
    assert len({model["fingerprint"] for model in document["models"]}) == 2


def test_every_decision_of_the_demo_is_in_the_record_which_is_intact(two_runs: Any) -> None:
    checked = run_proctor("record", "verify", "--format", "json", home=two_runs[2])
    assert checked.returncode == 0, checked.stdout
    found = json.loads(checked.stdout)
    assert {found[name] for name in ("entries", "signed", "reports", "witnesses")} == {4}


def test_the_stack_of_the_demo_goes_on_with_the_demos_triggers(two_runs: Any) -> None:
    home = two_runs[2]
    checked = run_proctor("triggers", "validate", home / "triggers.json", "--model", "reference-leaked", home=home)
    assert checked.returncode == 0, checked.stderr
    assert "proctor-facts-demo" in checked.stdout


def test_nothing_is_left_running_and_no_file_is_half_written(two_runs: Any) -> None:
    home = two_runs[2]
    assert processes_of(home) == []
    assert not [path for path in home.rglob(".*") if path.is_file() and ".sqlite" not in path.name]


@pytest.mark.faults
@pytest.mark.parametrize(
    ("signal_number", "moment", "code"),
    [
        (signal.SIGKILL, "starting", -signal.SIGKILL),
        (signal.SIGINT, "starting", 128 + signal.SIGINT),
        (signal.SIGKILL, "answering", -signal.SIGKILL),
        (signal.SIGINT, "answering", 128 + signal.SIGINT),
        (signal.SIGTERM, "answering", 128 + signal.SIGTERM),
    ],
)
def test_killing_the_demo_in_the_middle_leaves_no_process(
    tmp_path: Path, two_runs: Any, signal_number: signal.Signals, moment: str, code: int
) -> None:
    log = tmp_path / "stderr"
    # A home whose library holds the variants gets to the answers sooner.
    home = two_runs[2]
    with log.open("w") as stream:
        demo = subprocess.Popen(demo_command(home), stdout=subprocess.DEVNULL, stderr=stream)
    with ending(demo):
        if moment == "starting":
            wait_until(lambda: len(processes_of(home)) >= 3, timeout_s=60, what="the first services")
        else:
            # A home in which nearly everything is answered may be through with that before it is seen.
            steps = re.compile(f"{moment}|weighing|writing|decided")
            wait_until(lambda: bool(steps.search(log.read_text())), timeout_s=120, what=f"{moment!r} or a later step")
        demo.send_signal(signal_number)
        demo.wait(timeout=60)
    assert demo.returncode == code, log.read_text()
    wait_until(lambda: processes_of(home) == [] and is_free(home), timeout_s=40, what="the end of every process")


def is_free(home: Path) -> bool:
    """Whether the stack's supervisor has let go of the home, which is the last thing that it does."""
    with (home / "stack.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def processes_of(home: Path) -> list[int]:
    """Every process whose environment names this home, the demo's own included."""
    mark = f"PROCTOR_HOME={home}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark in environment.split(b"\0"):
                found.append(int(entry.name))
    return found
