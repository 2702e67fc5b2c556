"""Calibrating the gate on made-up vectors, and using what was learned."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from proctor.domain.canonical import bytes_digest
from proctor.domain.card import ContentDigests, protocol_card
from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import GateCalibration
from proctor.domain.item import Item, Rejection
from proctor.domain.problems import SuiteProblems
from proctor.domain.suite import PerturbationSection, Suite
from proctor.domain.suite_problems import parse_suite
from proctor.evidence.intervals import wilson
from proctor.formats.gate_calibration import gate_calibration_bytes, parse_gate_calibration
from proctor.formats.suites import content_digests
from proctor.perturbation.admission.calibration import (
    LabelledPair,
    calibrate,
    nearest_different,
    neighbours_needed,
    with_window,
)
from proctor.perturbation.admission.gate import admit, screen
from proctor.perturbation.admission.starvation import check_yield
from proctor.perturbation.admission.window import Goals
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.encoder import Vectors
from proctor.perturbation.encoder.rough import ObservedErrors
from proctor.perturbation.engine import reword
from proctor.perturbation.library.store import Outcome, VariantLibrary
from proctor.perturbation.strategies.compose import Chain
from proctor.router.submit.gathering import gather
from proctor.studies.calibration_plots import figures
from tests.suites.examples import SMALL, with_changes

GOALS = Goals(true_admits=0.9, false_admits=0.05)
SECTION = PerturbationSection()
CALIBRATED = PerturbationSection(gate="calibrated", calibration_path="c.json")


_LETTERS = str.maketrans("0123456789", "abcdefghij")
_DIGITS = str.maketrans("abcdefghij", "0123456789")


def _place(angle: float, circle: int = 0) -> str:
    """An angle on one of several circles as a word, because the gate compares numbers."""
    return f"{circle:03}{round(angle * 1e6):08}".translate(_LETTERS)


_CIRCLES = 256


class Angles:
    """Texts at the angle and on the circle that their last word is: two are 1 minus the cosine of the difference apart.

    All circles meet at a right angle from where they begin; where they begin they are 1 apart.
    """

    name, digest, fingerprint = "angles", "sha256:weights", "sha256:angles"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors."""
        words = [text.split()[-1].translate(_DIGITS) for text in texts]
        vectors = np.zeros((len(texts), 1 + _CIRCLES), dtype=np.float32)
        for row, word in enumerate(words):
            angle = int(word[3:]) / 1e6
            vectors[row, [1 + int(word[:3]), 0]] = math.cos(angle), math.sin(angle)
        return vectors


class RoughAngles(Angles):
    """The same, with vectors besides that are a little off."""

    name, fingerprint = "angles (bf16)", "sha256:angles in bf16"

    def __init__(self) -> None:
        self.exact, self.errors = Angles(), ObservedErrors()

    def encode_roughly(self, texts: Sequence[str]) -> Vectors:
        """No unit vectors: who measures with them is found out."""
        return 2 * self.encode(texts)


def _angle(distance: float) -> float:
    return math.acos(1 - distance)


_COLOURS = ["red", "green", "blue", "white", "black", "pink", "brown", "grey"]


def _item(n: int) -> Item:
    story = f"a {_COLOURS[n % 8]} and a {_COLOURS[n // 8 % 8]} bird sing"
    return Item(item_id=f"i{n}", question=f"Where do {story} {_place(0, n)}", target="x")


def _pair(
    n: int, distance: float, *, equivalent: bool, wording: str = "At which place may they be heard"
) -> LabelledPair:
    candidate = Candidate(f"{wording} {_COLOURS[n % 8]} {_place(_angle(distance), n)}", (), "s", 1, {})
    return LabelledPair(_item(n), candidate, equivalent, nearest=not equivalent)


def _pairs(count: int = 64) -> list[LabelledPair]:
    same = [_pair(n, 0.05 + 0.001 * n, equivalent=True) for n in range(count)]
    other = [_pair(n, 0.4 + 0.002 * n, equivalent=False) for n in range(count)]
    return same + other


def _calibrate(pairs: Sequence[LabelledPair], section: PerturbationSection = SECTION) -> GateCalibration:
    return calibrate(pairs, section, benchmark="birds", encoder=Angles(), goals=GOALS)


