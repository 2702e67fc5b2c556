"""A suite whose prompts are larger than a worker: refused when it is taken on, bounded where they are made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.answer_bounds import max_answer_bytes
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item, Measurements, Variant
from proctor.domain.labels import LabelScheme
from proctor.domain.manifest import AnsweredShard, CompletionSet, ItemIndex, ItemSet, RewriteSet
from proctor.domain.routing import ProtocolSection
from proctor.domain.suite import FewShotExample, PromptSection, Suite
from proctor.domain.trial import Arm, Completion, Trial
from proctor.router import plan, transmission
from proctor.router.plan import plan_shards, plan_trials, shard_of, trial_bytes
from proctor.router.pools import packs
from proctor.router.submit.prompt_sizes import MAX_PROMPT_BYTES, MAX_WORDINGS_BYTES, check_sizes
from proctor.router.transmission import messages_of, plan_workers, router_places
from proctor.runtime.artifacts import chunks
from proctor.runtime.artifacts.chunks import put_items
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.text.prompt import prompt_bytes, render_prompt
from tests.hostile.limited import run_limited
from tests.scored_audits import MemoryArtifacts

MEASURED = Measurements(semantic_distance=0.2, token_overlap=0.1, edit_distance=0.6)
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


def suite(**sections: object) -> Suite:
    return Suite.model_validate(
        {
            "audit_suite_id": "hostile",
            "model_config": {
                "model_id": "m",
                "model_version": "sha256:" + "ab" * 6,
                "endpoint": "http://127.0.0.1:9/v1",
            },
            "dataset_config": {"benchmark_name": "sums", "path": "items.jsonl", "selection": "first"},
            "perturbation_config": {"perturbation_strategy": "typo", "num_variants_per_item": 20},
            **sections,
        }
    )


def item(name: str, question: str) -> Item:
    return Item(item_id=name, question=question, target="4")


@given(
    template=st.lists(st.sampled_from(["{question}", "{options}", "{other}", "é", "Answer: "]), max_size=6),
    question=texts,
    choices=st.lists(texts, max_size=3, unique=True),
    examples=st.lists(st.tuples(texts, st.lists(texts, max_size=3), st.sampled_from(["A", "B. é", "4"])), max_size=2),
    labels=st.sampled_from([None, *LabelScheme]),
)
def test_a_prompts_size_is_told_without_making_it(
    template: list[str],
    question: str,
    choices: list[str],
    examples: list[tuple[str, list[str], str]],
    labels: LabelScheme | None,
) -> None:
    section = PromptSection(
        template="".join([*template, "{question}{options}"]),
        few_shot=tuple(FewShotExample(question=q, choices=tuple(c), answer=a) for q, c, a in examples),
    )
    shown = labels if choices else None
    made = render_prompt(section, question, choices, shown)
    assert prompt_bytes(section, question, choices, shown) == len(made.encode())


_TAKEN_ON = """
import sys
from pathlib import Path
from proctor.domain.errors import BadInputError
from proctor.formats.suites import load_suite
from proctor.router.submit.gathering import gather
folder = Path(sys.argv[1])
try:
    gather(load_suite(folder / "suite.json"), folder, folder)
except BadInputError as error:
    print(error)
"""


@pytest.mark.parametrize("shown_by", ["template", "example"])
def test_a_suite_whose_prompts_would_have_gigabytes_is_refused_when_it_is_taken_on(
    shown_by: str, tmp_path: Path
) -> None:
    long = "x" * 200_000
    examples = [{"question": long, "answer": "4"}] if shown_by == "example" else []
    prompt = {"template": "{question}" * 2000, "few_shot": examples}
    written = suite(prompt_config=prompt).model_dump_json(by_alias=True, exclude_none=True)
    (tmp_path / "suite.json").write_text(written)
    question = long if shown_by == "template" else "What is two plus two?"
    (tmp_path / "items.jsonl").write_text(json.dumps({"id": "q1", "question": question, "answer": "4"}))
    ended = run_limited(_TAKEN_ON, str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "item 'q1': its prompt would have 400," in ended.stdout
    assert f"{MAX_PROMPT_BYTES:,} are the most" in ended.stdout


def test_items_that_no_worker_could_reword_at_once_are_refused_when_they_are_taken_on() -> None:
    long = item("q1", "x" * 100_000)
    enough = [long] * (MAX_WORDINGS_BYTES // (21 * 100_000))
    check_sizes(enough, suite())
    with pytest.raises(BadInputError, match=r"items and the rewordings of them would come to .* lower .*sample_size"):
        check_sizes([*enough, long], suite())


def test_a_rewording_that_is_longer_than_its_item_is_measured_when_its_prompt_is_planned() -> None:
    asked = item("q1", "short")
    longer = Variant(
        item_id="q1", item_hash=asked.content_hash, strategy="typo", question="x" * 1000, measurements=MEASURED
    )
    section = PromptSection(template="{question}" * 2000)
    check_sizes([asked], suite(prompt_config=section.plain()))
    with pytest.raises(BadInputError, match="item 'q1': its prompt would have 2,000,000 bytes"):
        list(plan_trials([asked], [longer], section))


_PLANNED = """
import sys
from pathlib import Path
from types import SimpleNamespace
from proctor.domain.item import Item, Measurements, Variant
from proctor.domain.suite import PromptSection
from proctor.router.handing_out import HandingOut
from proctor.router.plan import plan_shards, plan_trials
from proctor.router.stages.outcome import planned
from proctor.runtime.artifacts.local import LocalArtifacts
measured = Measurements(semantic_distance=0.2, token_overlap=0.1, edit_distance=0.6)
# The emoji makes four bytes of each character in memory.
items = [Item(item_id=f"q{n}", question=chr(0x1F600) + "x" * 190_000, target="4") for n in range(5)]
variants = [
    Variant(item_id=i.item_id, item_hash="h", strategy="typo", question=f"{i.question}{n}", measurements=measured)
    for i in items for n in range(100)
]
trials = plan_trials(items, variants, PromptSection(template="{question}" * 5))

