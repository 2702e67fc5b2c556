"""lm-evaluation-harness and Inspect, really run on exported tasks: their logs end in the decision of `audit run`.

Both ask the reference models, whose truth is planted, over HTTP; what reaches the server is compared by digest with
what was exported.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from proctor.cli.demo import EXPECTED, demo_suite
from proctor.cli.variants.exporting_task import export_task
from proctor.localstack.stack import LocalStack
from proctor.registry.mlflow_client import MlflowClient
from tests.harness import harness_python
from tests.reference_server import ServedModel, serving_reference
from tests.standing_stack import standing_stack
from tests.support import REPOSITORY, missing

# torch and transformers warn about themselves on import.
pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="the local stack needs Linux"),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]
CODES: Final = {"approve": 0, "review": 3, "block": 4}
#: Enough that both models get the decision of the demo.
ITEMS: Final = 240


class Exported(NamedTuple):
    name: str
    folder: Path
    manifest: Mapping[str, Any]
    prompts: list[str]


class World(NamedTuple):
    home: Path
    suites: Mapping[str, Path]
    tasks: Mapping[str, Exported]
    served: Mapping[str, ServedModel]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A stack, both tasks, and both models behind HTTP."""
    bundle = REPOSITORY / "services" / "triton"
    for needed in ("inspect_ai", "openai"):
        if importlib.util.find_spec(needed) is None:
            missing(f"{needed} is not installed: pip install -e '.[dev]'")
    harness_python()
    folder = tmp_path_factory.mktemp("logs")
    with standing_stack(folder / "home", "--no-triton", "--no-metrics") as home, ExitStack() as stack:
        first = next(iter(EXPECTED))
        suite = folder / "exported.json"
        suite.write_text(json.dumps(suite_of(first, bundle, "http://127.0.0.1:9/v1")))
        settings = LocalStack.attach(home).settings
        tasks = {}
        for harness in ("lm-eval", "inspect"):
            done = export_task(
                suite, folder / harness, settings, harness=harness, overwrite=False, progress=lambda _: None
            )
            tasks[harness] = exported(done["task"], folder / harness)
        prompts = tasks["inspect"].prompts
        served = {name: stack.enter_context(serving_reference(bundle, name, known=prompts)) for name in EXPECTED}
        suites = {}
        for name in EXPECTED:
            suites[name] = folder / f"{name}.json"
            suites[name].write_text(json.dumps(suite_of(name, bundle, served[name].url)))
        yield World(home, suites, tasks, served)


def suite_of(name: str, bundle: Path, endpoint: str) -> dict[str, Any]:
    suite: dict[str, Any] = json.loads(demo_suite(name, bundle))
    suite["model_config"]["endpoint"] = endpoint
    suite["dataset_config"]["sample_size"] = ITEMS
    return suite


def exported(name: str, folder: Path) -> Exported:
    rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()]
    prompts = [row["prompt"] if "prompt" in row else row["input"] for row in rows]
    return Exported(name, folder, json.loads((folder / "manifest.json").read_text()), prompts)