def test_what_is_held_out_is_reported_with_wilsons_interval() -> None:
    learned = _calibrate(_pairs())
    assert (learned.learned_from.equivalent, learned.held_out.equivalent, learned.held_out.different) == (32, 32, 32)
    assert 0.05 < learned.max_semantic_distance < 0.05 + 0.001 * 64
    assert learned.bounded_by == "equivalent"
    admitted = round((learned.rates.true_admits.value or 0) * 32)
    assert learned.rates.true_admits == wilson(admitted, 32, 0.95)
    assert 25 <= admitted <= 32
    assert learned.rates.false_admits == learned.rates.nearest_admits == wilson(0, 32, 0.95)
    assert learned.rejections == ({"too_far": 32 - admitted} if admitted < 32 else {})


def test_the_articles_windows_stand_beside_the_learned_one() -> None:
    windows = _calibrate(_pairs()).fixed_windows
    assert [(each.min_semantic_distance, each.max_semantic_distance) for each in windows] == [
        (0.15, 0.45),
        (0.15, 0.30),
        (0.20, 0.50),
    ]
    assert all(each.true_admits.value == 0.0 for each in windows)
    assert (windows[0].false_admits.value or 0) > 0.3


def test_the_same_pairs_and_seed_give_the_same_bytes_and_another_seed_another_split() -> None:
    pairs = _pairs()
    assert gate_calibration_bytes(_calibrate(pairs)) == gate_calibration_bytes(_calibrate(pairs))
    reseeded = _calibrate(pairs, SECTION.model_copy(update={"seed": 1}))
    assert reseeded.max_semantic_distance != _calibrate(pairs).max_semantic_distance


def test_pairs_that_another_check_turns_away_have_no_part_in_the_window() -> None:
    broken = [_pair(n, 0.3, equivalent=True, wording="Where are 4 of them") for n in range(64)]
    learned = _calibrate(_pairs() + broken)
    assert learned.max_semantic_distance == _calibrate(_pairs()).max_semantic_distance
    assert (learned.held_out.equivalent, learned.held_out.equivalent_kept) == (64, 32)
    assert learned.rejections["numerals"] == 32
    assert learned.roc_gate.auc < learned.roc_distance.auc == 1.0


def test_empty_rewordings_are_counted_and_never_admitted() -> None:
    empty = [LabelledPair(_item(n), Candidate("", (), "s", 1, {}), True) for n in range(8)]
    learned = _calibrate(_pairs() + empty)
    assert learned.rejections["empty"] == 4
    assert learned.held_out.equivalent == 36
    assert sum(one.equivalent for one in learned.histogram) == 32


def test_pairs_of_one_item_stay_in_one_half() -> None:
    twice = [_pair(n, 0.04, equivalent=True, wording="Name the spot, please") for n in range(63)]
    learned = _calibrate(_pairs(63) + twice)
    assert (learned.learned_from.equivalent, learned.held_out.equivalent) == (64, 62)


def test_a_document_is_read_back_as_it_was() -> None:
    learned = _calibrate(_pairs())
    assert parse_gate_calibration(gate_calibration_bytes(learned), "c.json") == learned


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "c.json is no calibration of the gate"),
        (b"\xff\x00", "c.json is no calibration of the gate"),
        (b'{"schema_version": "gate-calibration/9"}', r'schema_version is "gate-calibration/9"'),
    ],
)
def test_another_file_is_refused_with_the_mend(data: bytes, message: str) -> None:
    with pytest.raises(BadInputError, match=message) as caught:
        parse_gate_calibration(data, "c.json")
    assert "run `proctor variants calibrate` again" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_calibrated_section_gets_the_learned_window() -> None:
    learned = _calibrate(_pairs())
    section = with_window(CALIBRATED, learned, benchmark="birds", encoder=Angles())
    assert (section.gate, section.min_semantic_distance) == ("fixed", 0.0)
    assert section.max_semantic_distance == learned.max_semantic_distance
    assert with_window(SECTION, None, benchmark="birds", encoder=Angles()) is SECTION


