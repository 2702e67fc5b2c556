"""The margin to the benchmark's other items: in the gate, in builds, in the library, in exports and in streams."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item, Measurements, Rejection, Variant
from proctor.domain.suite import PerturbationSection
from proctor.formats.variants_file import parse_variants, write_variants
from proctor.perturbation.admission.gate import ANOTHER_ITEM, admit
from proctor.perturbation.admission.measure import ItemPair, measure
from proctor.perturbation.admission.starvation import check_yield
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.distances import PairDistances
from proctor.perturbation.encoder import Vectors
from proctor.perturbation.encoder.rough import LEAST_MARGIN, ObservedErrors
from proctor.perturbation.engine import reword
from proctor.perturbation.library.diff import diff_variants
from proctor.perturbation.library.exchange import admit_file, entries_of
from proctor.perturbation.library.store import Outcome, VariantLibrary, library_key
from proctor.perturbation.other_items import OtherItems
from proctor.perturbation.serving.limits import Limits
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.serving.stream_engine import StreamEngine
from tests.unit.variant_samples import ITEMS, REWORDINGS, SECTION, HashedEncoder, MemoryRows, chain, header

ITEM = ITEMS[0]
_ITEM_OF = {text: item.question for item in ITEMS for text in REWORDINGS[item.item_id]}


class NearOwn(HashedEncoder):
    """Puts each rewording near its own item."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        rows = _directions(texts)
        for row, text in enumerate(texts):
            if text in _ITEM_OF:
                rows[row] = rows[row] + 2 * _directions([_ITEM_OF[text]])[0]
        unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit


def _directions(texts: Sequence[str]) -> Vectors:
    rows = HashedEncoder().encode(texts)
    turned: Vectors = rows - rows.mean(axis=1, keepdims=True)
    return turned


CANDIDATE = Candidate(REWORDINGS["b-1"][0], (), "s", 1, {})
NARROW = SECTION.model_copy(update={"min_margin": 0.05})
ENCODER = NearOwn()
QUESTIONS = tuple(item.question for item in ITEMS)


def _others(*more: str) -> OtherItems:
    return OtherItems([*QUESTIONS, *more], ENCODER.encode)


@pytest.mark.parametrize(("margin", "admitted"), [(0.05, True), (0.0499, False), (-0.2, False), (1.0, True)])
def test_a_rewording_is_admitted_from_the_margin_on(margin: float, admitted: bool) -> None:
    verdict = admit(ITEM, CANDIDATE, 0.2, NARROW, margin)
    assert isinstance(verdict, Variant) is admitted
    if isinstance(verdict, Variant):
        assert verdict.measurements.margin == margin
    else:
        assert verdict.reason == ANOTHER_ITEM
        assert f"by {margin:.4f}, which is below 0.05" in verdict.detail


def test_the_ceiling_stays_beside_the_margin() -> None:
    far = admit(ITEM, CANDIDATE, 1.95, NARROW, 0.04)
    assert isinstance(far, Rejection)
    assert far.reason == "too_far"


def test_a_margin_that_was_not_measured_is_no_margin_that_is_kept() -> None:
    with pytest.raises(ValueError, match="none was measured"):
        admit(ITEM, CANDIDATE, 0.2, NARROW)
    with pytest.raises(BadInputError, match="questions did not come with the pairs"):
        measure([ItemPair(ITEM, CANDIDATE)], NARROW, ENCODER)
    with pytest.raises(ValueError, match="margin to the benchmark's other items"):
        reword(ITEMS, NARROW, chain=chain(), encoder=ENCODER, library=VariantLibrary(MemoryRows()))


def test_the_items_own_question_with_its_options_in_another_order_needs_no_margin() -> None:
    item = Item(item_id="i", question="Which is it?", choices=("a", "b", "c"), target="a")
    verdict = admit(item, Candidate("Which is it?", ("c", "b", "a"), "s", 1, {}), 0.0, NARROW)
    assert isinstance(verdict, Variant)
    assert verdict.measurements.margin is None


