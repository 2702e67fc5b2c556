"""Which model rewords: where it is asked, and suites that name none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.cli.main import main
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError, ExitCode
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.router import tasks
from proctor.router.submit.endpoints import named_endpoints, resolve_paraphraser
from proctor.router.submit.gathering import gather
from proctor.router.submit.submission import submit
from proctor.runtime.records.store import AuditState
from tests.integration.rewording_rounds import ASKING, REWRITER, WEIGHTS, to_rewording, wanted
from tests.integration.router_support import Bench, router_bench


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch, perturbation_config=ASKING) as bench:
        yield bench


def test_prompts_for_a_suite_that_asks_no_model_end_the_audit(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        audit = to_rewording(bench)
        tasks.variants_built(wanted(bench, audit, "q1"))
        assert bench.state(audit) is AuditState.FAILED
        assert "submitted without one" in bench.records.audit(audit).detail


def test_a_strategy_that_asks_a_model_without_one_is_refused_before_anything_is_on_record(bench: Bench) -> None:
    nameless = bench.suite.perturbation.model_copy(update={"paraphrase_model": None})
    suite = bench.suite.model_copy(update={"perturbation": nameless})
    with pytest.raises(BadInputError, match="'paraphrase_llm' needs paraphrase_model"):
        submit(gather(suite, bench.home, bench.settings.bundle), bench.settings, bench.records, bench.artifacts)
    assert bench.records.running_audits() == []


def test_audit_run_refuses_such_a_suite_before_it_starts_anything(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = bench.suite.model_dump(mode="json", by_alias=True, exclude_none=True)
    del suite["perturbation_config"]["paraphrase_model"]
    path = bench.home / "suite.json"
    path.write_text(json.dumps(suite))
    assert main(["audit", "run", str(path), "--home", str(bench.home / "stack")]) == ExitCode.BAD_INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "needs paraphrase_model" in captured.err
    assert not (bench.home / "stack").exists()


def test_the_rewording_models_endpoint_is_its_own_else_the_operators_of_its_name_else_the_audited_models(
    bench: Bench,
) -> None:
    def resolved(endpoints: dict[str, str], **changes: str | None) -> EndpointSpec | None:
        section = bench.suite.perturbation.paraphraser.model_copy(update=changes)
        perturbation = bench.suite.perturbation.model_copy(update={"paraphraser": section})
        suite = bench.suite.model_copy(update={"perturbation": perturbation})
        listed = {name: OperatorEndpoint(url=url) for name, url in endpoints.items()}
        return resolve_paraphraser(suite, bench.settings.model_copy(update={"endpoints": listed}))

    named = {"org/rewriter": "grpc://triton:8001", "gpu": "http://gpu/infer"}
    own, by_id = resolved(named), resolved(named, endpoint="gpu", version=WEIGHTS, served_name="big")
    operators, audited = resolved(named, endpoint=None, chat_template="none"), resolved({}, endpoint=None)
    assert own == EndpointSpec(backend="openai", url=REWRITER, served_name="rewriter", model_version=None, chat=True)
    assert by_id == EndpointSpec(
        backend="infer",
        url="http://gpu/infer",
        served_name="big",
        model_version=WEIGHTS,
        chat=True,
        gets_keys=True,
    )
    assert operators is not None
    assert (operators.backend, operators.url, operators.chat) == ("triton", "grpc://triton:8001", False)
    assert audited is not None
    assert (audited.url, audited.served_name) == (bench.suite.model.endpoint, "rewriter")
    with pytest.raises(BadInputError, match=r"perturbation_config\.paraphraser\.endpoint is 'nobody'"):
        resolved(named, endpoint="nobody")


def test_an_endpoint_of_the_rewording_model_counts_among_those_that_a_suite_names(bench: Bench) -> None:
    assert named_endpoints(bench.suite) == (bench.suite.model.endpoint, REWRITER)