def proctor(*arguments: str | Path, home: Path) -> dict[str, Any]:
    """What a command that ends in a decision printed; its exit code says the same."""
    command = [sys.executable, "-m", "proctor", *map(str, arguments), "--home", str(home), "--format", "json"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.stdout, run.stderr
    result: dict[str, Any] = json.loads(run.stdout)
    assert run.returncode == CODES[result["decision"]]
    return result


def run_harness(task: Exported, *command: str, **environment: str) -> None:
    """A harness as somebody runs it in the task's folder, who has no hub."""
    run = subprocess.run(
        [harness_python(), "-m", *command],
        cwd=task.folder,
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", **environment},
    )
    assert run.returncode == 0, run.stderr[-4000:]


def asked_by_lm_eval(task: Exported, name: str, served: ServedModel, out: Path) -> list[Path]:
    model = f"model={name},base_url={served.url}/completions,tokenizer_backend=None,tokenized_requests=False"
    run_harness(
        task,
        *("lm_eval", "run", "--model", "local-completions", "--model_args", model, "--batch_size", "32"),
        *("--include_path", ".", "--tasks", task.name, "--log_samples", "--output_path", str(out)),
    )
    return sorted(out.rglob("*.json*"))


def asked_by_inspect(task: Exported, name: str, served: ServedModel, out: Path) -> list[Path]:
    run_harness(
        task,
        *("inspect_ai", "eval", f"{task.name}.py", "--model", f"openai-api-completions/local/{name}"),
        *("--log-dir", str(out), "--display", "none", "--no-score", "--no-log-realtime"),
        LOCAL_BASE_URL=served.url,
        LOCAL_API_KEY="none",
    )
    return sorted(out.glob("*.eval"))


HARNESSES: Final = {"lm-eval": asked_by_lm_eval, "inspect": asked_by_inspect}
#: What the decision rests on, which has to be the same to the last digit.
SAME: Final = (
    "decision", "contamination_score", "contamination_score_ci", "score_inflation_points", "score_inflation_points_ci",
    "p_value", "accuracy_canonical", "accuracy_perturbed", "n_items", "n_trials", "items", "scope",
)  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_both_harnesses_logs_end_in_the_decision_of_an_audit_that_asked(
    name: str, world: World, tmp_path: Path
) -> None:
    served, suite = world.served[name], world.suites[name]
    wanted = Counter(
        digest.removeprefix("sha256:") for digest in world.tasks["inspect"].manifest["prompt_digests"].values()
    )
    ran = proctor("audit", "run", suite, home=world.home)
    assert ran["decision"] == EXPECTED[name]
    reports = {ran["report_digest"]}
    assert served.prompts == wanted, "the audit asked something else than was exported"
    for harness, ask in HARNESSES.items():
        served.prompts.clear()
        logs = ask(world.tasks[harness], name, served, tmp_path / harness)
        # Byte for byte. A client that lost a connection may have asked again.
        assert set(served.prompts) == set(wanted), f"{harness} sent other prompts than were exported"
        before = served.prompts.copy()
        taken = proctor("audit", "import", suite, *logs, home=world.home)
        assert served.prompts == before, "an import asks nobody"
        reports.add(taken["report_digest"])
        assert {key: taken[key] for key in SAME} == {key: ran[key] for key in SAME}, harness
        assert taken["reason_codes"] == [*ran["reason_codes"], "answers_from_logs"]
        assert taken["registry_version"] == ran["registry_version"], "another version for the same weights"
        assert taken["fingerprint"] != ran["fingerprint"]
        # Inspect records every setting; lm-evaluation-harness does not say which seed its client sends.
        assert (taken["protocol_digest"] == ran["protocol_digest"]) is (harness == "inspect")
        report = json.loads(Path(taken["report_path"]).with_suffix(".json").read_text())
        limits = {limit["code"] for limit in report["limits"]}
        assert "answers_from_logs" in limits
        assert ("truncation_not_logged" in limits, "settings_not_logged" in limits) == (harness == "lm-eval",) * 2
        assert report["card"]["decoding_policy"]["seed"] == ("unknown" if harness == "lm-eval" else None)
        assert "Proctor did not produce" in Path(taken["report_path"]).read_text()
    check = subprocess.run(
        [sys.executable, "-m", "proctor", "record", "verify", "--home", str(world.home)], capture_output=True, text=True
    )
    assert check.returncode == 0, check.stdout
    uri = LocalStack.attach(world.home).settings.registry_uri
    assert uri is not None
    with MlflowClient(uri) as mlflow:
        tags = mlflow.version(name, taken["registry_version"]).tags
    assert tags["proctor.decision"] == EXPECTED[name]
    # The version's decision is the worst of all of them; which of equal ones it rests on is the record's order.
    assert f"sha256:{tags['proctor.report_sha256']}" in reports
