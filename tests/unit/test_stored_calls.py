"""What was asked and said is read from the store in one way, whoever reads it."""

from __future__ import annotations

from pathlib import Path

from proctor.domain.manifest import AnsweredShard, CompletionSet, DeadShard, RewriteSet
from proctor.domain.trial import Arm, Completion, Shard, Trial
from proctor.perturbation.rewrites import read_answers
from proctor.runtime.artifacts.calls import calls_of, messages_in
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import put_model


def trial(item: str) -> Trial:
    return Trial(arm=Arm.CANONICAL, item_id=item, prompt="?")


SAID, EMPTY, FAILED, SILENT, LOST = (trial(name) for name in ("said", "empty", "failed", "silent", "lost"))


def stored(store: LocalArtifacts) -> RewriteSet:
    """A shard of four trials whose completions came in another order and one of which is missing, and a dead one."""
    completions = (
        Completion(trial_id=FAILED.trial_id, error="timeout"),
        Completion(trial_id=EMPTY.trial_id, text=""),
        Completion(trial_id=SAID.trial_id, text="yes"),
    )
    answered = AnsweredShard(
        shard=put_model(
            store, Shard(shard_id="1", stage="answer", arm=Arm.CANONICAL, trials=(SAID, EMPTY, FAILED, SILENT))
        ),
        completions=put_model(store, CompletionSet(completions=completions)),
    )
    dead = put_model(store, Shard(shard_id="2", stage="answer", arm=Arm.CANONICAL, trials=(LOST,)))
    return RewriteSet(answered=(answered,), dead=(DeadShard(shard=dead, cause="no answer"),))


def test_a_call_is_a_trial_with_its_own_completion_and_none_where_none_came(tmp_path: Path) -> None:
    store = LocalArtifacts(tmp_path)
    found = list(calls_of(store, stored(store)))
    assert [asked for asked, _ in found] == [SAID, EMPTY, FAILED, SILENT, LOST]
    assert [said and (said.text, said.error) for _, said in found] == [
        ("yes", None),
        ("", None),
        ("", "timeout"),
        None,
        None,
    ]


def test_an_empty_message_is_one_and_a_failed_call_left_none(tmp_path: Path) -> None:
    store = LocalArtifacts(tmp_path)
    messages = dict(messages_in(store, stored(store).answered))
    assert messages == {(Arm.CANONICAL, "said", 0): "yes", (Arm.CANONICAL, "empty", 0): ""}


def test_what_got_no_answer_is_a_failure_with_its_cause_to_who_rewords(tmp_path: Path) -> None:
    store = LocalArtifacts(tmp_path)
    answers = read_answers(store, put_model(store, stored(store)))
    assert {one: (said.text, said.error) for one, said in answers.items()} == {
        SAID.trial_id: ("yes", None),
        EMPTY.trial_id: ("", None),
        FAILED.trial_id: ("", "timeout"),
        SILENT.trial_id: ("", "its shard brought no completion"),
        LOST.trial_id: ("", "no answer"),
    }
