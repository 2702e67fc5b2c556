"""A search of training data beside an audit: asked for once, awaited before the scorer is, noted once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from proctor.domain.corpus_search import CorpusPlan, CorpusSearch, Searched
from proctor.domain.errors import BadInputError
from proctor.domain.exposure import ExposureVerdict
from proctor.domain.manifest import CompletionSet
from proctor.domain.messages import (
    CorpusSearched,
    EndpointProbed,
    Message,
    Reconcile,
    ScoreAudit,
    SearchCorpus,
    SearchShardOfCorpus,
    ShardOfCorpusSearched,
    StartAudit,
    VariantsBuilt,
)
from proctor.domain.search_shards import cut
from proctor.domain.trial import Completion, Shard
from proctor.exposure import shard_search
from proctor.exposure.tasks import forget_old, found_for, shard_found_for
from proctor.gateway.reading import read_status
from proctor.router import search_dispatch, searching, tasks
from proctor.router.audit import view
from proctor.router.ledger.types import Setback
from proctor.router.work import look
from proctor.runtime.artifacts.store import get_model, put_model
from tests.integration.router_support import PINNED, Bench, router_bench

SECTION = {"corpora": {"pretrain": ["web/*.jsonl"], "tune": ["sft.jsonl"]}, "policy": "verbatim_item"}


def write_corpora(home: Path) -> None:
    (home / "web").mkdir(exist_ok=True)
    (home / "web" / "a.jsonl").write_text('{"text": "Nothing of any sum is written here at all."}\n')
    documents = [{"text": "Question: What is 7 plus one? Answer: 8"}, {"text": "What is 70 and one more?"}]
    (home / "sft.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    write_corpora(tmp_path)
    with router_bench(tmp_path, valkey_url, monkeypatch, exposure_config=SECTION) as made:
        yield made


def to_answering(bench: Bench) -> tuple[str, SearchCorpus]:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    assert not searches(bench)
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    (request,) = searches(bench)
    bench.sent.clear()
    tasks.variants_built(VariantsBuilt(audit_id=audit, variants=bench.variants(audit)))
    return audit, request


def searches(bench: Bench) -> list[SearchCorpus]:
    return [message for message in bench.sent if isinstance(message, SearchCorpus)]


def answer_everything(bench: Bench) -> list[Message]:
    """Have every shard answered; returns what was sent beside shards."""
    beside: list[Message] = []
    while True:
        beside += [message for message in bench.sent if not hasattr(message, "shards")]
        shards = bench.handed_out()
        if not shards:
            return [*beside, *bench.sent]
        for one in shards:
            trials = get_model(bench.artifacts, one.shard, Shard).trials
            said = CompletionSet(completions=tuple(Completion(trial_id=trial.trial_id, text="1") for trial in trials))
            bench.answer(one, completions=put_model(bench.artifacts, said), n_trials=len(trials))


def scoring(sent: list[Message]) -> list[ScoreAudit]:
    return [message for message in sent if isinstance(message, ScoreAudit)]


def test_the_worker_finds_by_the_plan_what_stands_in_the_files(bench: Bench) -> None:
    _, request = to_answering(bench)
    answer = found_for(request, bench.settings, bench.artifacts)
    assert answer.plan == request.plan
    assert answer.searched.found is not None
    found = get_model(bench.artifacts, answer.searched.found, CorpusSearch)
    (item,) = found.items
    assert (item.item_id, item.verdict) == ("q7", ExposureVerdict.INVALID_EVIDENCE)
    (span,) = item.spans
    assert (span.stage, span.file, span.document, span.text) == ("tune", "sft.jsonl", 1, "What is 7 plus one")
    assert {stage: one.documents for stage, one in found.stages.items()} == {"pretrain": 1, "tune": 2}
    assert found_for(request, bench.settings, bench.artifacts) == answer


def test_no_decision_before_the_search_is_there_and_then_one(bench: Bench) -> None:
    audit, request = to_answering(bench)
    assert not scoring(answer_everything(bench))
    assert bench.state(audit).value == "scoring"
    assert read_status(view(bench.records, audit), bench.records, None).searching
    answer = found_for(request, bench.settings, bench.artifacts)
    bench.sent.clear()
    tasks.corpus_searched(answer)
    (message,) = scoring(bench.sent)
    assert (message.searched, message.version) == (answer.searched, 3)
    assert not read_status(view(bench.records, audit), bench.records, None).searching


def test_a_search_that_ends_first_is_kept_until_the_answers_are_there(bench: Bench) -> None:
    audit, request = to_answering(bench)
    answer = found_for(request, bench.settings, bench.artifacts)
    tasks.corpus_searched(answer)
    assert bench.state(audit).value == "answering"
    (message,) = scoring(answer_everything(bench))
    assert message.searched == answer.searched


def test_an_answer_that_comes_twice_is_noted_once(bench: Bench) -> None:
    audit, request = to_answering(bench)
    answer = found_for(request, bench.settings, bench.artifacts)
    tasks.corpus_searched(answer)
    before = bench.records.audit(audit)
    tasks.corpus_searched(answer)
    tasks.corpus_searched(answer.model_copy(update={"searched": Searched(error="another worker could not")}))
    assert bench.records.audit(audit) == before


def test_an_answer_to_another_plan_is_late(bench: Bench) -> None:
    audit, _ = to_answering(bench)
    tasks.corpus_searched(CorpusSearched(audit_id=audit, plan="sha256:" + "0" * 64, searched=Searched(error="old")))
    assert view(bench.records, audit).inputs.searching


def test_a_request_is_sent_again_only_where_its_answer_is_overdue(bench: Bench) -> None:
    audit, request = to_answering(bench)
    tasks.reconcile(Reconcile())
    assert not searches(bench)
    bench.ledger.give_turn_back(f"search:{audit}")
    tasks.reconcile(Reconcile())
    assert searches(bench) == [request]


def test_a_request_that_could_not_be_sent_is_sent_by_the_next_who_looks(bench: Bench) -> None:
    audit, request = to_answering(bench)
    bench.ledger.give_turn_back(f"search:{audit}")
    bench.broker_is_down = True
    tasks.reconcile(Reconcile())
    bench.broker_is_down = False
    tasks.reconcile(Reconcile())
    assert searches(bench) == [request]


def test_a_search_that_failed_lets_the_audit_go_on_without_the_channel(bench: Bench) -> None:
    audit, request = to_answering(bench)
    tasks.corpus_searched(
        CorpusSearched(audit_id=audit, plan=request.plan, searched=Searched(error="sft.jsonl is not there"))
    )
    (message,) = scoring(answer_everything(bench))
    assert message.searched == Searched(error="sft.jsonl is not there")


def test_a_search_that_failed_fails_an_audit_that_requires_it_and_is_made_again_when_it_goes_on(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_corpora(tmp_path)
    required = {"exposure_config": SECTION, "scoring_config": {"required_channels": ["perturbation", "exposure"]}}
    with router_bench(tmp_path, valkey_url, monkeypatch, **required) as bench:
        audit, request = to_answering(bench)
        tasks.corpus_searched(
            CorpusSearched(audit_id=audit, plan=request.plan, searched=Searched(error="sft.jsonl is not there"))
        )
        assert bench.state(audit).value == "failed"
        assert "sft.jsonl is not there" in bench.records.audit(audit).detail
        bench.sent.clear()
        assert bench.start_again() == audit
        assert searches(bench) == [request]


def test_a_paused_audit_asks_for_no_search(bench: Bench) -> None:
    audit = bench.submit()
    seen = view(bench.records, audit)
    paused = seen.inputs.model_copy(update={"paused": True}).plain()
    assert bench.records.advance(
        audit, seen.record.state, expected=[seen.record.state], expected_inputs=seen.record.inputs, inputs=paused
    )
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    assert not searches(bench)


def test_a_pattern_that_matches_nothing_puts_nothing_on_record(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = {"corpora": {"tune": ["sft/*.jsonl"]}}
    with (
        router_bench(tmp_path, valkey_url, monkeypatch, exposure_config=section) as bench,
        pytest.raises(BadInputError, match=r"exposure_config\.corpora\.tune: 'sft/\*\.jsonl' matches no file"),
    ):
        bench.submit()


def test_the_plan_is_on_the_card_and_follows_what_the_files_hold(bench: Bench, tmp_path: Path) -> None:
    card = view(bench.records, bench.submit()).card.contamination_policy["exposure"]
    assert (card["policy"], card["stages"], card["normalisation"]) == ("verbatim_item", ["pretrain", "tune"], "words-1")
    (tmp_path / "sft.jsonl").write_text('{"text": "another"}\n')
    other = view(bench.records, bench.submit()).card.contamination_policy["exposure"]
    assert other["corpora_digest"] != card["corpora_digest"]


def test_a_file_that_changed_since_is_no_evidence(bench: Bench, tmp_path: Path) -> None:
    _, request = to_answering(bench)
    (tmp_path / "sft.jsonl").write_text('{"text": "What is 7 plus one? 8"}\n')
    with pytest.raises(BadInputError, match=r"sft\.jsonl is not what it was when the audit was submitted"):
        found_for(request, bench.settings, bench.artifacts)


def test_a_worker_with_a_folder_of_corpora_reads_no_other_file(bench: Bench, tmp_path: Path) -> None:
    _, request = to_answering(bench)
    (tmp_path / "corpora").mkdir()
    settings = bench.settings.model_copy(update={"corpora": tmp_path / "corpora"})
    with pytest.raises(BadInputError, match="does not lie in PROCTOR_CORPORA"):
        found_for(request, settings, bench.artifacts)


def test_a_suite_without_training_data_sends_what_it_always_sent(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        audit = bench.to_answering()
        (message,) = scoring(answer_everything(bench))
        assert message.version == 1
        assert not {"corpora", "searched"} & set(view(bench.records, audit).inputs.plain())
        assert "exposure" not in view(bench.records, audit).card.contamination_policy


def test_a_plan_says_what_it_is_of_whatever_folder_it_lies_in(bench: Bench) -> None:
    digest = view(bench.records, bench.submit()).inputs.corpora
    assert digest is not None
    plan = get_model(bench.artifacts, digest, CorpusPlan)
    assert [file.path for file in plan.stages["pretrain"]] == ["web/a.jsonl"]
    assert plan.corpora_digest == plan.model_copy(update={"folder": "/elsewhere"}).corpora_digest


@pytest.fixture
def many(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Training data that make several shards: of 400 bytes, in pieces of 100."""
    (tmp_path / "web").mkdir()
    for name in "abc":
        lines = [{"text": f"{name} {n}: nothing of a sum here"} for n in range(12)]
        (tmp_path / "web" / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    documents = [{"text": f"Question: What is {n} plus one? Answer: {n + 1}"} for n in (7, 8, 9, 7)] * 4
    (tmp_path / "sft.jsonl").write_text("".join(json.dumps(one) + "\n" for one in documents))
    monkeypatch.setattr(search_dispatch, "cut", partial(cut, shard_bytes=400, piece_bytes=100))
    monkeypatch.setattr(shard_search, "cut", partial(cut, shard_bytes=400, piece_bytes=100))
    with router_bench(tmp_path, valkey_url, monkeypatch, exposure_config=SECTION) as made:
        yield made


def shards_sent(bench: Bench) -> list[SearchShardOfCorpus]:
    found = [message for message in bench.sent if isinstance(message, SearchShardOfCorpus)]
    bench.sent[:] = [message for message in bench.sent if not isinstance(message, SearchShardOfCorpus)]
    return found


def probed(bench: Bench) -> str:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    return audit


def search_all(bench: Bench, *, lose: int = 0, twice: bool = False) -> int:
    """Have every shard searched, the first few messages lost; returns how many there were."""
    searched = 0
    while asked := shards_sent(bench):
        for message in asked:
            if lose:
                lose -= 1
                continue
            answer = shard_found_for(message, bench.settings, bench.artifacts)
            searched += 1
            for _ in range(2 if twice else 1):
                tasks.shard_of_corpus_searched(answer)
    return searched


def whole_search(bench: Bench, audit: str) -> CorpusSearched:
    """What one worker finds that searches all of it."""
    inputs = view(bench.records, audit).inputs
    assert inputs.corpora is not None
    request = SearchCorpus(audit_id=audit, items=inputs.items, plan=inputs.corpora)
    return found_for(request, bench.settings, bench.artifacts)


def test_many_training_data_are_searched_in_shards_that_come_to_what_one_worker_finds(many: Bench) -> None:
    audit = probed(many)
    assert not searches(many)
    assert search_all(many, twice=True) > 4
    (request,) = searches(many)
    assert request.parts is not None
    together = found_for(request, many.settings, many.artifacts)
    assert together == whole_search(many, audit)
    tasks.corpus_searched(together)
    assert not view(many.records, audit).inputs.searching
    assert together.searched.found is not None
    found = get_model(many.artifacts, together.searched.found, CorpusSearch)
    assert [(item.item_id, item.spans[0].document) for item in found.items] == [("q7", 1), ("q8", 2), ("q9", 3)]


def test_no_more_shards_are_under_way_than_workers_can_begin_with(many: Bench) -> None:
    probed(many)
    first = shards_sent(many)
    assert len(first) == 2
    tasks.reconcile(Reconcile())
    assert not shards_sent(many)
    tasks.shard_of_corpus_searched(shard_found_for(first[0], many.settings, many.artifacts))
    assert len(shards_sent(many)) == 1


def test_shards_whose_messages_were_lost_are_searched_by_another_worker(many: Bench) -> None:
    audit = probed(many)
    search_all(many, lose=2)
    assert not searches(many)
    stage = searching.ledger_stage(str(view(many.records, audit).inputs.corpora))
    for shard_id in many.ledger.leases(audit, stage):
        many.ledger.fail(audit, stage, shard_id, 1, setback=Setback.LOST, cause="its worker died")
    tasks.reconcile(Reconcile())
    search_all(many)
    (request,) = searches(many)
    assert found_for(request, many.settings, many.artifacts) == whole_search(many, audit)


def test_a_shard_that_cannot_be_searched_ends_the_search_with_its_reason(many: Bench, tmp_path: Path) -> None:
    audit = probed(many)
    (tmp_path / "sft.jsonl").write_text("changed\n")
    while asked := shards_sent(many):
        for message in asked:
            try:
                answer = shard_found_for(message, many.settings, many.artifacts)
            except BadInputError as error:
                answer = ShardOfCorpusSearched(
                    audit_id=audit, plan=message.plan, shard_id=message.shard_id, attempt=message.attempt,
                    error=str(error), retryable=False,
                )  # fmt: skip
            tasks.shard_of_corpus_searched(answer)
    (ended,) = [message for message in many.sent if isinstance(message, CorpusSearched)]
    assert ended.searched.error == "sft.jsonl is not what it was when the audit was submitted"
    tasks.corpus_searched(ended)
    assert view(many.records, audit).inputs.searched == ended.searched


def test_a_search_in_shards_is_no_part_of_what_an_audit_spends_and_leaves_no_lease(many: Bench) -> None:
    audit = probed(many)
    search_all(many)
    assert many.ledger.spent_by_stage(audit) == {}
    many.ledger.expire(audit, timedelta(seconds=5))
    stage = searching.ledger_stage(str(view(many.records, audit).inputs.corpora))
    assert many.ledger.leases(audit, stage) == []
    assert many.ledger.standing(audit, stage, 0).complete


def test_what_was_searched_is_not_searched_again_by_an_audit_that_goes_on(many: Bench) -> None:
    audit = probed(many)
    first = shards_sent(many)
    tasks.shard_of_corpus_searched(shard_found_for(first[0], many.settings, many.artifacts))
    dispatcher = tasks._dispatcher()
    dispatcher.fail(dispatcher.view(audit), "somebody pulled the plug")
    many.sent.clear()
    assert many.start_again() == audit
    again = {message.shard_id for message in shards_sent(many)}
    assert first[0].shard_id not in again
    assert first[1].shard_id in again


def test_workers_are_scaled_by_the_shards_that_are_left_and_by_one_where_there_are_none(many: Bench) -> None:
    def waiting() -> int:
        engine = sa.create_engine(many.settings.records_url)
        try:
            return look(engine, many.settings.ledger_url, many.settings.ledger_url).by_service["perturbation"]
        finally:
            engine.dispose()

    audit = probed(many)
    n_shards = len(many.ledger.entries(audit, searching.ledger_stage(str(view(many.records, audit).inputs.corpora))))
    rewording = 1
    assert waiting() == rewording + n_shards > 3
    search_all(many)
    assert waiting() == rewording + 1
    tasks.corpus_searched(whole_search(many, audit))
    assert waiting() == rewording


def test_what_was_searched_is_kept_for_a_month(bench: Bench) -> None:
    _, request = to_answering(bench)
    found_for(request, bench.settings, bench.artifacts)
    kept = bench.settings.home / "searches"
    first, *others = sorted(kept.iterdir())
    assert others
    now_s = time.time()
    os.utime(first, (now_s, now_s - 31 * 24 * 3600))
    forget_old(kept, now_s - 30 * 24 * 3600)
    assert sorted(kept.iterdir()) == others
    found_for(request, bench.settings, bench.artifacts)
    assert first.exists()
