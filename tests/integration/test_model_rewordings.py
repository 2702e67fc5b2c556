"""Rewording by a model through the perturbation service's messages: artifacts in, artifacts out, round by round."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from proctor.cli.variants.building import build_suite
from proctor.cli.variants.opening import SuiteVariants
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.manifest import (
    AnsweredShard,
    CompletionSet,
    DeadShard,
    ItemSet,
    PromptSet,
    RewriteSet,
    VariantSet,
)
from proctor.domain.messages import BuildVariants, VariantsBuilt
from proctor.domain.suite import PerturbationSection, Suite
from proctor.domain.trial import PARAPHRASE_STAGE, Arm, Completion, Shard, Trial
from proctor.perturbation.admission.window import Goals
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.rewrites import read_answers
from proctor.perturbation.tasks import variants_for
from proctor.runtime.artifacts.chunks import put_items
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from proctor.studies.calibration import labelled_pairs
from tests.paraphraser import recorded_rewordings
from tests.stored_variants import get_variants
from tests.support import shared_data
from tests.unit.rewording_models import CHOICE, ITEM, SECTION, Script, ScriptedModel, chain_of, failing, faithful, shown
from tests.unit.strategy_checks import gsm8k
from tests.unit.variant_samples import HashedEncoder

_SHARD_TRIALS = 2


class Audit:
    """The router's side of an audit's rewording: shards, their completions, and the same message again."""

    def __init__(
        self, home: Path, model: ScriptedModel, items: tuple[Item, ...] = (ITEM, CHOICE), **changes: Any
    ) -> None:
        self.model = model
        self.settings = Settings(home=home)
        self.records = Records(f"sqlite:///{home / 'records.sqlite'}")
        self.artifacts = LocalArtifacts(home / "artifacts")
        self.encoder = HashedEncoder()
        self.section = PerturbationSection.model_validate({**SECTION.model_dump(), **changes})
        self.rewrites = RewriteSet()
        self.rounds = 0
        self.message = BuildVariants(
            audit_id="a",
            items=put_items(self.artifacts, ItemSet(items=items)),
            settings=put_model(self.artifacts, self.section),
            benchmark="bench",
        )

    def send(self, message: BuildVariants) -> VariantsBuilt:
        return variants_for(message, self.settings, self.records, self.artifacts, self.encoder)

    def run(self) -> VariantSet:
        """Rounds until the variants are there."""
        built = self.send(self.message)
        while built.prompts is not None:
            assert built.variants is None
            self.rounds += 1
            prompts = get_model(self.artifacts, built.prompts, PromptSet)
            assert prompts.decoding == self.section.paraphraser.decoding
            self._ask(prompts.trials)
            built = self.send(self.next_message())
        assert built.variants is not None
        return get_variants(self.artifacts, built.variants)

    def next_message(self) -> BuildVariants:
        return self.message.model_copy(update={"rewrites": put_model(self.artifacts, self.rewrites)})

    def _ask(self, trials: tuple[Trial, ...]) -> None:
        answered, dead = list(self.rewrites.answered), list(self.rewrites.dead)
        for start in range(0, len(trials), _SHARD_TRIALS):
            some = trials[start : start + _SHARD_TRIALS]
            shard = self.shard(f"{self.rounds}-{start}", some)
            completions = [self.model.answer([trial])[trial.trial_id] for trial in some]
            if all(one.error is not None for one in completions):
                dead.append(DeadShard(shard=shard, cause="connection refused"))
            else:
                said = put_model(self.artifacts, CompletionSet(completions=tuple(completions)))
                answered.append(AnsweredShard(shard=shard, completions=said))
        self.rewrites = RewriteSet(answered=tuple(answered), dead=tuple(dead))

    def shard(self, shard_id: str, trials: tuple[Trial, ...]) -> str:
        shard = Shard(shard_id=shard_id, stage=f"{PARAPHRASE_STAGE}-{self.rounds}", arm=Arm.PERTURBED, trials=trials)
        return put_model(self.artifacts, shard)


def _but(replies: dict[int, Any]) -> Script:
    return lambda question, trial: replies.get(trial.replicate, faithful(question, trial))


def test_a_message_is_answered_with_prompts_first_and_with_variants_once_they_are_answered(tmp_path: Path) -> None:
    audit = Audit(tmp_path, ScriptedModel(_but({0: "I cannot help with that."})))
    made = audit.run()
    assert audit.rounds == 2
    assert Counter(variant.item_id for variant in made.variants) == {"apples": 2, "krav": 2}
    assert Counter(rejection.reason for rejection in made.rejections) == {"refused": 2}
    assert made.from_library == 0


def test_no_text_is_embedded_again_in_the_next_round(tmp_path: Path) -> None:
    audit = Audit(tmp_path, ScriptedModel(_but({0: ITEM.question.replace("3", "5")})), num_variants_per_item=3)
    audit.run()
    assert audit.rounds > 1
    assert max(Counter(audit.encoder.texts).values()) == 1


def test_a_message_that_comes_twice_is_answered_in_the_same_way(tmp_path: Path) -> None:
    audit = Audit(tmp_path, ScriptedModel(_but({0: "I cannot help with that."})))
    first = audit.send(audit.message)
    assert audit.send(audit.message) == first
    audit.run()
    last = audit.next_message()
    assert audit.send(last) == audit.send(last)


def test_the_same_completions_give_the_same_variants_in_another_home(tmp_path: Path) -> None:
    digests = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        audit = Audit(tmp_path / name, ScriptedModel(_but({1: "I cannot help with that."})))
        audit.run()
        digests.add(audit.send(audit.next_message()).variants)
    assert len(digests) == 1


def test_a_second_audit_of_the_suite_is_answered_without_a_prompt(tmp_path: Path) -> None:
    made = Audit(tmp_path, ScriptedModel()).run()
    second = Audit(tmp_path, ScriptedModel(lambda question, trial: pytest.fail("asked again")))
    again = second.run()
    assert (second.rounds, second.encoder.texts, again.from_library) == (0, [], 4)
    assert again.variants == made.variants


def test_a_dead_shard_counts_as_failures_and_further_candidates_are_asked_for(tmp_path: Path) -> None:
    audit = Audit(tmp_path, ScriptedModel(_but({0: failing(), 1: failing()})))
    made = audit.run()
    assert len(audit.rewrites.dead) == 2
    assert Counter(rejection.reason for rejection in made.rejections) == {"model_failed": 4}
    assert {rejection.detail for rejection in made.rejections} == {"the model gave no reply: connection refused"}
    assert len(made.variants) == 4


def test_a_model_that_is_dead_fails_the_build_with_its_cause_and_nothing_is_kept(tmp_path: Path) -> None:
    audit = Audit(tmp_path, ScriptedModel(lambda question, trial: failing()))
    with pytest.raises(BadInputError, match=r"only 0 of 2 items .* 12 model_failed.*connection refused"):
        audit.run()
    again = Audit(tmp_path, ScriptedModel())
    assert len(again.run().variants) == 4


def test_a_trial_that_its_shard_did_not_answer_counts_as_failed_and_is_not_asked_for_ever(tmp_path: Path) -> None:
    audit = Audit(tmp_path, ScriptedModel())
    prompts = get_model(audit.artifacts, str(audit.send(audit.message).prompts), PromptSet)
    one, other = prompts.trials[:2]
    said = CompletionSet(completions=(Completion(trial_id=one.trial_id, text="x", finish_reason="stop"),))
    answered = AnsweredShard(shard=audit.shard("s", (one, other)), completions=put_model(audit.artifacts, said))
    rewrites = RewriteSet(answered=(answered,))
    answers = read_answers(audit.artifacts, put_model(audit.artifacts, rewrites))
    assert (answers[one.trial_id].text, answers[one.trial_id].error) == ("x", None)
    assert answers[other.trial_id].error == "its shard brought no completion"


def test_a_back_translation_takes_two_rounds_of_messages(tmp_path: Path) -> None:
    def translate(text: str, trial: Trial) -> str:
        return f"Foreign {trial.item_id}" if trial.router_index == 0 else faithful(originals[trial.item_id], trial)

    originals = {item.item_id: item.question for item in (ITEM, CHOICE)}
    audit = Audit(tmp_path, ScriptedModel(translate), perturbation_strategy="back_translation")
    made = audit.run()
    assert (audit.rounds, len(made.variants)) == (2, 4)
    assert all("language" in variant.provenance["back_translation"] for variant in made.variants)


def test_gpt_4s_recorded_rewordings_pass_through_the_rounds(tmp_path: Path) -> None:
    recorded = recorded_rewordings(shared_data())
    items = tuple(item for item, _ in gsm8k()[::11])
    model = ScriptedModel(lambda question, trial: recorded[shown(trial)])
    audit = Audit(tmp_path, model, items, num_variants_per_item=1)
    made = audit.run()
    assert {variant.question for variant in made.variants} <= set(recorded.values())
    assert len(made.variants) >= 0.9 * len(items)
    # An item whose wording is turned away is asked about once more, and the model says the same.
    without = len(items) - len(made.variants)
    assert len(model.asked) == len(items) + without > len(items)
    assert Counter(one.reason for one in made.rejections)["repeated"] == without


def _opened() -> SuiteVariants:
    """As much of an opened suite as a build needs."""
    encoder = HashedEncoder()
    opened = SimpleNamespace(
        suite=SimpleNamespace(audit_suite_id="s"),
        items=(ITEM, CHOICE),
        section=SECTION,
        chain=chain_of(SECTION),
        encoder=SimpleNamespace(encode=encoder.encode, fingerprint=encoder.fingerprint, loaded=True),
        benchmark="bench",
        encoder_name="hashed",
        others=None,
        notes=(),
    )
    return cast(SuiteVariants, opened)


def test_a_build_in_this_process_asks_until_nothing_is_needed(tmp_path: Path) -> None:
    records = Records(f"sqlite:///{tmp_path / 'records.sqlite'}")
    model = ScriptedModel(_but({0: "I cannot help with that."}))
    summary = build_suite(_opened(), VariantLibrary(records), lambda line: None, model.answer)
    assert (summary.variants, summary.rejected, summary.items_from_library) == (4, {"refused": 2}, 0)
    again = build_suite(_opened(), VariantLibrary(records), lambda line: None)
    assert (again.variants, again.items_from_library) == (4, 2)


def test_a_build_that_cannot_ask_says_what_does(tmp_path: Path) -> None:
    library = VariantLibrary(Records(f"sqlite:///{tmp_path / 'records.sqlite'}"))
    with pytest.raises(BadInputError, match=r"'paraphrase_llm' asks a model.*`proctor audit run`"):
        build_suite(_opened(), library, lambda line: None)


def test_a_calibration_cannot_take_a_models_rewordings_and_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text('{"question": "How many is 3 and 4?", "answer": "7"}\n')
    suite = Suite.model_validate(
        {
            "audit_suite_id": "s",
            "model_config": {"model_id": "m", "model_version": "sha256:" + "0" * 64, "endpoint": "local"},
            "dataset_config": {"benchmark_name": "bench", "path": "items.jsonl", "sample_size": 1},
            "perturbation_config": SECTION.plain(),
        }
    )
    settings = Settings(home=tmp_path)
    with pytest.raises(BadInputError, match=r"asks a model.* give rewordings that somebody has read in --pairs"):
        labelled_pairs(suite, tmp_path, settings, HashedEncoder(), Goals(), same=None, other=None)