def test_a_gate_without_a_margin_writes_none() -> None:
    verdict = admit(ITEM, CANDIDATE, 0.2, SECTION, 0.7)
    assert isinstance(verdict, Variant)
    assert "margin" not in verdict.measurements.plain()
    assert "min_margin" not in SECTION.plain()
    old = '{"semantic_distance": 0.1, "token_overlap": 0.2, "edit_distance": 0.3}'
    assert Measurements.model_validate_json(old).margin is None


def test_another_items_question_is_turned_away_at_any_window_and_with_any_options() -> None:
    pairs = [
        ItemPair(item, Candidate(other.question, item.choices, "s", 1, {}))
        for item in ITEMS
        for other in ITEMS
        if other is not item
    ]
    smallest = SECTION.model_copy(update={"min_margin": 1e-4, "max_semantic_distance": 2.0})
    measured = measure(pairs, smallest, ENCODER, others=_others())
    assert all(one.rejection is not None for one in measured)
    assert all(one.measurements is not None and (one.measurements.margin or 0.0) < 0 for one in measured)


@given(st.permutations(ITEMS), st.integers(1, 3), st.sampled_from([0.0001, 0.3, 0.6, 1.5]))
def test_what_is_admitted_depends_on_neither_order_nor_parts_nor_sample(
    items: Sequence[Item], size: int, margin: float
) -> None:
    section = SECTION.model_copy(update={"min_margin": margin})
    whole = _outcomes(ITEMS, section)
    found: dict[str, Outcome] = {}
    for start in range(0, len(items), size):
        found |= _outcomes(items[start : start + size], section)
    assert found == whole
    assert _outcomes(items[:1], section).items() <= whole.items()


def _outcomes(items: Sequence[Item], section: PerturbationSection) -> dict[str, Outcome]:
    results = reword(
        items,
        section,
        chain=chain(),
        encoder=NearOwn(),
        library=VariantLibrary(MemoryRows()),
        others=_others("What is 5 plus 7?", "Where is the train?"),
    )
    return {item.item_id: one.outcome for item, one in zip(items, results, strict=True)}


def test_each_question_is_embedded_once_whether_it_is_an_items_or_another_ones() -> None:
    encoder = NearOwn()
    others = OtherItems(QUESTIONS, encoder.encode)
    reword(ITEMS, NARROW, chain=chain(), encoder=encoder, library=VariantLibrary(MemoryRows()), others=others)
    assert len(encoder.texts) == len(set(encoder.texts))
    assert set(QUESTIONS) <= set(encoder.texts)


def test_the_librarys_key_has_the_margin_and_the_questions_that_it_was_kept_to() -> None:
    plain = library_key(ITEM, chain(), SECTION, "e")
    assert library_key(ITEM, chain(), SECTION, "e", "sha256:any") == plain
    keys = {
        plain,
        library_key(ITEM, chain(), NARROW, "e", _others().digest),
        library_key(ITEM, chain(), NARROW, "e", _others("Another one?").digest),
        library_key(ITEM, chain(), NARROW.model_copy(update={"min_margin": 0.06}), "e", _others().digest),
    }
    assert len(keys) == 4


def test_a_larger_margin_admits_less() -> None:
    admitted = [
        sum(len(one.variants) for one in _outcomes(ITEMS, SECTION.model_copy(update={"min_margin": margin})).values())
        for margin in (0.0001, 0.9, 1.5)
    ]
    assert admitted[0] > admitted[1] >= admitted[2] == 0


def _exported() -> bytes:
    library, others = VariantLibrary(MemoryRows()), _others()
    section = SECTION.model_copy(update={"min_margin": 0.0001})
    made = reword(ITEMS, section, chain=chain(), encoder=ENCODER, library=library, others=others)
    assert sum(len(one.outcome.variants) for one in made) > 0
    head = header(ENCODER, section).model_copy(update={"others": others.digest})
    return write_variants(head, entries_of(ITEMS, head, chain(), ENCODER.fingerprint, library), with_rejections=True)


def test_an_export_is_admitted_under_the_same_keys_with_the_margins_that_it_states() -> None:
    rows = MemoryRows()
    file = parse_variants(_exported(), "v.jsonl")
    admit_file(file, encoder=ENCODER, library=VariantLibrary(rows))
    keys = {library_key(item, chain(), file.header.settings, ENCODER.fingerprint, _others().digest) for item in ITEMS}
    assert set(rows.rows) == keys


