"""The noise channel of an audit, through the real plan and scorer: made-up routers and workers whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from proctor.cli.logs.noise import document
from proctor.domain.evidence import NoiseEvidence, Verdict
from proctor.domain.item import Item
from proctor.domain.manifest import RewriteSet
from proctor.domain.routing import RouterKind
from proctor.domain.suite import Suite
from proctor.domain.trial import Completion, Trial
from proctor.evidence.intervals import PSEUDO_ITEMS
from proctor.evidence.noise.comparing import Compared, compare
from proctor.evidence.noise.summary import noise_summary
from proctor.formats.router_table import read_router_table
from proctor.formats.router_table_writing import router_table
from proctor.router.transmission import plan_routers, plan_workers
from proctor.runtime.artifacts.store import put_model
from proctor.scorer.channels.noise.section import noise_section
from proctor.scorer.grading.loading import StoredMessages
from tests.scored_audits import AskedTrial, SampleScore, StoredAudit, cut_into_shards, manifest_of, score

LETTERS = "ABCDEFGHIJ"
Router = Callable[[Trial, Item], str]
Worker = Callable[[Trial, Item], str | None]
"""The answer to a prompt; None where nothing comes back."""


def suite(**protocol: Any) -> Suite:
    return Suite.model_validate(
        {
            "audit_suite_id": "s",
            "model_config": {"model_id": "org/m", "model_version": "sha256:" + "ab" * 32, "endpoint": "http://h/v1"},
            "dataset_config": {"benchmark_name": "b"},
            "protocol_config": {"protocol": "router_worker", **protocol},
        }
    )


def items(count: int) -> list[Item]:
    words = ["ash", "birch", "cedar", "date", "elm", "fir", "gum", "holly", "ivy", "jute"]
    return [
        Item(item_id=f"i{n:03}", question=f"Question {n}?", choices=tuple(words), target=words[n % 10])
        for n in range(count)
    ]


def full(trial: Trial, item: Item) -> str:
    """Passes on what a worker needs: which item it is, and its options."""
    kind = "clean" if trial.arm.startswith(RouterKind.CLEAN) else "noisy"
    options = "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, item.choices, strict=True))
    return f"{kind} problem {item.item_id}\n{options}"


def right(item: Item) -> str:
    return LETTERS[item.choices.index(item.target)]


def wrong(item: Item) -> str:
    return LETTERS[(item.choices.index(item.target) + 1) % 10]


def scored(
    asked: Sequence[Item],
    worker: Worker,
    router: Router = full,
    *,
    audit: Suite | None = None,
    lost: Collection[str] = (),
) -> SampleScore:
    """Run the protocol: `router` writes, `worker` answers; messages of the trials in `lost` never come."""
    audit = audit or suite()
    by_id = {item.item_id: item for item in asked}
    messages = {
        (trial.arm, trial.item_id, trial.router_index): router(trial, by_id[trial.item_id])
        for trial in plan_routers(asked, audit.protocol, chat=False)
        if trial.trial_id not in lost
    }
    answered = []
    for trial in plan_workers(asked, audit.protocol, messages):
        text = worker(trial, by_id[trial.item_id])
        answered.append(
            AskedTrial(
                trial,
                Completion(trial_id=trial.trial_id, text=text or "", error="lost" if text is None else None),
            )
        )
    return score(audit, asked, answered, messages=messages)


def noise(*arguments: Any, **options: Any) -> NoiseEvidence:
    found = scored(*arguments, **options).evidence.noise
    assert found is not None
    return found


def steady(trial: Trial, item: Item) -> str:
    """Knows three items in four, whatever it is shown."""
    return wrong(item) if item.item_id.endswith(("3", "7")) else right(item)


def remembers(trial: Trial, item: Item) -> str:
    """Is right wherever enough noisy messages are put together: each has a third of the cue."""
    cues = trial.prompt.count(f"noisy problem {item.item_id}")
    return right(item) if cues * 4 > int(item.item_id[1:]) % 40 else wrong(item)


def test_a_worker_that_noise_does_not_move_is_clean() -> None:
    found = noise(items(400), steady)
    assert found.verdict is Verdict.CLEAN
    assert {one.gain.value for one in found.own_baseline} == {0.0}
    assert found.n_items == 400
    assert found.n_left_out == 0


def test_the_same_answers_on_few_items_are_inconclusive() -> None:
    assert noise(items(30), steady).verdict is Verdict.INCONCLUSIVE


def test_a_worker_that_remembers_from_cues_gains_more_with_every_router_and_is_contaminated() -> None:
    found = noise(items(120), remembers)
    gains = [one.gain.value for one in found.own_baseline]
    assert gains == sorted(gain for gain in gains if gain is not None)
    assert len(set(gains)) == 9
    assert found.verdict is Verdict.CONTAMINATED
    assert found.summary is not None
    assert found.summary.models[0].sensitivity.value == pytest.approx(0.1, abs=0.005)


def test_a_worker_that_is_better_with_more_messages_of_any_kind_is_not_contaminated() -> None:
    def votes(trial: Trial, item: Item) -> str:
        return right(item) if trial.prompt.count("Message ") * 4 > int(item.item_id[1:]) % 40 else wrong(item)

    found = noise(items(120), votes)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert {one.gain.value for one in found.matched} == {0.0}
    assert any("as many clean routers" in reason for reason in found.reasons)
    unmatched = noise(items(120), votes, audit=suite(matched_clean=False))
    assert unmatched.verdict is Verdict.CONTAMINATED, "the matched arm is what tells the two apart"
    assert unmatched.matched == ()


def test_a_gain_on_items_that_a_router_gave_away_is_the_router_s() -> None:
    def leaking(trial: Trial, item: Item) -> str:
        said = full(trial, item)
        return f"{said}\nThe answer is {right(item)}." if said.startswith("noisy") else said

    def follows(trial: Trial, item: Item) -> str:
        return right(item) if "The answer is" in trial.prompt else wrong(item)

    found = noise(items(60), follows, leaking)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.without_leaks == ()
    noisy = next(arm for arm in found.leaks if arm.arm == "noisy_router_9")
    assert (noisy.n_messages, noisy.n_stating, noisy.n_right, noisy.items_given_away) == (540, 540, 540, 60)
    assert noisy.read_off.value == 1.0
    assert any("gives the answer away" in reason for reason in found.reasons)


def test_routers_that_print_a_letter_instead_of_a_message_are_read_off_as_well_as_they_answer() -> None:
    found = noise(
        items(100), lambda trial, item: trial.prompt[-len("A\nAnswer:")], lambda trial, item: steady(trial, item)
    )
    for arm in found.leaks:
        assert arm.n_stating == arm.n_messages
        assert arm.read_off.value == pytest.approx(0.8)
    assert {one.gain.value for one in found.own_baseline} == {0.0}


def test_wrong_answers_that_routers_state_are_counted_and_give_nothing_away() -> None:
    found = noise(items(40), steady, lambda trial, item: f"{full(trial, item)}\nThe answer is {wrong(item)}.")
    assert {(arm.n_right, arm.items_given_away, arm.read_off.value) for arm in found.leaks} == {(0, 0, 0.0)}
    assert all(arm.n_stating == arm.n_messages for arm in found.leaks)


def test_an_error_row_is_left_out_of_every_arm_and_is_no_wrong_answer() -> None:
    def fails_once(trial: Trial, item: Item) -> str | None:
        return None if (trial.arm, trial.item_id) == ("noisy_router_4", "i000") else steady(trial, item)

    found = noise(items(40), fails_once)
    assert (found.n_items, found.n_left_out) == (39, 1)
    assert {one.n for one in (*found.own_baseline, *found.matched)} == {39}
    assert {one.degrade for one in found.own_baseline} == {0}


def test_a_lost_message_leaves_its_item_out() -> None:
    asked = items(40)
    gone = list(plan_routers(asked, suite().protocol, chat=False))[5].trial_id
    found = noise(asked, steady, lost={gone})
    assert (found.n_items, found.n_left_out) == (39, 1)


def test_too_many_missing_items_make_the_channel_invalid() -> None:
    found = noise(items(40), lambda trial, item: None if item.item_id < "i003" else steady(trial, item))
    assert found.verdict is Verdict.INVALID
    assert "7.5 % of the 40 items" in found.reasons[0]


def test_without_a_single_answer_the_channel_is_invalid_and_has_no_table() -> None:
    found = noise(items(5), lambda trial, item: None)
    assert found.verdict is Verdict.INVALID
    assert (found.settings, found.summary, found.leaks, found.own_baseline) == ((), None, (), ())


def test_a_baseline_that_loses_its_answers_to_parsing_makes_no_gain() -> None:
    def mumbles(trial: Trial, item: Item) -> str:
        return "…" if trial.arm == "clean_router_1" and item.item_id.endswith(("1", "2")) else right(item)

    found = noise(items(100), mumbles)
    assert found.verdict is Verdict.INVALID
    assert "20 % of the answers behind one clean router are empty or unparsable" in found.reasons[0]


def test_noisy_answers_without_an_option_do_not_make_other_channels_invalid() -> None:
    def mumbles(trial: Trial, item: Item) -> str:
        return "…" if trial.arm.startswith("noisy") else right(item)

    evidence = scored(items(50), mumbles).evidence
    assert evidence.noise is not None
    assert evidence.noise.verdict is Verdict.INVALID
    assert {arm.arm for arm in evidence.protocol.arms} == {"canonical", "perturbed"}


def test_a_suite_without_routers_is_not_audited_for_noise() -> None:
    evidence = score(suite(protocol="direct"), items(3), []).evidence
    assert evidence.verdict_of("noise") is Verdict.NOT_AUDITED
    assert "noise" in evidence.not_audited
    assert "noise" not in evidence.plain()


def test_comparisons_are_those_of_scipy_and_of_the_pairs_counted_naively() -> None:
    rng = random.Random(5)
    found = noise(items(80), lambda trial, item: right(item) if rng.random() < 0.6 else wrong(item))
    for one in found.own_baseline:
        changed = one.improve + one.degrade
        assert one.p_value == pytest.approx(stats.binomtest(one.improve, changed, alternative="greater").pvalue)
        assert one.gain.value == pytest.approx(one.noisy_accuracy - one.clean_accuracy)
        padded = np.repeat([1.0, -1.0, 0.0], [one.improve + 1, one.degrade + 1, one.n - changed + 2])
        assert padded.size == one.n + PSEUDO_ITEMS
        half = stats.norm.isf(0.025 / 9) * padded.std(ddof=1) / np.sqrt(padded.size)
        assert one.gain.high == pytest.approx(padded.mean() + half)
        assert one.gain.low == pytest.approx(padded.mean() - half)


def test_the_written_table_is_read_back_and_says_the_same(tmp_path: Path) -> None:
    rng = random.Random(1)
    found = noise(items(37), lambda trial, item: rng.choice([right(item), wrong(item), "…"]))
    path = tmp_path / "routers.csv"
    path.write_bytes(router_table(found.settings))
    table = read_router_table(path)
    assert table == found.settings
    assert found.summary is not None
    assert document(noise_summary(table), rows=9)["settings"] == [one.plain() for one in found.summary.settings]


@pytest.mark.parametrize("sampling", ["nested", "independent"])
def test_the_report_has_a_row_for_every_number_of_routers(sampling: str) -> None:
    section = noise_section(noise(items(20), remembers, audit=suite(max_routers=4, sampling=sampling)))
    assert section is not None
    assert [row[0] for row in section.rows] == ["1", "2", "3", "4"]
    assert {len(row) for row in section.rows} == {len(section.columns)}
    assert section.rows[0][3].startswith("20.0 (")


def test_a_clean_worker_whose_every_answer_is_a_coin_is_seldom_called_contaminated() -> None:
    rng, called = random.Random(11), 0
    for _ in range(40):
        found = noise(
            items(60),
            lambda trial, item: right(item) if rng.random() < 0.5 else wrong(item),
            audit=suite(max_routers=3),
        )
        called += found.verdict is Verdict.CONTAMINATED
    # Each of three comparisons is held to 5 %, and all of them must agree.
    assert called <= 3


def test_messages_are_read_anew_each_time_that_they_are_gone_through() -> None:
    asked = [
        AskedTrial(trial, Completion(trial_id=trial.trial_id, text=f"message {place}"))
        for place, trial in enumerate(plan_routers(items(2), suite(max_routers=2).protocol, chat=False))
    ]
    stored = StoredAudit.of(manifest_of(suite()), items(2), cut_into_shards(asked))
    transmitted = put_model(stored.store, RewriteSet(answered=stored.manifest.answered))
    messages = StoredMessages(stored.store, stored.manifest.model_copy(update={"transmitted": transmitted}))
    assert sorted(messages) == sorted(messages)
    assert {said for _, said in messages} == {f"message {place}" for place in range(len(asked))}
    assert list(StoredMessages(stored.store, stored.manifest)) == []


def in_passages(asked: Sequence[Item], of: int) -> list[Item]:
    return [item.model_copy(update={"cluster": f"p{place // of}"}) for place, item in enumerate(asked)]


def test_items_in_passages_are_compared_by_passage() -> None:
    alone, found = noise(items(400), steady), noise(in_passages(items(400), 2), steady)
    assert alone.clusters is None
    assert found.clusters is not None
    assert found.clusters.n_clusters == 200
    for clustered, single in zip(found.own_baseline, alone.own_baseline, strict=True):
        assert clustered.gain.value == single.gain.value
        assert clustered.p_value >= single.p_value
        assert clustered.gain.high is not None
        assert single.gain.high is not None
        assert clustered.gain.high > single.gain.high
        assert "200 clusters" in clustered.gain.method
    assert any("The items come in 200 clusters" in reason for reason in found.reasons)
    assert found.leaks[0].read_off.value == alone.leaks[0].read_off.value
    assert "200 clusters" in found.leaks[0].read_off.method
    assert "200 clusters" in found.arms[0].accuracy.method


def test_items_that_are_passages_of_their_own_change_no_figure() -> None:
    assert noise(in_passages(items(120), 1), remembers) == noise(items(120), remembers)


def test_a_gain_over_many_passages_is_found_and_one_over_few_is_not_told_apart() -> None:
    assert noise(in_passages(items(200), 2), remembers).verdict is Verdict.CONTAMINATED
    few = noise(in_passages(items(190), 10), remembers)
    assert few.verdict is Verdict.INCONCLUSIVE
    assert "19 clusters" in few.reasons[0]


def test_passages_that_turn_as_a_whole_make_no_significant_gain_by_chance() -> None:
    """Noise turns one passage in ten right and as many wrong: McNemar's test counts each of its ten items."""
    rng, audits, level = np.random.default_rng(4), 300, 0.95
    ids = [f"i{place:03}" for place in range(400)]
    passages = {item: f"p{place // 10}" for place, item in enumerate(ids)}
    clustered = naive = inside = 0
    for _ in range(audits):
        turn, known = rng.random(40), rng.random(40) < 0.5
        before = dict(zip(ids, np.repeat(known, 10).tolist(), strict=True))
        after = dict(zip(ids, np.repeat(np.where(turn < 0.2, ~known, known), 10).tolist(), strict=True))
        family = [Compared(1, "clean_router_1", before, after, ids)]
        [found] = compare(family, level=level, clusters=passages)
        [alone] = compare(family, level=level)
        clustered, naive = clustered + (found.p_value < 0.05), naive + (alone.p_value < 0.05)
        assert found.gain.low is not None
        assert found.gain.high is not None
        inside += found.gain.low <= 0 <= found.gain.high
    assert stats.binomtest(clustered, audits, 0.05, alternative="greater").pvalue > 1e-3
    assert stats.binomtest(inside, audits, level, alternative="less").pvalue > 1e-3
    assert naive > 0.2 * audits
