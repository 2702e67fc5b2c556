"""A stage of another distribution, used in an audit: the recipe of docs/extending.md as it stands there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from proctor.domain.manifest import AuditManifest, RewriteSet
from proctor.domain.messages import Reconcile, ScoreAudit, StartAudit
from proctor.domain.plugins import HANDED_IN
from proctor.domain.routing import ProtocolSection
from proctor.domain.suite import Suite
from proctor.domain.trial import ANSWER_STAGE
from proctor.gateway.audits import LocalDesk
from proctor.gateway.reading import Counts
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.budget import cost_of
from proctor.router.stages.registry import under_way
from proctor.runtime.artifacts.calls import calls_of
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.records.store import AuditState
from proctor.runtime.redis.presence import Held
from tests.installed_plugins import Plugins
from tests.integration.router_support import Bench, one_by_one, router_bench
from tests.integration.test_router_transmission import finish, refuses
from tests.recipes import recipes

STAGE = "self_report"
Opened = Callable[..., AbstractContextManager[Bench]]


@pytest.fixture(autouse=True)
def _installed(plugins: Plugins) -> None:
    plugins.install(*recipes("A stage"))


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch, protocol_config={"stages": [STAGE]}) as bench:
        yield bench


def test_the_model_is_asked_before_it_answers_and_what_it_says_stands_in_the_manifest(bench: Bench) -> None:
    audit = bench.to_answering()
    assert bench.state(audit) is AuditState.ASKING
    stage = under_way(view(bench.records, audit))
    assert stage is not None
    assert stage.name == "self_report-1"
    asked = finish(bench, "self_report-1")
    assert len(asked) == 100
    assert all(trial.prompt.startswith("Have you seen this question before?") for trial in asked)
    assert bench.state(audit) is AuditState.ANSWERING
    answers = finish(bench, ANSWER_STAGE)
    assert len(answers) == 200
    (scoring,) = bench.sent
    assert isinstance(scoring, ScoreAudit)
    manifest = get_model(bench.artifacts, scoring.manifest, AuditManifest)
    said = get_model(bench.artifacts, manifest.asked[STAGE], RewriteSet)
    trials = [trial for trial, completion in calls_of(bench.artifacts, said) if completion is not None]
    assert {trial.trial_id for trial in trials} == {trial.trial_id for trial in asked}
    assert not {trial.trial_id for trial in asked} & {trial.trial_id for trial in answers}


def test_its_prompts_count_for_the_budget_at_the_price_of_the_model_under_audit(bench: Bench) -> None:
    audit = bench.to_answering()
    (first, *_) = bench.shards()
    bench.answer(first, completions="sha256:" + "1" * 64, input_tokens=1000, output_tokens=10)
    spent = bench.ledger.spent_by_stage(audit)
    assert spent["self_report-1"].input_tokens == 1000
    terms = view(bench.records, audit).inputs.terms
    assert cost_of(terms, spent) == 0
    from proctor.domain.prices import Prices

    priced = terms.model_copy(update={"answer": Prices(input_per_million=2.0, output_per_million=0.0)})
    assert cost_of(priced, spent) == pytest.approx(0.002)


def test_where_nothing_is_answered_the_audit_fails_and_asks_again_when_it_is_started_again(bench: Bench) -> None:
    audit = bench.to_answering()
    finish(bench, "self_report-1", refuses)
    assert bench.state(audit) is AuditState.FAILED
    assert "(stage self_report) answered none of 100 prompts" in bench.records.audit(audit).detail
    bench.sent.clear()
    tasks.start(StartAudit(audit_id=audit))
    assert bench.start_again() == audit
    assert bench.state(audit) is AuditState.ASKING
    assert {shard.stage for shard in one_by_one(bench.sent)} == {"self_report-2"}


def test_a_suite_that_asks_for_a_stage_which_is_not_installed_is_refused(bench: Bench) -> None:
    asked: dict[str, Any] = {**bench.suite.plain(), "protocol_config": {"stages": ["telepathy"]}}
    with pytest.raises(ValidationError, match="names a stage 'telepathy' that no installed plug-in brings"):
        Suite.model_validate(asked, context=HANDED_IN)


def test_a_router_without_the_plug_in_fails_the_audit_and_goes_on_once_it_has_it(
    bench: Bench, plugins: Plugins
) -> None:
    audit = bench.submit()
    plugins.uninstall()
    tasks.start(StartAudit(audit_id=audit))
    assert bench.state(audit) is AuditState.FAILED
    assert bench.records.audit(audit).detail == (
        "the router could not go on: the suite names the stage self_report, which is not installed here; install its "
        "plug-in"
    )
    plugins.install(*recipes("A stage"))
    assert bench.start_again() == audit
    assert bench.state(audit) is AuditState.REWORDING


@pytest.mark.parametrize("lost", [True, False])
def test_a_router_that_comes_upon_an_audit_without_its_plug_in_fails_it_and_no_other(
    lost: bool, bench: Bench, plugins: Plugins
) -> None:
    audit = bench.to_answering()
    assert bench.state(audit) is AuditState.ASKING
    if lost:
        (shard, *_) = bench.shards()
        bench.presence.announce("gone", "inference", 1)
        bench.presence.holding("gone", [Held(audit, shard.stage, shard.shard_id, shard.attempt)])
        bench.presence.withdraw("gone")
    bench.suite = bench.suite.model_copy(update={"audit_suite_id": "other", "protocol": ProtocolSection()})
    other = bench.to_answering()
    bench.sent.clear()
    plugins.uninstall()
    tasks.reconcile(Reconcile())
    assert bench.state(audit) is AuditState.FAILED
    assert "there is no stage 'self_report'" in bench.records.audit(audit).detail
    assert bench.state(other) is AuditState.ANSWERING
    assert {shard.audit_id for shard in bench.handed_out()} == {other}


def test_an_audit_is_listed_shown_and_cancelled_where_its_plug_in_is_not_installed(
    bench: Bench, plugins: Plugins
) -> None:
    audit = bench.to_answering()
    desk = LocalDesk(
        bench.settings, bench.records, Counts(bench.ledger, bench.pools), lambda: bench.artifacts, bench.send
    )
    assert desk.status(audit).stage == "self_report-1"
    plugins.uninstall()
    (listed,) = desk.audits()
    assert listed == desk.status(audit)
    assert (listed.state, listed.stage, listed.trials) == (AuditState.ASKING, None, None)
    assert desk.cancel(audit).state is AuditState.CANCELLED


def test_an_audit_without_stages_of_plug_ins_is_written_as_before(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").mkdir()
    with router_bench(tmp_path / "plain", valkey_url, monkeypatch) as bench:
        audit = bench.to_answering()
        assert bench.state(audit) is AuditState.ANSWERING
        assert "stages" not in bench.suite.plain()["protocol_config"]
        assert "asked" not in bench.records.audit(audit).inputs


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("1 / 0", "failed at item 'q0': ZeroDivisionError: division by zero; mend that distribution"),
        ("[item.question] * 2", "gave 2 prompts for item 'q0', and says that it gives 1; have prompts_an_item say 2"),
        ("[7]", "gave item 'q0' a prompt that is a int, and not a text"),
        ("None", "failed at item 'q0': TypeError: 'NoneType' object is not iterable"),
    ],
)
def test_a_stage_that_cannot_say_what_it_asks_fails_the_audit_at_once_under_its_name(
    body: str, said: str, bench: Bench, plugins: Plugins
) -> None:
    modules, points = recipes("A stage")
    broken = f"{modules[STAGE]}\nSelfReport.prompts = lambda self, item, suite: {body}\n"
    plugins.install({**modules, STAGE: broken}, points)
    audit = bench.to_answering()
    assert bench.state(audit) is AuditState.FAILED
    assert f"the stage 'self_report' of toy 1.2 {said}" in bench.records.audit(audit).detail
