"""Planning: which trials an audit asks, and how they are cut into shards."""

from __future__ import annotations

from itertools import accumulate, groupby, pairwise

from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.item import Item, Measurements, Variant
from proctor.domain.suite import PromptSection
from proctor.domain.trial import Arm, Trial
from proctor.router.plan import StoredShard, plan_shards, plan_trials, shard_of
from proctor.router.pools.packs import pieces
from proctor.router.stages.outcome import PART_POSITIONS, planned

_MEASURED = Measurements(semantic_distance=0.2, token_overlap=0.1, edit_distance=0.6)


def item(number: int) -> Item:
    return Item(item_id=f"i{number}", question=f"Question {number}?", choices=("x", "y"), target="y")


def variant(of: Item, number: int) -> Variant:
    return Variant(
        item_id=of.item_id,
        item_hash=of.content_hash,
        strategy="wordings",
        question=f"{of.question} reworded {number}",
        choices=("y", "x"),
        measurements=_MEASURED,
    )


def test_an_item_is_asked_once_as_published_and_once_a_variant() -> None:
    items = [item(1), item(2)]
    variants = [variant(items[0], 1), variant(items[0], 2), variant(items[1], 1)]
    trials = list(plan_trials(items, variants, PromptSection()))
    assert [(trial.arm, trial.item_id) for trial in trials] == [
        (Arm.CANONICAL, "i1"), (Arm.PERTURBED, "i1"), (Arm.PERTURBED, "i1"),
        (Arm.CANONICAL, "i2"), (Arm.PERTURBED, "i2"),
    ]  # fmt: skip
    assert trials[0].prompt == "Question: Question 1?\nOptions:\nA. x\nB. y\nAnswer:"
    assert trials[1].prompt == "Question: Question 1? reworded 1\nOptions:\nA. y\nB. x\nAnswer:"
    assert trials[1].choices == ("y", "x"), "the answer's letter is read against the order that was shown"


def test_an_item_without_a_variant_is_not_asked() -> None:
    items = [item(1), item(2)]
    trials = list(plan_trials(items, [variant(items[1], 1)], PromptSection()))
    assert {trial.item_id for trial in trials} == {"i2"}


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=30))
def test_items_of_a_cluster_are_asked_side_by_side_where_the_first_of_them_stands(clusters: list[str | None]) -> None:
    items = [item(n).model_copy(update={"cluster": cluster}) for n, cluster in enumerate(clusters)]
    trials = plan_trials(items, [variant(one, 1) for one in items], PromptSection())
    asked = list(dict.fromkeys(trial.item_id for trial in trials))
    assert sorted(asked) == sorted(one.item_id for one in items)
    cluster_of = {one.item_id: one.cluster for one in items}
    runs = [key for key, _ in groupby(cluster_of[name] or name for name in asked)]
    assert len(runs) == len(set(runs)), "a cluster comes in one run"
    assert runs == list(dict.fromkeys(one.cluster or one.item_id for one in items)), "in the order of their first items"


@given(sizes=st.lists(st.integers(0, 4), max_size=60), shard_trials=st.integers(1, 7))
def test_every_trial_is_in_one_shard_of_its_own_arm(sizes: list[int], shard_trials: int) -> None:
    items = [item(number) for number in range(len(sizes))]
    variants = [variant(items[n], v) for n, size in enumerate(sizes) for v in range(size)]
    trials = list(plan_trials(items, variants, PromptSection()))
    shards = list(plan_shards(trials, shard_trials=shard_trials))
    assert sorted(t.trial_id for shard in shards for t in shard.trials) == sorted(t.trial_id for t in trials)
    assert len({trial.trial_id for trial in trials}) == len(trials)
    assert len({shard.shard_id for shard in shards}) == len(shards)
    for shard in shards:
        assert {trial.arm for trial in shard.trials} == {shard.arm}
        assert len(shard.trials) <= shard_trials


def test_an_items_arms_run_close_in_time() -> None:
    items = [item(number) for number in range(512)]
    variants = [variant(of, number) for of in items for number in range(3)]
    shards = list(plan_shards(plan_trials(items, variants, PromptSection())))
    canonical_at = {t.item_id: n for n, s in enumerate(shards) for t in s.trials if t.arm is Arm.CANONICAL}
    distance = [abs(n - canonical_at[t.item_id]) for n, s in enumerate(shards) for t in s.trials]
    assert max(distance) <= 4


@given(sizes=st.lists(st.integers(1, 256), min_size=1, max_size=20), data=st.data())
def test_what_a_shard_is_split_into_lies_between_it_and_the_next_in_position(
    sizes: list[int], data: st.DataObject
) -> None:
    trials = [Trial(arm=Arm.CANONICAL, item_id=f"i{n}", prompt="p") for n in range(sum(sizes))]
    ends = list(accumulate(sizes, initial=0))
    shards = [shard_of(trials[begin:end]) for begin, end in pairwise(ends)]
    stored = [StoredShard(s.shard_id, s.stage, s.arm, len(s.trials), "sha256:s") for s in shards]
    entries = planned(stored, part=3)
    assert [entry.position for entry in entries] == [3 * PART_POSITIONS + end for end in ends[:-1]]
    split = data.draw(st.integers(0, len(entries) - 1))
    children = [entries[split].position + begin for begin, _ in pieces(entries[split].n_trials)]
    others = [entry.position for entry in entries if entry is not entries[split]]
    assert len({*children, *others}) == len(children) + len(others)
    assert all(begin <= entries[split].position or begin > children[-1] for begin in others)


def test_the_same_trials_make_the_same_shards() -> None:
    items = [item(number) for number in range(100)]
    variants = [variant(of, 1) for of in items]
    first, second = (list(plan_shards(plan_trials(items, variants, PromptSection()))) for _ in range(2))
    assert first == second


def test_trial_ids_tell_arms_items_variants_and_replicates_apart() -> None:
    base = Trial(arm=Arm.CANONICAL, item_id="i", prompt="p")
    others = [
        base.model_copy(update=change)
        for change in (
            {"arm": Arm.PERTURBED}, {"item_id": "j"}, {"variant_id": "v"}, {"router_index": 1}, {"replicate": 1},
            {"stage": "transmit"},
        )
    ]  # fmt: skip
    assert len({trial.trial_id for trial in [base, *others]}) == 7
    assert base.model_copy(update={"prompt": "other"}).trial_id == base.trial_id