def test_a_calibration_of_another_encoder_or_benchmark_is_refused() -> None:
    learned = _calibrate(_pairs())
    other = Angles()
    other.name, other.fingerprint = "other", "sha256:other"
    with pytest.raises(BadInputError, match=r"c\.json was learned for the encoder angles .*measured with other"):
        with_window(CALIBRATED, learned, benchmark="birds", encoder=other)
    with pytest.raises(BadInputError, match=r"learned for the benchmark 'birds', and the suite's is 'fish'"):
        with_window(CALIBRATED, learned, benchmark="fish", encoder=Angles())
    with pytest.raises(BadInputError, match="did not come with it"):
        with_window(CALIBRATED, None, benchmark="birds", encoder=Angles())


def test_a_calibration_learned_in_fp32_is_right_for_the_same_weights_in_bf16() -> None:
    learned = _calibrate(_pairs())
    in_fp32 = with_window(CALIBRATED, learned, benchmark="birds", encoder=Angles())
    assert with_window(CALIBRATED, learned, benchmark="birds", encoder=RoughAngles()) == in_fp32


def test_a_calibration_learned_with_a_bf16_encoder_is_that_of_fp32() -> None:
    learned = calibrate(_pairs(), SECTION, benchmark="birds", encoder=RoughAngles(), goals=GOALS)
    assert learned == _calibrate(_pairs())


def test_each_item_is_paired_with_the_questions_nearest_to_it() -> None:
    items = [
        Item(item_id=str(n), question=f"Question {name} {_place(angle)}", target="x")
        for n, (name, angle) in enumerate([("a", 0.0), ("b", 0.1), ("c", 0.3), ("d", 1.0)])
    ]
    pairs = nearest_different(items, Angles(), 2)
    found = [(pair.item.item_id, pair.candidate.question[9], pair.nearest) for pair in pairs]
    assert found == [
        ("0", "b", True), ("0", "c", False), ("1", "a", True), ("1", "c", False),
        ("2", "b", True), ("2", "a", False), ("3", "c", True), ("3", "b", False),
    ]  # fmt: skip


def test_an_item_that_asks_the_same_is_not_a_different_one() -> None:
    items = [Item(item_id=str(n), question=f"{name} {_place(angle)}", target="x") for n, (name, angle) in enumerate(
        [("Who", 0.0), ("who ", 0.0), ("WHO", 0.0), ("Why", 1.0)]
    )]  # fmt: skip
    assert [pair.candidate.question for pair in nearest_different(items, Angles(), 1)][:3] == [f"Why {_place(1.0)}"] * 3


def test_as_many_neighbours_are_taken_as_the_false_admits_ask_for() -> None:
    assert neighbours_needed(1319, Goals()) == 2
    assert neighbours_needed(10_000, Goals()) == 1
    with pytest.raises(BadInputError, match="has 20 items, which do not make the 2000 different pairs"):
        neighbours_needed(20, Goals())


def test_the_figures_are_well_formed_and_name_the_window() -> None:
    drawn = figures(_calibrate(_pairs()))
    assert set(drawn) == {"distances.svg", "roc.svg"}
    for picture in drawn.values():
        assert ET.fromstring(picture).tag.endswith("svg")
        assert "nan" not in picture
    assert "learned window, 0 to" in drawn["distances.svg"]


ITEM = Item(item_id="i", question="How many eggs do the three hens of Janet lay on a sunny day?", target="6")


def test_containment_and_edit_distance_decide_where_the_suite_sets_them() -> None:
    same = Candidate("Well: how many eggs do the three hens of Janet lay on a sunny day, then?", (), "s", 1, {})
    strict = {"max_token_overlap": 1.0, "max_containment": 0.5}
    rejection = screen(ITEM, same, SECTION.model_copy(update=strict))
    assert isinstance(rejection, Rejection)
    assert (rejection.reason, rejection.detail) == ("surface_too_close", "containment 1.0000 is above 0.5")
    loose = SECTION.model_copy(update={"max_token_overlap": 1.0})
    assert not isinstance(screen(ITEM, same, loose), Rejection)
    rejection = screen(ITEM, same, loose.model_copy(update={"min_edit_distance": 0.5}))
    assert isinstance(rejection, Rejection)
    assert "edit distance" in rejection.detail


