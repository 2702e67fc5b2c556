"""What a calibration says besides its window: the margin, near items, changed questions, and of older documents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.cli.variants.calibrate import _print as print_calibration
from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import GateCalibration, NearItems
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection, Suite
from proctor.evidence.intervals import wilson
from proctor.formats.gate_calibration import gate_calibration_bytes, parse_gate_calibration
from proctor.perturbation.admission.calibration import (
    ChangedQuestion,
    LabelledPair,
    calibrate,
    nearest_different,
    with_window,
)
from proctor.perturbation.admission.learned import other_items
from proctor.perturbation.admission.window import Goals
from proctor.perturbation.candidate import Candidate
from proctor.router.submit.gathering import gather
from proctor.runtime.settings import Settings
from proctor.studies.calibration import labelled_pairs
from tests.suites.examples import SMALL, with_changes
from tests.unit.test_gate_calibration import CALIBRATED, GOALS, SECTION, Angles, _angle, _item, _pair, _pairs, _place
from tests.unit.variant_samples import HashedEncoder

ENCODER = Angles()


def _learned(pairs: Sequence[LabelledPair], **more: object) -> GateCalibration:
    return calibrate(pairs, SECTION, benchmark="birds", encoder=ENCODER, goals=GOALS, **more)  # type: ignore[arg-type]


def _whole() -> list[LabelledPair]:
    """Rewordings near their items, and each item with the question of another one."""
    items = [_item(n) for n in range(64)]
    same = [_pair(n, 0.05 + 0.001 * n, equivalent=True) for n in range(64)]
    return [*same, *nearest_different(items, ENCODER, 1)]


def test_a_margin_is_learned_and_no_other_question_of_the_benchmark_passes() -> None:
    learned = _learned(_whole())
    # Each circle begins 1 from every other.
    assert 0.8 < (learned.min_margin or 0) < 1.0
    assert learned.questions == 64
    assert learned.rates.nearest_admits.value == 0.0
    assert learned.rates.min_margin == learned.min_margin
    assert all(one.min_margin is None for one in learned.fixed_windows)
    assert learned.reworded_admits is not None
    assert learned.reworded_admits.value == 0.0
    assert "nearer than to any other item, admits" in learned.conclusion


@settings(max_examples=12)
@given(st.sets(st.integers(0, 63), min_size=1, max_size=20), st.booleans())
def test_items_that_a_benchmark_has_twice_are_one_item(repeated: set[int], paired: bool) -> None:
    pairs = _whole()
    twins = {n: _item(n).model_copy(update={"item_id": f"twin-{n}"}) for n in repeated}
    same = [pair._replace(item=twins[n]) for n in repeated for pair in pairs if pair.item == _item(n)]
    items = [_item(n) for n in range(64)]
    twice = _learned([*pairs, *(same if paired else ())], items=[*items, *twins.values()])
    once = _learned(pairs, items=items)
    assert twice.crowding is not None
    assert gate_calibration_bytes(twice) == gate_calibration_bytes(once)


def test_twins_with_pairs_of_their_own_stay_in_one_half() -> None:
    twin = _item(3).model_copy(update={"item_id": "twin"})
    other = [_pair(3, 0.04, equivalent=True, wording="Name the spot, please")._replace(item=twin)]
    learned = _learned([*_whole(), *other])
    assert abs(learned.learned_from.equivalent - learned.held_out.equivalent) == 1


def test_the_order_of_the_benchmark_changes_nothing() -> None:
    items = [_item(n) for n in range(64)]
    assert _learned(_whole(), items=items[::-1]) == _learned(_whole(), items=items)


def test_what_is_admitted_of_changed_questions_is_told_by_kind_and_teaches_nothing() -> None:
    def changed(n: int, distance: float, kind: str) -> ChangedQuestion:
        return ChangedQuestion(_item(n), _pair(n, distance, equivalent=False).candidate, kind)

    near = [changed(n, 0.02, "analogous") for n in range(30)]
    far = [changed(n, 0.6, "extended") for n in range(20)]
    learned = _learned(_whole(), changed=[*near, *far])
    assert learned.changed is not None
    told = [(one.kind, one.questions, one.admitted) for one in learned.changed]
    assert told == [("analogous", 30, wilson(30, 30, 0.95)), ("extended", 20, wilson(0, 20, 0.95))]
    assert learned.model_copy(update={"changed": None}) == _learned(_whole())


def _crowded() -> list[Item]:
    """Three items of which two are nearer to each other than any rewording is to its item."""
    near = _angle(0.001)
    questions = [f"Where sing the red {_place(0, 200)}", f"Where sing the blue {_place(near, 200)}"]
    return [Item(item_id=f"near{n}", question=question, target="x") for n, question in enumerate(questions)]


def test_items_nearer_to_each_other_than_rewordings_are_stand_in_the_document() -> None:
    learned = _learned(_whole(), items=[*(_item(n) for n in range(64)), *_crowded()])
    crowding = learned.crowding
    assert crowding is not None
    assert (crowding.pairs, crowding.items, crowding.indistinct) == (1, 2, 2)
    assert [(one.item, one.other) for one in crowding.nearest] in ([("near0", "near1")], [("near1", "near0")])
    assert crowding.nearest[0].distance == pytest.approx(0.001)
    assert 0.05 < crowding.below < 0.12


def test_the_command_lists_near_items_and_says_what_the_audit_cannot_tell(capsys: pytest.CaptureFixture[str]) -> None:
    learned = _learned(_whole(), items=[*(_item(n) for n in range(64)), *_crowded()])
    assert learned.crowding is not None
    hostile = NearItems(item="a\x1b[2Jb\nc", other="x" * 300, distance=0.0123)
    listed = learned.crowding.model_copy(update={"nearest": (hostile,) * 12, "pairs": 12})
    print_calibration(learned.model_copy(update={"crowding": listed}), Path("c.json"))
    out = capsys.readouterr().out
    assert "\x1b[2J" not in out
    assert f"  0.0123  ab c  {'x' * 60}…\n" in out
    assert out.count("0.0123") == 10
    assert "… and 2 more; the file lists 12" in out
    assert "2 items have another one nearer than that" in out
    assert "the audit says nothing of it" in out
    assert "questions changed on purpose, admitted: not known; --changed brings such questions" in out
    print_calibration(_learned(_whole()), Path("c.json"))
    assert "no two items are nearer to each other" in capsys.readouterr().out


def test_a_calibrated_section_keeps_its_margin_to_the_questions_that_were_learned_with() -> None:
    learned = _learned(_whole())
    section = with_window(CALIBRATED, learned, benchmark="birds", encoder=ENCODER)
    assert section.min_margin == learned.min_margin
    questions = [_item(n).question for n in range(64)]
    others = other_items(section, learned, reversed(questions), ENCODER.encode)
    assert others is not None
    assert others.digest == learned.questions_digest
    with pytest.raises(BadInputError, match=r"c\.json was learned with 64 questions .* and here are 63"):
        other_items(section, learned, questions[:-1], ENCODER.encode)
    with pytest.raises(BadInputError, match="their questions did not come with it"):
        other_items(section, learned, None, ENCODER.encode)
    assert other_items(SECTION, None, None, ENCODER.encode) is None


def _first_version() -> bytes:
    document = json.loads(gate_calibration_bytes(_learned(_pairs())))
    for name in ("min_margin", "questions", "questions_digest", "reworded_admits", "crowding"):
        del document[name]
    del document["rates"]["min_margin"]
    document["schema_version"] = "gate-calibration/1"
    return json.dumps(document, indent=2).encode() + b"\n"


def test_a_document_of_the_first_version_is_a_window_without_a_margin() -> None:
    old = parse_gate_calibration(_first_version(), "c.json")
    assert gate_calibration_bytes(old) == _first_version()
    section = with_window(CALIBRATED, old, benchmark="birds", encoder=ENCODER)
    assert section.min_margin is None
    assert "min_margin" not in section.plain()
    assert other_items(section, old, None, ENCODER.encode) is None


@pytest.mark.parametrize("first", [True, False])
def test_whoever_submits_an_older_document_is_told_to_learn_anew(tmp_path: Path, first: bool) -> None:
    (tmp_path / "items.jsonl").write_text('{"question": "How many?", "answer": "1"}\n' * 2)
    learned = _first_version() if first else gate_calibration_bytes(_learned(_pairs()))
    (tmp_path / "c.json").write_bytes(learned)
    changes = {
        "dataset_config.path": "items.jsonl",
        "dataset_config.sample_size": 1,
        "perturbation_config.gate": "calibrated",
        "perturbation_config.calibration_path": "c.json",
    }
    data = gather(Suite.model_validate(with_changes(changes, SMALL)), tmp_path, tmp_path)
    told = [note for note in data.notes if "run `proctor variants calibrate` again" in note]
    assert len(told) == first
    assert (data.questions is None) is first
    assert data.contents.calibration == bytes_digest(learned)


def test_the_questions_of_an_audit_are_the_whole_benchmarks_whatever_sample_it_takes(tmp_path: Path) -> None:
    rows = [{"question": f"How many are {n} and {n}?", "answer": "1"} for n in range(9)]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def gathered(size: int) -> tuple[str, ...]:
        changes = {
            "dataset_config.path": "items.jsonl",
            "dataset_config.sample_size": size,
            "perturbation_config.min_margin": 0.05,
        }
        questions = gather(Suite.model_validate(with_changes(changes, SMALL)), tmp_path, tmp_path).questions
        assert questions is not None
        return questions.questions

    assert gathered(2) == gathered(9) == tuple(sorted(row["question"] for row in rows))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"index": 0, "question": "Where?"}], r":1: a question that was changed on purpose needs its kind"),
        ([{"index": 0, "question": "Where?", "kind": "k" * 61}], "in at most 60 characters"),
        ([{"index": 0, "question": "Where?", "kind": f"k{n}"} for n in range(21)], "has more than 20 kinds"),
        ([{"index": 99, "question": "Where?", "kind": "analogous"}], "holds no question of an item of the benchmark"),
    ],
)
def test_a_file_of_changed_questions_is_held_to_its_form(
    tmp_path: Path, rows: list[dict[str, object]], message: str
) -> None:
    items = [{"question": f"How many {word}?", "answer": "1"} for word in ("apples", "birds", "cats", "dogs", "eggs")]
    for name, content in (("items", items), ("changed", rows), ("same", [{"index": 0, "question": "What number?"}])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in content))
    suite = Suite.model_validate(with_changes({"dataset_config.path": "items.jsonl"}, SMALL))
    with pytest.raises(BadInputError, match=message):
        labelled_pairs(
            suite,
            tmp_path,
            Settings(home=tmp_path),
            HashedEncoder(),
            Goals(0.5, 0.5),
            same=tmp_path / "same.jsonl",
            other=None,
            changed=tmp_path / "changed.jsonl",
        )


def test_a_section_that_asks_for_a_margin_itself_has_it_beside_its_window() -> None:
    section = PerturbationSection(min_margin=0.05)
    assert section.plain()["min_margin"] == 0.05
    others = other_items(section, None, ["a?", "b?"], ENCODER.encode)
    assert others is not None
    assert others.questions == ("a?", "b?")


def test_a_candidate_of_the_wrong_options_is_no_question_changed_on_purpose_that_counts() -> None:
    question = ChangedQuestion(_item(0), Candidate("", (), "changed", 1, {}), "empty")
    learned = _learned(_whole(), changed=[question])
    assert learned.changed is not None
    assert [one.admitted.value for one in learned.changed] == [0.0]
