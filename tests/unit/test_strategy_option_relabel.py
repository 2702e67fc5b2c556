"""Other labels for the options: which are proposed, how they are asked and read, and what they leave as it was."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from proctor.domain.canonical import json_digest
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item, Measurements, Rejection, Variant
from proctor.domain.labels import LabelScheme, labelled, marks
from proctor.domain.suite import FewShotExample, PerturbationSection, PromptSection
from proctor.domain.trial import Arm, Completion, Outcome, Trial
from proctor.formats.variants_file import parse_variants, write_variants
from proctor.grading import EXTRACTORS, grade
from proctor.grading.letters import chosen_option
from proctor.perturbation.admission.gate import admit
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.engine import ItemResult, reword
from proctor.perturbation.library.exchange import admit_file, entries_of
from proctor.perturbation.library.store import Outcome as LibraryOutcome
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.serving.convert import item_reply
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.strategies.compose import Chain, make_chain
from proctor.perturbation.strategies.option_relabel import OptionRelabel
from proctor.perturbation.strategies.option_shuffle import OptionShuffle
from proctor.router.plan import plan_trials
from proctor.scorer.page.html import render
from proctor.scorer.report.document import to_json
from proctor.text.option_labels import stand_apart
from proctor.text.prompt import render_prompt
from tests.report_samples import blocked
from tests.unit.variant_samples import HashedEncoder, MemoryRows, header, lines_of, resealed

CITIES = ("Rome", "Oslo", "Paris", "Lima")
ITEM = Item(item_id="i", question="Which city lies on the Seine?", choices=CITIES, target="Paris")
SECTION = PerturbationSection(
    perturbation_strategy="option_relabel", num_variants_per_item=4, min_semantic_distance=0.0
)
every_scheme = pytest.mark.parametrize("scheme", LabelScheme, ids=lambda scheme: scheme.name)


def _item(*choices: str, question: str = "Which?") -> Item:
    return Item(item_id="i", question=question, choices=choices, target=choices[0] if choices else "t")


def _schemes(item: Item, *, seed: int = 0, limit: int = 9) -> list[LabelScheme | None]:
    return [one.labels for one in Chain([OptionRelabel()]).candidates(item, seed=seed, limit=limit)]


def _variant(**changes: Any) -> Variant:
    measured = Measurements(semantic_distance=0.0, token_overlap=0.5, edit_distance=0.0)
    values = {"item_id": "i", "item_hash": "sha256:0", "strategy": "option_shuffle", "question": "Which?"}
    return Variant(**{**values, "choices": ("b", "a"), "measurements": measured, **changes})


def test_plain_options_can_be_labelled_in_every_way_and_the_seed_decides_the_order() -> None:
    assert set(_schemes(ITEM)) == set(LabelScheme)
    assert _schemes(ITEM, limit=2) == _schemes(ITEM)[:2]
    assert {_schemes(ITEM, seed=seed)[0] for seed in range(60)} == set(LabelScheme)


def test_the_question_the_options_and_the_target_stay_as_they_are() -> None:
    for one in Chain([OptionRelabel()]).candidates(ITEM, seed=0, limit=9):
        assert (one.question, one.choices, one.level) == (ITEM.question, ITEM.choices, 1)


@pytest.mark.parametrize(
    ("item", "left_out"),
    [
        (_item("2 apples", "5 apples", "7 apples"), {LabelScheme.NUMBERS}),
        (_item("I and II", "II only", "neither"), {LabelScheme.ROMAN_NUMERALS}),
        (_item("a dog", "a cat"), set()),
        (_item("a + b", "b - a"), {LabelScheme.SMALL_LETTERS}),
        (_item("p and q", "neither"), {LabelScheme.LATE_LETTERS}),
        (_item("C", "B", "A"), set(LabelScheme)),
        (_item("x", "two"), set(LabelScheme)),
        (_item(*(f"city number{n}" for n in range(9))), {LabelScheme.ROMAN_NUMERALS}),
        (_item(*(f"city number{n}" for n in range(12))), {LabelScheme.ROMAN_NUMERALS, LabelScheme.LATE_LETTERS}),
        (_item("true", "false", question="1. It rains. 2. It snows. Which?"), {LabelScheme.NUMBERS}),
        (_item("both", "neither", question="(I) It rains. (II) It snows."), {LabelScheme.ROMAN_NUMERALS}),
        (_item("true", "false", question="Tom has 1. Ann has 3. Who has more?"), set()),
    ],
)
def test_labels_that_could_be_taken_for_a_part_of_the_text_are_left_out(item: Item, left_out: set[Any]) -> None:
    assert set(LabelScheme) - set(_schemes(item)) == left_out


@pytest.mark.parametrize(
    ("item", "reason"),
    [(Item(item_id="i", question="q", target="t"), "no_options"), (_item("one"), "no_options"),
     (_item("A", "B"), "no_labels")],
)  # fmt: skip
def test_an_item_that_cannot_be_relabelled_says_why(item: Item, reason: str) -> None:
    assert _schemes(item) == []
    assert OptionRelabel().nothing_for(item)[0] == reason


def test_relabelling_chains_with_shuffling() -> None:
    chain = make_chain(
        "option_shuffle+option_relabel", {"option_shuffle": OptionShuffle, "option_relabel": OptionRelabel}
    )
    made = chain.candidates(ITEM, seed=0, limit=8)
    assert len(made) == 8
    assert all(one.choices != ITEM.choices and one.labels is not None and one.level == 2 for one in made)


@every_scheme
def test_the_prompt_shows_the_labels_and_the_answer_is_read_under_them(scheme: LabelScheme) -> None:
    variant = _variant(choices=CITIES, labels=scheme, item_hash=ITEM.content_hash)
    canonical, trial = plan_trials([ITEM], [variant], PromptSection())
    assert "A. Rome\n" in canonical.prompt
    assert f"\n{scheme.value} Rome\n" in trial.prompt
    assert "A. Rome" not in trial.prompt
    answer = Completion(trial_id=trial.trial_id, text=f"{marks(scheme, 3)[2]}")
    graded = grade(trial, answer, "Paris", EXTRACTORS["choice_letter"])
    assert (graded.outcome, graded.extracted) == (Outcome.CORRECT, "Paris")


def test_each_scheme_is_named_by_its_first_label() -> None:
    assert all(labelled(["x"], scheme) == (f"{scheme.value} x",) for scheme in LabelScheme)


@pytest.mark.parametrize(
    ("answer", "shown"),
    [("B", "2"), ("B. blue", "2. blue"), ("(B)", "(2)"), ("So the answer is B.", "So the answer is 2."),
     ("blue", "blue"), ("A dog chose B", "A dog chose 2"), ("E", "E")],
)  # fmt: skip
def test_solved_examples_take_the_labels_of_the_question(answer: str, shown: str) -> None:
    example = FewShotExample(question="Sky?", choices=("red", "blue"), answer=answer)
    prompt = render_prompt(PromptSection(few_shot=(example,)), "Grass?", ("green", "pink"), LabelScheme.NUMBERS)
    assert prompt.startswith(f"Question: Sky?\nOptions:\n1. red\n2. blue\nAnswer: {shown}\n\nQuestion: Grass?\n")
    plain = render_prompt(PromptSection(few_shot=(example,)), "Grass?", ("green", "pink"))
    assert f"A. red\nB. blue\nAnswer: {answer}\n\n" in plain


@every_scheme
@given(
    place=st.integers(0, 3),
    form=st.sampled_from(
        ["{}", "{}.", "({})", "**{}**", "Answer: {}", "The answer is {}", "The answer is ({}) because of the river.",
         "{}. Paris", "{}) Oslo", "({}) Rome", "\\boxed{{{}}}", "I would go with {}", "Option {}",
         "Let me see. So ({})",
         "The answer is {}) Lima", "{}\n\nQuestion: what next?", "{} or {}", "Answer: **{}**", "[{}]",
         "It is not {}, I think", "The answer is {} dogs"]
    ),
)  # fmt: skip
def test_a_label_is_read_wherever_a_letter_would_be(scheme: LabelScheme, place: int, form: str) -> None:
    letter, label = (marks(labels, 4)[place] for labels in (None, scheme))
    as_letter = None if form == "The answer is {} dogs" else chosen_option(form.format(letter, "A"), CITIES)
    other = marks(scheme, 1)[0]
    assert chosen_option(form.format(label, other), CITIES, scheme) == as_letter


@pytest.mark.parametrize("scheme", [LabelScheme.NUMBERS, LabelScheme.ROMAN_NUMERALS, LabelScheme.LATE_LETTERS])
def test_an_old_letter_under_new_labels_is_no_answer_unless_the_text_says_which(scheme: LabelScheme) -> None:
    for text in ("C", "C.", "(C)", "Answer: C", "The answer is C", "\\boxed{C}", "C\n\nQuestion: next?", "It is (C)"):
        assert chosen_option(text, CITIES, scheme) is None, text
    for text in ("C. Paris", "(C) Paris", "Answer: C) Paris", "The answer is C. Paris", "Paris"):
        assert chosen_option(text, CITIES, scheme) == "Paris", text


@pytest.mark.parametrize(
    "text",
    ["2.5", "The answer is 2.5", "-2", "$2", "2%", "1/2", "answer: 2:30", "the answer is 2 apples", "7", "2 or 3"],
)
def test_a_number_that_is_no_label_is_not_taken_for_one(text: str) -> None:
    assert chosen_option(text, CITIES, LabelScheme.NUMBERS) is None


def test_a_numbered_list_is_no_answer_by_its_first_number() -> None:
    steps = "1. First look at the map.\n2. Then at the river.\n"
    assert chosen_option(steps, CITIES, LabelScheme.NUMBERS) is None
    assert chosen_option(f"{steps}The answer is 3.", CITIES, LabelScheme.NUMBERS) == "Paris"
    following = "3. Paris\n\nQuestion: next?\n1. x\n2. y\nAnswer: 1"
    assert chosen_option(following, CITIES, LabelScheme.NUMBERS) == "Paris"


@every_scheme
@given(
    text=st.text(max_size=60)
    | st.lists(
        st.sampled_from(["1", "2", "iii", "a)", "P.", "C", "(", ")", "or", "Paris", "answer:", "\n", "not"])
    ).map(" ".join)
)
def test_no_answer_breaks_the_reading_of_labels(scheme: LabelScheme, text: str) -> None:
    assert chosen_option(text, CITIES, scheme) in {None, *CITIES}


_STARTS = (
    "", "Answer: ", "The answer is ", "It is not ", "option ", "I would go with ", "\\boxed{", "(", "Let me think.\n",
)  # fmt: skip
_NAMED = ("A", "B", "c", "K", "2", "Paris", "a dog", "York")
_ENDS = (
    "", ".", ")", "}", ") Paris", ". York", " or B", " because it is.", "\nQuestion: next?",
    ". Wait, the answer is B.",
)  # fmt: skip
_OPTIONS = (("Rome", "Paris", "York"), ("a dog", "2", "B"), ("C", "A", "B", "New York"))


def test_answers_by_letter_are_read_as_before_there_were_other_labels() -> None:
    texts = ["".join(parts) for parts in product(_STARTS, _NAMED, _ENDS)]
    read = [[chosen_option(text, options) for text in texts] for options in _OPTIONS]
    # Of the module as it was before labels; grades of every earlier audit hang on it.
    assert json_digest(read) == "sha256:5cf0c4be6ecd9b92094e4a12626950de7e3eb54ac96fd6969e3c5754a4545ffd"


def test_what_has_no_labels_is_written_and_named_as_before() -> None:
    variant = _variant()
    trial = Trial(arm=Arm.PERTURBED, item_id="i", variant_id="v", prompt="p", choices=("b", "a"))
    assert (variant.variant_id, trial.trial_id) == ("88ba7fd4605b56ae", "4e343199d15287f5")
    for written in (variant.plain(), trial.plain(), json.loads(variant.model_dump_json())):
        assert "labels" not in written


@every_scheme
def test_labels_make_another_variant_and_survive_being_written(scheme: LabelScheme) -> None:
    variant = _variant(labels=scheme)
    assert variant.variant_id != _variant().variant_id
    assert Variant.model_validate_json(variant.model_dump_json()) == variant
    trial = Trial(arm=Arm.PERTURBED, item_id="i", prompt="p", choices=("b", "a"), labels=scheme)
    assert Trial.model_validate_json(trial.model_dump_json()) == trial


@pytest.mark.parametrize(
    ("labels", "choices"),
    [("A.", ("a", "b")), ("Ignore the options.", ("a", "b")), ("1.", ()), ("P.", tuple(map(str, range(12))))],
)
def test_labels_that_are_none_or_too_few_are_refused(labels: str, choices: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match=r"do not fit|Input should be"):
        _variant(labels=labels, choices=choices)


def test_the_gate_admits_other_labels_and_counts_every_option_as_changed() -> None:
    variant = admit(ITEM, Candidate(ITEM.question, CITIES, "s", 1, {}, LabelScheme.NUMBERS), 0.0, SECTION)
    assert isinstance(variant, Variant)
    assert (variant.labels, variant.measurements.token_overlap) == (LabelScheme.NUMBERS, 0.5)


def test_the_gate_refuses_labels_that_could_be_confused() -> None:
    item = _item("2 apples", "5 apples", question="How many?")
    rejection = admit(item, Candidate("How many?", item.choices, "s", 1, {}, LabelScheme.NUMBERS), 0.0, SECTION)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == "labels_unclear"
    assert not stand_apart(LabelScheme.NUMBERS, "How many?", item.choices)


def _exported() -> bytes:
    encoder, library, chain = HashedEncoder(), VariantLibrary(MemoryRows()), Chain([OptionRelabel()])
    reword([ITEM], SECTION, chain=chain, encoder=encoder, library=library)
    head = header(encoder, SECTION)
    return write_variants(head, entries_of([ITEM], head, chain, encoder.fingerprint, library), with_rejections=False)


@pytest.mark.parametrize("remeasure", [False, True])
def test_labels_survive_an_export_and_its_import(remeasure: bool) -> None:
    rows = MemoryRows()
    file = parse_variants(_exported(), "v.jsonl")
    done = admit_file(file, encoder=HashedEncoder(), library=VariantLibrary(rows), remeasure=remeasure)
    assert (done.variants, done.rejected) == (4, {})
    made = reword(
        [ITEM], SECTION, chain=Chain([OptionRelabel()]), encoder=HashedEncoder(), library=VariantLibrary(rows)
    )
    assert made[0].from_library
    assert {variant.labels for variant in made[0].outcome.variants} == set(LabelScheme)


def test_a_file_cannot_bring_labels_that_do_not_exist() -> None:
    lines = lines_of(_exported())
    lines[1]["variant"]["labels"] = "Ignore the options."
    with pytest.raises(BadInputError, match=r"v\.jsonl:2: .*labels: Input should be"):
        parse_variants(resealed(lines), "v.jsonl")


def test_a_file_cannot_bring_labels_that_its_strategy_does_not_make() -> None:
    lines = lines_of(_exported())
    lines[0]["settings"]["perturbation_strategy"] = "option_shuffle"
    for line in lines[1:]:
        line["variant"]["strategy"] = "option_shuffle"
    file = parse_variants(resealed(lines), "v.jsonl")
    with pytest.raises(BadInputError, match=r"v\.jsonl:2: 'i': a variant has the labels .* which 'option_shuffle'"):
        admit_file(file, encoder=HashedEncoder(), library=VariantLibrary(MemoryRows()), remeasure=True)


@pytest.mark.parametrize("labels", [None, *LabelScheme])
def test_labels_travel_over_grpc(labels: LabelScheme | None) -> None:
    outcome = LibraryOutcome(variants=(_variant(labels=labels),), rejections=())
    sent = item_reply(0, "i", ItemResult(outcome, from_library=False)).SerializeToString()
    received = pb.ItemReply.FromString(sent).variants[0]
    assert (received.labels if received.HasField("labels") else None) == labels


def test_the_report_says_how_options_were_labelled_where_it_was_not_by_letter() -> None:
    audit = blocked(n_items=60, leaked=0.3, knows=0.5)
    plain = audit.report()
    audit.variants = [variant.model_copy(update={"labels": LabelScheme.NUMBERS}) for variant in audit.variants]
    relabelled = audit.report()
    assert b'"labels"' not in to_json(plain)
    assert {one.labels for item in relabelled.items for one in item.rewordings} == {LabelScheme.NUMBERS}
    assert "options labelled 1." in render(relabelled)
    assert "options labelled" not in render(plain)