def test_a_forged_export_whose_variants_state_no_margin_or_too_small_a_one_is_refused() -> None:
    file = parse_variants(_exported(), "v.jsonl")
    for forged, fault in ((None, "states none"), (-0.2, "another_item")):
        entries = tuple(
            entry._replace(
                variants=tuple(
                    one.model_copy(update={"measurements": one.measurements.model_copy(update={"margin": forged})})
                    for one in entry.variants
                )
            )
            for entry in file.entries
        )
        with pytest.raises(BadInputError, match=fault):
            admit_file(file._replace(entries=entries), encoder=ENCODER, library=VariantLibrary(MemoryRows()))


def test_an_export_cannot_be_measured_again_without_the_benchmark() -> None:
    with pytest.raises(BadInputError, match="whose questions are not in the file"):
        admit_file(
            parse_variants(_exported(), "v.jsonl"),
            encoder=ENCODER,
            library=VariantLibrary(MemoryRows()),
            remeasure=True,
        )


def test_the_difference_of_two_exports_names_the_margin() -> None:
    with_margin = parse_variants(_exported(), "v.jsonl")
    without = with_margin._replace(header=header(ENCODER))
    for a, b in ((with_margin, without), (without, with_margin)):
        changed = diff_variants((a.header, a.entries), (b.header, b.entries)).settings
        assert "min_margin" in {one.name for one in changed}


def test_a_build_that_starves_for_its_margin_is_told_of_it() -> None:
    rejection = Rejection(item_id="i", reason=ANOTHER_ITEM)
    starved = [Outcome(variants=(), rejections=(rejection,), distances=(0.2,))] * 9
    with pytest.raises(BadInputError, match=r"not nearer to their own item by 0\.05 than to another one"):
        check_yield(starved, NARROW, "imported")


class _Plane:
    """Texts on a circle by name, and a little off in a rough measurement."""

    def __init__(self, angles: dict[str, float], errors: dict[str, float] | None = None) -> None:
        self.name = self.digest = self.fingerprint = "plane" if errors is None else "rough plane"
        self._angles, self._errors = angles, errors or {}
        if errors is not None:
            self.exact, self.errors = _Plane(angles), ObservedErrors()
            self.encode_roughly = self._encode_roughly

    def encode(self, texts: Sequence[str]) -> Vectors:
        return _on_circle([self._angles[text] for text in texts])

    def _encode_roughly(self, texts: Sequence[str]) -> Vectors:
        return _on_circle([self._angles[text] + self._errors.get(text, 0.0) for text in texts])


def _on_circle(angles: Sequence[float]) -> Vectors:
    return np.asarray([(math.cos(angle), math.sin(angle)) for angle in angles], dtype=np.float32)


@given(st.lists(st.floats(0.05, 0.75), min_size=1, max_size=30), st.randoms(), st.floats(0.001, 0.2))
def test_near_the_margins_end_rough_distances_decide_as_the_exact_ones(
    places: list[float], random: Random, margin: float
) -> None:
    angles = {"own": 0.0, "other": 0.8} | {f"r{n}": place for n, place in enumerate(places)}
    # Of an angle below 0.8 the cosine moves by less than the angle does.
    errors = {name: random.uniform(-LEAST_MARGIN, LEAST_MARGIN) * 0.9 for name in angles if name.startswith("r")}
    rough = _Plane(angles, errors)
    pairs = [("own", f"r{n}") for n in range(len(places))]
    others = OtherItems(["own", "other"], rough.exact.encode)

    def enough(measured: PairDistances) -> list[bool]:
        return [round(one.margin or 0.0, 4) >= margin for one in measured.placed(pairs)]

    quickly = PairDistances(rough, window=(0.0, 2.0), others=others, min_margin=margin)
    exactly = PairDistances(rough.exact, others=others)
    assert enough(quickly) == enough(exactly)


