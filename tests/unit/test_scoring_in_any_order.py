"""However an audit's trials were cut, split, ordered and graded, its report has the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.domain.manifest import VariantSet
from proctor.domain.trial import Completion
from proctor.scorer import score as scoring
from proctor.scorer.channels.channel import ChannelInputs
from proctor.scorer.grading.ahead import grade_and_store
from proctor.scorer.grading.loading import load_rows, load_shown
from proctor.scorer.report.assembly import Asked, assemble, suspects
from proctor.scorer.report.document import to_json
from tests.report_samples import SampleAudit, blocked
from tests.scored_audits import AskedTrial, StoredAudit, cut_into_shards


class Sample(NamedTuple):
    """An audit with answers of every kind, and the report that one way of cutting it gives."""

    audit: SampleAudit
    report: bytes


@pytest.fixture(scope="module")
def sample() -> Sample:
    audit = blocked(n_items=30, leaked=0.3, knows=0.5)
    audit.asked = [AskedTrial(row.trial, _broken(row, place)) for place, row in enumerate(audit.asked)]
    return Sample(audit, report_of(audit, cut_into_shards(audit.asked)))


def _broken(row: AskedTrial, place: int) -> Completion | None:
    assert row.completion is not None
    changes: dict[int, dict[str, object]] = {
        3: {"error": "refused", "text": ""},
        5: {"finish_reason": "length", "text": "hm"},
    }
    return None if place % 23 == 7 else row.completion.model_copy(update=changes.get(place % 23, {}))


def report_of(audit: SampleAudit, shards: Iterator[list[AskedTrial]], *, early: Callable[[int], bool] = bool) -> bytes:
    """The report of an audit cut into shards, of which those at some places are graded before the end."""
    stored = StoredAudit.of(audit.manifest, audit.items, shards)
    manifest, store = stored.manifest, stored.store
    answered = [
        grade_and_store(store, [one], stored.targets)[0] if early(place) else one
        for place, one in enumerate(manifest.answered)
    ]
    manifest = manifest.model_copy(update={"answered": tuple(answered)})
    rows = load_rows(store, manifest, stored.targets)
    result = scoring.score(ChannelInputs(audit.suite, audit.items, rows))
    shown = load_shown(store, manifest, stored.targets, rows, {item.item_id for item in suspects(result.evidence)})
    made = VariantSet(variants=(), rejections=tuple(audit.rejections), encoder="e")
    return to_json(assemble(manifest, Asked(audit.items, made, audit.variants), rows, shown, *result, versions={}))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_cut_any_order_and_any_time_of_grading_give_the_same_bytes(sample: Sample, seed: int) -> None:
    random = Random(seed)
    asked = list(sample.audit.asked)
    random.shuffle(asked)
    shards = [part for shard in cut_into_shards(asked, random.randint(1, 64)) for part in _split(shard, random)]
    random.shuffle(shards)
    early = [random.random() < 0.5 for _ in shards]
    assert report_of(sample.audit, iter(shards), early=early.__getitem__) == sample.report


def _split(shard: list[AskedTrial], random: Random) -> list[list[AskedTrial]]:
    """Now and then a shard in parts, as one that cost a worker its life is."""
    size = random.choice([len(shard), -(-len(shard) // 8)])
    return [shard[start : start + size] for start in range(0, len(shard), size)]


def test_only_the_shards_of_the_items_shown_are_read_again(sample: Sample) -> None:
    stored = StoredAudit.of(sample.audit.manifest, sample.audit.items, cut_into_shards(sample.audit.asked, 4))
    graded = grade_and_store(stored.store, stored.manifest.answered, stored.targets)
    manifest = stored.manifest.model_copy(update={"answered": graded, "dead": ()})
    rows = load_rows(stored.store, manifest, stored.targets)
    asking = {graded[place].shard for place in rows.shards_that_ask({"facts-0003"})}
    for one in graded:
        if one.shard not in asking:
            del stored.store.objects[one.completions]
    shown = load_shown(stored.store, manifest, stored.targets, rows, {"facts-0003"})
    wanted = {row.trial.variant_id for row in sample.audit.asked if row.trial.item_id == "facts-0003"}
    assert {item_id for item_id, _ in shown} == {"facts-0003"}
    assert {variant_id for _, variant_id in shown} <= wanted
    assert len(shown) > 1


@pytest.mark.parametrize("damage", ["missing", "another document", "another shard's"])
def test_grades_that_cannot_be_used_are_made_again(sample: Sample, damage: str) -> None:
    stored = StoredAudit.of(sample.audit.manifest, sample.audit.items, cut_into_shards(sample.audit.asked))
    graded = grade_and_store(stored.store, stored.manifest.answered, stored.targets)
    assert graded[0].grades is not None
    other = {
        "missing": "sha256:" + "0" * 64,
        "another document": stored.store.put(b'{"text": "grades"}'),
        "another shard's": graded[1].grades,
    }[damage]
    broken = (graded[0].model_copy(update={"grades": other}), *graded[1:])
    whole, mended = (
        load_rows(stored.store, stored.manifest.model_copy(update={"answered": answered}), stored.targets)
        for answered in (graded, broken)
    )
    assert list(mended.answers(direct=True)) == list(whole.answers(direct=True))


def test_what_cannot_be_graded_before_the_end_is_left_out_and_the_others_are_graded(
    sample: Sample, caplog: pytest.LogCaptureFixture
) -> None:
    stored = StoredAudit.of(sample.audit.manifest, sample.audit.items, cut_into_shards(sample.audit.asked, 20))
    first, second, third = stored.manifest.answered[:3]
    del stored.store.objects[second.completions]
    found = grade_and_store(stored.store, (first, second, third), stored.targets)
    assert [one.shard for one in found] == [first.shard, third.shard]
    assert all(one.grades in stored.store.objects for one in found)
    assert second.shard in caplog.text