class Folder:
    puts = 0
    def put(self, data):
        assert len(data) < 1 << 23
        Folder.puts += 1
        return f"sha256:{Folder.puts:064x}"

handing = HandingOut(Folder(), None, None, None, None, None, None)
entries = planned(handing._stored(plan_shards(trials)), part=0)
print(len(entries), sum(entry.n_trials for entry in entries))
"""


def test_a_part_that_would_take_two_gibibytes_is_planned_in_less_than_one() -> None:
    ended = run_limited(_PLANNED)
    assert ended.returncode == 0, ended.stderr[-2000:]
    shards, trials = map(int, ended.stdout.split())
    assert trials == 5 * 101
    assert shards >= trials / 4


def test_what_routers_wrote_may_not_make_a_prompt_too_large() -> None:
    protocol = ProtocolSection(protocol="router_worker", max_routers=1, matched_clean=False)
    asked = Item(item_id="q1", question="Which?", choices=("x", "y"), target="y")
    said = {(route.arm, "q1", route.place): "x" * MAX_PROMPT_BYTES for _, route in router_places(protocol)}
    with pytest.raises(BadInputError, match=r"item 'q1': the prompt that 1 routers wrote .*router.decoding.max_tokens"):
        list(plan_workers([asked], protocol, said))


def test_messages_of_a_chunk_are_not_loaded_past_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryArtifacts()
    trials = [Trial(stage="transmit", arm=Arm.NOISY_ROUTER_1, item_id=f"q{n}", prompt="p") for n in range(32)]
    said = tuple(Completion(trial_id=trial.trial_id, text="x" * 1000) for trial in trials)
    answered = AnsweredShard(
        shard=put_model(store, shard_of(trials)), completions=put_model(store, CompletionSet(completions=said))
    )
    transmitted = RewriteSet(answered=(answered,), in_parts=(1,))
    assert len(messages_of(store, transmitted, 0)) == 32
    monkeypatch.setattr(transmission, "MAX_MESSAGES_BYTES", 20_000)
    with pytest.raises(BadInputError, match=r"what the routers wrote about 19 items takes more than 20,000 bytes"):
        messages_of(store, transmitted, 0)


def test_items_are_stored_in_chunks_of_bounded_bytes_and_come_back_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 10_000)
    store = MemoryArtifacts()
    items = ItemSet(items=tuple(item(f"q{n}", "x" * (1 + 997 * n % 4000)) for n in range(100)))
    digest = put_items(store, items)
    index = get_model(store, digest, ItemIndex)
    assert chunks.get_items(store, digest) == items
    assert all(len(store.get(chunk)) <= 10_000 for chunk in index.chunks)
    assert len(index.chunks) < 100


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=60),
    shard_trials=st.sampled_from([1, 7, 32]),
)
def test_a_shard_has_no_more_prompts_than_its_budget_or_one(sizes: list[int], shard_trials: int) -> None:
    trials = [Trial(arm=Arm.CANONICAL, item_id=f"q{n}", prompt="é" * size) for n, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "SHARD_PROMPT_BYTES", 100)
        shards = list(plan_shards(trials, shard_trials=shard_trials))
    assert [trial for shard in shards for trial in shard.trials] == trials
    for shard in shards:
        assert len(shard.trials) <= shard_trials
        assert len(shard.trials) == 1 or sum(map(trial_bytes, shard.trials)) <= 100


@pytest.mark.parametrize("max_tokens", [1, 512, 1024, 4096, 16_384, 131_072])
@pytest.mark.parametrize("pace_s", [None, 0.001, 1.0])
def test_the_longest_answers_of_a_shard_keep_within_its_budget(max_tokens: int, pace_s: float | None) -> None:
    trials = packs.shard_trials(pace_s, max_tokens)
    assert trials * max_answer_bytes(max_tokens) <= packs.SHARD_ANSWER_BYTES
    one_more = (trials + 1) * max_answer_bytes(max_tokens)
    assert trials == packs.shard_trials(pace_s) or one_more > packs.SHARD_ANSWER_BYTES