def _stream(settings: pb.StreamSettings) -> tuple[StreamEngine, pb.StreamSettings]:
    return StreamEngine(NearOwn, VariantLibrary(MemoryRows()), Path("/nonexistent")), settings


def _settings(min_margin: float | None = 0.0001) -> pb.StreamSettings:
    config = pb.PerturbationConfig(
        perturbation_strategy="imported", min_semantic_distance=0.0, max_semantic_distance=1.9, min_margin=min_margin
    )
    return pb.StreamSettings(perturbation_config=config, benchmark="b")


def _asked(item: Item) -> pb.PerturbRequest:
    wordings = [pb.Wording(question=text) for text in REWORDINGS[item.item_id]]
    return pb.PerturbRequest(
        item=pb.Item(item_id=item.item_id, question=item.question, target=item.target, rewordings=wordings)
    )


def test_a_stream_brings_the_benchmarks_questions_before_its_items_and_gets_no_reply_to_them() -> None:
    engine, settings = _stream(_settings())
    questions = engine.questions(settings, Limits())
    recipe = engine.recipe(settings)
    asking = [pb.PerturbRequest(question=text) for text in QUESTIONS]
    assert engine.perturb(recipe, asking[:2], 0, questions) == []
    replies = engine.perturb(recipe, [*asking[2:], _asked(ITEMS[0])], 0, questions)
    replies += engine.perturb(recipe, [_asked(ITEMS[1])], 1, questions)
    assert [reply.index for reply in replies] == [0, 1]
    section = SECTION.model_copy(update={"min_margin": 0.0001, "num_variants_per_item": 3})
    made = reword(
        ITEMS[:2], section, chain=chain(), encoder=ENCODER, library=VariantLibrary(MemoryRows()), others=_others()
    )
    assert [len(reply.variants) for reply in replies] == [len(one.outcome.variants) for one in made]
    assert replies[0].variants[0].measurements.margin == made[0].outcome.variants[0].measurements.margin


def test_questions_that_come_late_that_nobody_asked_for_and_that_are_too_many_end_the_stream() -> None:
    engine, settings = _stream(_settings())
    recipe = engine.recipe(settings)
    question = pb.PerturbRequest(question=QUESTIONS[0])
    questions = engine.questions(settings, Limits())
    with pytest.raises(BadInputError, match="comes after the first item"):
        engine.perturb(recipe, [question, _asked(ITEMS[0]), question], 0, questions)
    engine.perturb(recipe, [question, _asked(ITEMS[0])], 0, questions := engine.questions(settings, Limits()))
    with pytest.raises(BadInputError, match="comes after the first item"):
        engine.perturb(recipe, [question], 1, questions)
    with pytest.raises(BadInputError, match="their questions did not come with it"):
        engine.perturb(recipe, [_asked(ITEMS[0])], 0, engine.questions(settings, Limits()))
    many = [pb.PerturbRequest(question=text) for text in QUESTIONS]
    with pytest.raises(LimitError, match="at most 2 questions of a benchmark"):
        engine.perturb(recipe, many, 0, engine.questions(settings, Limits(max_questions=2)))
    with pytest.raises(BadInputError, match="is empty or no text"):
        engine.perturb(recipe, [pb.PerturbRequest(question=" ")], 0, engine.questions(settings, Limits()))
    fixed = _settings(None)
    with pytest.raises(BadInputError, match="its gate keeps no margin"):
        engine.perturb(engine.recipe(fixed), [question], 0, engine.questions(fixed, Limits()))


def test_pairs_are_measured_with_their_margin() -> None:
    engine, settings = _stream(_settings())
    questions, section = engine.questions(settings, Limits()), engine.section(settings)
    original = pb.Item(item_id="b-1", question=ITEM.question, target=ITEM.target)
    pair = pb.MeasureRequest(pair=pb.Pair(original=original, rewording=pb.Wording(question=QUESTIONS[1])))
    brought = [pb.MeasureRequest(question=text) for text in QUESTIONS]
    (reply,) = engine.measure(section, [*brought, pair], 0, questions)
    assert not reply.admitted
    assert reply.measurements.margin == pytest.approx(-reply.measurements.semantic_distance)
