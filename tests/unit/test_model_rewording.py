"""The engine with a model that rewords: rounds of asking, what the library keeps, and the same bytes every time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.domain.canonical import canonical_json
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.trial import Trial
from proctor.perturbation.admission.starvation import check_yield
from proctor.perturbation.engine import reword, variant_set
from proctor.perturbation.library.store import VariantLibrary
from tests.unit.rewording_models import (
    CHOICE,
    ITEM,
    REWORDINGS,
    Build,
    Script,
    ScriptedModel,
    cut_off,
    failing,
    faithful,
)
from tests.unit.variant_samples import MemoryRows

BAD = "If Mia gets 3 apples and 5 more, what is her total of apples?"


def _but(replies: Mapping[int, Any]) -> Script:
    """A faithful model that says something else to single candidates."""
    return lambda question, trial: replies.get(trial.replicate, faithful(question, trial))


def _bytes(build: Build, *items: Item) -> bytes:
    results = build.run(*items)
    return canonical_json(variant_set(results, build.section, chain=build.chain, encoder=build.encoder).plain())


def _reasons(result: Any) -> Counter[str]:
    return Counter(rejection.reason for rejection in result.outcome.rejections)


def test_as_many_candidates_are_asked_for_as_variants_are_missing() -> None:
    build = Build(ScriptedModel())
    apples, krav = build.run(ITEM, CHOICE)
    assert [(trial.item_id, trial.replicate) for trial in build.rounds[0]] == [
        ("apples", 0), ("apples", 1), ("krav", 0), ("krav", 1),
    ]  # fmt: skip
    assert len(build.rounds) == 1
    assert [one.question for one in apples.outcome.variants] == list(REWORDINGS[ITEM.question][:2])
    assert (len(krav.outcome.variants), apples.from_library, krav.from_library) == (2, False, False)


def test_the_next_round_asks_only_for_what_was_turned_away() -> None:
    build = Build(ScriptedModel(_but({1: BAD})))
    (result,) = build.run(ITEM)
    assert [[trial.replicate for trial in trials] for trials in build.rounds] == [[0, 1], [2]]
    assert [one.question for one in result.outcome.variants] == [REWORDINGS[ITEM.question][n] for n in (0, 2)]
    assert _reasons(result) == {"numerals": 1}


@pytest.mark.parametrize(
    ("said", "reason"), [("I cannot help with that.", "refused"), (failing(), "model_failed"), (cut_off(), "truncated")]
)
def test_a_hopeless_item_costs_three_calls_for_each_variant_and_no_more(said: Any, reason: str) -> None:
    build = Build(ScriptedModel(lambda question, trial: said))
    (result,) = build.run(ITEM)
    assert len(build.model.asked) == 6
    assert not result.outcome.variants
    assert _reasons(result) == {reason: 6}


def test_a_model_that_only_repeats_itself_is_not_asked_on() -> None:
    build = Build(ScriptedModel(lambda question, trial: REWORDINGS[question][0]), num_variants_per_item=4)
    (result,) = build.run(ITEM)
    assert [len(trials) for trials in build.rounds] == [4, 3]
    assert (len(result.outcome.variants), _reasons(result)) == (1, Counter(repeated=6))


def test_a_back_translation_takes_its_two_calls_in_two_rounds() -> None:
    def translate(text: str, trial: Trial) -> str:
        return f"Foreign {trial.replicate}" if trial.router_index == 0 else faithful(ITEM.question, trial)

    build = Build(ScriptedModel(translate), perturbation_strategy="back_translation")
    (result,) = build.run(ITEM)
    assert [[(one.replicate, one.router_index) for one in trials] for trials in build.rounds] == [
        [(0, 0), (1, 0)],
        [(0, 1), (1, 1)],
    ]
    assert len(result.outcome.variants) == 2


def test_two_runs_with_the_same_completions_give_the_same_bytes_whatever_endpoint_and_time_they_took() -> None:
    moody = _but({1: "I cannot help with that.", 2: BAD})
    first, second = (Build(ScriptedModel(moody), paraphraser={"endpoint": f"http://host-{n}/v1"}) for n in range(2))
    assert _bytes(first, ITEM, CHOICE) == _bytes(second, ITEM, CHOICE)
    assert first.rows.rows == second.rows.rows
    assert first.rounds == second.rounds
    assert "http" not in json.dumps(first.rows.rows)


@given(st.data())
@settings(max_examples=25)
def test_answers_that_come_one_by_one_give_the_bytes_of_answers_that_come_together(data: st.DataObject) -> None:
    replies = data.draw(st.lists(st.sampled_from([BAD, "I cannot help.", None, "dead"]), min_size=6, max_size=6))

    def say(question: str, trial: Trial) -> Any:
        reply = replies[trial.replicate]
        return failing() if reply == "dead" else reply or faithful(question, trial)

    together, drip = (Build(ScriptedModel(say), min_yield=0.0) for _ in range(2))
    whole = together.run(ITEM, CHOICE)
    while not (reworded := drip.once(ITEM, CHOICE)).results:
        drip.answers |= drip.model.answer([data.draw(st.sampled_from(reworded.needed))])
    assert list(reworded.results) == whole
    assert drip.rows.rows == together.rows.rows
    assert {trial.trial_id for trial in drip.model.asked} == {trial.trial_id for trial in together.model.asked}


def test_a_second_audit_asks_nothing_and_embeds_nothing() -> None:
    first = Build(ScriptedModel())
    made = first.run(ITEM, CHOICE)
    second = first.again(ScriptedModel(lambda question, trial: pytest.fail("asked again")))
    found = second.run(ITEM, CHOICE)
    assert [one.outcome for one in found] == [one.outcome for one in made]
    assert all(one.from_library for one in found)
    assert (second.model.asked, second.encoder.texts) == ([], [])


def test_an_item_that_is_new_is_asked_about_beside_those_of_the_library() -> None:
    first = Build(ScriptedModel())
    first.run(ITEM)
    second = first.again(ScriptedModel())
    assert [one.from_library for one in second.run(ITEM, CHOICE)] == [True, False]
    assert {trial.item_id for trial in second.model.asked} == {"krav"}


def test_what_an_earlier_round_put_into_the_library_counts_as_this_builds_own_work() -> None:
    build = Build(
        ScriptedModel(lambda question, trial: BAD if trial.item_id == "apples" else faithful(question, trial))
    )
    apples, krav = build.run(ITEM, CHOICE)
    assert len(build.rounds) > 1
    assert (apples.from_library, krav.from_library) == (False, False)


def test_refusals_are_kept_and_failures_are_not() -> None:
    def say(question: str, trial: Trial) -> Any:
        return failing() if trial.item_id == "apples" else "I cannot help with that."

    first = Build(ScriptedModel(say))
    first.run(ITEM, CHOICE)
    assert len(first.rows.rows) == 1
    second = first.again(ScriptedModel())
    apples, krav = second.run(ITEM, CHOICE)
    assert (len(apples.outcome.variants), apples.from_library) == (2, False)
    assert (_reasons(krav), krav.from_library) == (Counter(refused=6), True)


def test_what_was_admitted_of_an_item_that_failed_in_part_is_used_and_not_kept() -> None:
    build = Build(ScriptedModel(_but(dict.fromkeys(range(1, 6), failing()))))
    (result,) = build.run(ITEM)
    assert (len(result.outcome.variants), _reasons(result)) == (1, Counter(model_failed=5))
    assert build.rows.rows == {}


def test_a_failure_that_another_candidate_made_up_for_is_kept() -> None:
    build = Build(ScriptedModel(_but({0: failing()})))
    (result,) = build.run(ITEM)
    assert (len(result.outcome.variants), _reasons(result)) == (2, Counter(model_failed=1))
    assert len(build.rows.rows) == 1


def test_equal_problems_are_asked_about_once() -> None:
    twin = ITEM.model_copy(update={"item_id": "twin"})
    build = Build(ScriptedModel())
    one, other = build.run(ITEM, twin)
    assert len({trial.item_id for trial in build.model.asked}) == 1
    assert [variant.item_id for variant in other.outcome.variants] == ["twin", "twin"]
    assert (one.from_library, other.from_library) == (False, False)


def test_an_item_waits_until_all_of_its_round_is_answered() -> None:
    build = Build(ScriptedModel())
    needed = build.once(ITEM).needed
    build.answers |= build.model.answer(needed[1:])
    waiting = build.once(ITEM)
    assert (waiting.results, waiting.needed) == ((), needed[:1])
    assert build.encoder.texts == []
    assert build.rows.rows == {}


def test_a_build_without_answers_refuses_a_chain_that_asks() -> None:
    build = Build(ScriptedModel())
    library = VariantLibrary(MemoryRows())
    with pytest.raises(ValueError, match=r"asks a model: see engine\.reword_by_answers"):
        reword([ITEM], build.section, chain=build.chain, encoder=build.encoder, library=library)


@pytest.mark.parametrize(
    ("said", "mend"),
    [
        ("I cannot help with that.", "wordsmith refused most of what it was asked: name another paraphrase_model"),
        (f"{REWORDINGS[ITEM.question][0]} Answer: 7", "replies of wordsmith give the answer away"),
        ("", r"replies of wordsmith hold no wording: see that paraphraser.chat_template \(user\) suits it"),
        (cut_off(), r"were cut off: raise max_tokens in paraphraser.decoding \(now 1024\)"),
        (
            failing("connection refused"),
            r"calls of wordsmith failed, the first because .*: connection refused\. See",
        ),
        (ITEM.question, r"the question that it was given: raise temperature in paraphraser.decoding \(now 0.7\)"),
    ],
)
def test_too_few_variants_are_one_error_that_names_what_would_mend_the_model(said: Any, mend: str) -> None:
    build = Build(ScriptedModel(lambda question, trial: said))
    results = build.run(ITEM)
    with pytest.raises(BadInputError, match=mend):
        check_yield([one.outcome for one in results], build.section, build.chain.name)


def test_a_model_that_repeats_itself_is_told_to_be_bolder_besides_what_was_wrong() -> None:
    build = Build(ScriptedModel(lambda question, trial: BAD), num_variants_per_item=3)
    mend = r"5 repeated, 1 numerals\..* do not keep the item's numerals.* raise temperature .* fewer than 3 variants"
    with pytest.raises(BadInputError, match=mend):
        _bytes(build, ITEM)


def test_a_window_that_repetitions_outnumber_is_still_named() -> None:
    build = Build(ScriptedModel(lambda question, trial: REWORDINGS[question][0]), min_semantic_distance=1.8)
    with pytest.raises(BadInputError, match=r"1 fell below the window 1\.8 .*variants calibrate.*temperature"):
        _bytes(build, ITEM)


def test_a_model_that_changes_the_numbers_is_named_in_the_mend() -> None:
    replies = [BAD.replace("5", str(n)) for n in range(50, 56)]
    build = Build(ScriptedModel(lambda question, trial: replies[trial.replicate]))
    with pytest.raises(BadInputError, match=r"of wordsmith do not keep the item's numerals.*name another"):
        _bytes(build, ITEM)
