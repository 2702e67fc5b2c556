"""The benchmark of orders asks the same prompts in each, reads what a server says, and holds claims to the medians.

Nothing is timed here, and no server is asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import bench_prefix_order
from bench_prefix_order import DRAWN, NOT_SET_UP, PLANNED, Cache, Pass, blocks_for_all, orders, said
from benchmarking.passages import about_passages
from benchmarking.prefix_cache import Looked, read
from proctor.domain.trial import Arm, Shard
from proctor.localstack.real_models import RealModels

_METRICS = """\
# HELP vllm:prefix_cache_queries_total Prefix cache queries, in terms of number of queried tokens.
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="smollm2"} 49840.0
vllm:prefix_cache_queries_total{engine="1",model_name="smollm2"} 160.0
vllm:prefix_cache_queries_created{engine="0",model_name="smollm2"} 1.7956212999363647e+09
vllm:prefix_cache_hits_total{engine="0",model_name="smollm2"} 3.9104e+04
vllm:external_prefix_cache_hits_total{engine="0",model_name="smollm2"} 7.0
"""


def _passages_in_turn(shards: Sequence[Shard], arm: Arm) -> list[str]:
    """Of each run of an arm's prompts that share a passage, the passage."""
    prompts = [trial.prompt for shard in shards if shard.arm is arm for trial in shard.trials]
    return [passage for passage, _ in groupby(prompt.rpartition("\n")[0].rpartition("\n")[0] for prompt in prompts)]


def test_the_same_seed_tells_the_same_passages_and_another_tells_others() -> None:
    first, again, other = (about_passages(3, 4, 2, seed) for seed in (1, 1, 2))
    assert first == again
    assert not {item.question for item in first.items} & {item.question for item in other.items}


def test_questions_of_a_passage_begin_with_it_and_every_wording_is_another() -> None:
    items, variants = about_passages(3, 4, 2, 1)
    texts = [*(item.question for item in items), *(variant.question for variant in variants)]
    assert len(set(texts)) == 3 * 4 * (1 + 2)
    for cluster in ("passage-0", "passage-1", "passage-2"):
        of = {item.question.rpartition("\n")[0] for item in items if item.cluster == cluster}
        assert len(of) == 1
        # Some 300 tokens.
        assert 150 < len(of.pop().split()) < 300


def test_both_orders_ask_the_same_prompts_and_only_one_keeps_passages_together() -> None:
    asked = orders(about_passages(8, 4, 1, 0), seed=0)
    prompts = {name: [t.prompt for shard in shards for t in shard.trials] for name, shards in asked.items()}
    assert sorted(prompts[PLANNED]) == sorted(prompts[DRAWN])
    assert len(set(prompts[PLANNED])) == 8 * 4 * 2
    for arm in (Arm.CANONICAL, Arm.PERTURBED):
        assert len(_passages_in_turn(asked[PLANNED], arm)) == 8
        assert len(_passages_in_turn(asked[DRAWN], arm)) > 2 * 8


def test_a_cache_for_all_holds_each_passage_once_and_what_each_wording_adds() -> None:
    few, more = (blocks_for_all(about_passages(4, questions, 1, 0)) for questions in (2, 5))
    assert more - few == pytest.approx(2 * (4 * 3) * 2, abs=4)
    assert few * 32 > 4 * 250


def test_the_counts_of_a_server_are_the_sums_over_its_engines() -> None:
    looked = read(_METRICS)
    assert looked == Looked(50_000, 39_104)
    assert looked.since(Looked(40_000, 34_104)) == Looked(10_000, 5_000)
    assert looked.computed == 10_896
    assert looked.hit_rate == pytest.approx(0.78208)
    with pytest.raises(LookupError, match="prefix_cache_queries_total"):
        read("vllm:num_preemptions_total 0.0\n")


def _passes(found: Sequence[int], seconds: Sequence[float]) -> list[Pass]:
    return [Pass(Looked(1_000, hits), taken) for hits, taken in zip(found, seconds, strict=True)]


def test_a_claim_is_the_ratio_of_the_medians_of_both_orders() -> None:
    small = Cache("64 tokens", {PLANNED: _passes([800, 780, 100], [9, 11, 10]), DRAWN: _passes([390] * 3, [20, 21, 5])})
    large = Cache("all", {PLANNED: _passes([800], [10.5]), DRAWN: _passes([800], [10.0])})
    figures, claims = said([small, large])
    assert [claim.value for claim in claims] == pytest.approx([780 / 390, 10 / 20, 1.0, 1.05])
    assert all(claim.holds for claim in claims)
    assert [figure.value for figure in figures[:3]] == [pytest.approx(78.0), 220, 10]
    slower = Cache("64 tokens", {PLANNED: _passes([390], [10.5]), DRAWN: _passes([400], [10.0])})
    assert [claim.holds for claim in said([slower])[1]] == [False, False]


def test_without_what_make_models_sets_up_it_says_so_in_a_sentence_and_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(RealModels, "here", lambda: RealModels(tmp_path))
    assert bench_prefix_order.main([]) == NOT_SET_UP
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("nothing was measured, since there is no vLLM to ask: ")
    assert shown.err.endswith("run: make models\n")


def test_each_order_is_asked_once_a_round_of_a_small_cache_and_then_of_one_for_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, caches = list[int](), list[int]()

    def start(models: RealModels, ports: object, *, options: dict[str, str], variables: object) -> Any:
        caches.append(int(options["--num-gpu-blocks-override"]))
        return type("Command", (), {"url": "http://127.0.0.1:9/v1"})()

    def answer(url: str, shards: Sequence[Shard]) -> Pass:
        asked.append(len(shards))
        return Pass(Looked(100, 50), 1.0)

    monkeypatch.setattr(RealModels, "lacking", lambda *_: None)
    monkeypatch.setattr(bench_prefix_order, "vllm", start)
    monkeypatch.setattr(bench_prefix_order, "running", lambda *_: nullcontext())
    monkeypatch.setattr(bench_prefix_order, "_pass", answer)
    sizes = ["--passages", "8", "--questions", "8", "--rewordings", "1", "--rounds", "2"]
    assert bench_prefix_order.main([*sizes, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert caches == [64, blocks_for_all(about_passages(8, 8, 1, 0))]
    # One shard that does not count, then two rounds of both orders, of each cache.
    assert asked == 2 * [1, *(2 * 2 * [4])]
    assert document["machine"]["benchmark"] == "8 passages × 8 questions × 2 wordings"
    assert len(document["claims"]) == 4