def test_containment_is_kept_on_the_variant() -> None:
    reworded = Candidate("On a sunny day, Janet's 3 hens lay how many eggs?", (), "s", 1, {})
    variant = admit(ITEM, reworded, 0.2, SECTION)
    assert not isinstance(variant, Rejection)
    assert variant.measurements.containment == 0.0


def test_a_calibrated_gate_without_its_file_is_a_problem_of_the_suite() -> None:
    with pytest.raises(SuiteProblems) as caught:
        parse_suite(_suite_json({"perturbation_config.gate": "calibrated"}))
    (line,) = caught.value.lines()
    assert "perturbation_config.gate" in line
    assert "calibration_path is missing" in line
    assert "proctor variants calibrate" in line


def test_the_card_binds_the_calibrations_content_and_not_its_path() -> None:
    def digest(path: str, content: str) -> str:
        changes = {"perturbation_config.gate": "calibrated", "perturbation_config.calibration_path": path}
        suite = Suite.model_validate(with_changes(changes, SMALL))
        return protocol_card(suite, ContentDigests(calibration=content), evaluator_version="p").protocol_digest

    assert digest("a.json", "sha256:1") == digest("b.json", "sha256:1")
    assert digest("a.json", "sha256:1") != digest("a.json", "sha256:2")


def test_a_starved_window_says_how_many_fell_on_which_side_and_offers_a_calibrated_one() -> None:
    def outcome(reason: str, distance: float) -> Outcome:
        return Outcome(variants=(), rejections=(Rejection(item_id="i", reason=reason),), distances=(distance,))

    starved = [outcome("too_close", 0.05)] * 7 + [outcome("too_far", 0.6)] * 2
    with pytest.raises(BadInputError, match=r"7 fell below the window 0\.15 to 0\.45 and 2 above it") as caught:
        check_yield(starved, SECTION, "imported")
    assert "`proctor variants calibrate` learns the window" in str(caught.value)
    learned = SECTION.model_copy(update={"calibration_path": "c.json"})
    with pytest.raises(BadInputError, match=r"This window is the one of c\.json"):
        check_yield(starved, learned, "imported")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"perturbation_config\.calibration_path: .*c\.json cannot be read: No such file or directory"),
        (b"{}", r"c\.json is no calibration of the gate"),
    ],
)
def test_an_audit_does_not_begin_with_a_calibration_that_cannot_be_used(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    (tmp_path / "items.jsonl").write_text('{"question": "How many?", "answer": "1"}\n')
    if content is not None:
        (tmp_path / "c.json").write_bytes(content)
    changes = {
        "dataset_config.path": "items.jsonl",
        "perturbation_config.gate": "calibrated",
        "perturbation_config.calibration_path": "c.json",
    }
    suite = Suite.model_validate(with_changes(changes, SMALL))
    with pytest.raises(BadInputError, match=message):
        gather(suite, tmp_path, tmp_path)
    expected = None if content is None else bytes_digest(content)
    assert content_digests(suite, tmp_path, tmp_path).calibration == expected


def test_a_calibration_that_is_named_beside_a_fixed_gate_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text('{"question": "How many?", "answer": "1"}\n')
    changes = {"dataset_config.path": "items.jsonl", "perturbation_config.calibration_path": "absent.json"}
    suite = Suite.model_validate(with_changes(changes, SMALL))
    assert gather(suite, tmp_path, tmp_path).calibration is None


def test_the_engine_refuses_a_window_that_was_not_resolved() -> None:
    chain = Chain([])
    with pytest.raises(ValueError, match="not resolved"):
        reword([ITEM], CALIBRATED, chain=chain, encoder=Angles(), library=VariantLibrary(NoRows()))


class NoRows:
    """A record store that nobody may ask."""

    def library_get(self, keys: Sequence[str]) -> NoReturn:
        raise AssertionError("nobody may ask")

    def library_put(self, rows: Mapping[str, Mapping[str, Any]], origin: Mapping[str, str] | None = None) -> NoReturn:
        raise AssertionError("nobody may ask")

    library_origins = library_get


def _suite_json(changes: dict[str, str]) -> bytes:
    return json.dumps(with_changes(changes, SMALL)).encode()
