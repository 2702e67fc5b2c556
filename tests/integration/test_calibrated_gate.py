"""The calibrated gate on GSM8K and on three subjects of MMLU with a model's rephrasings, with the real encoder.

The 200 labelled pairs of tests/data/gsm8k_pairs take no part in any calibration here. The answer invariants were
mended while reading the other pairs; the session that wrote them first may have seen some of the 200.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from draw_labelled_pairs import LABELS, Pair, read_pairs
from proctor.cli.main import main
from proctor.cli.variants.calibrate import calibrate as calibrate_command
from proctor.domain.errors import BadInputError, EncoderError
from proctor.domain.gate_calibration import GateCalibration
from proctor.domain.item import Item
from proctor.domain.manifest import ItemSet, QuestionSet, VariantSet
from proctor.domain.messages import BuildVariants
from proctor.domain.suite import PerturbationSection
from proctor.formats.gate_calibration import gate_calibration_bytes, parse_gate_calibration
from proctor.perturbation.admission.calibration import (
    ChangedQuestion,
    LabelledPair,
    calibrate,
    nearest_different,
    neighbours_needed,
    with_window,
)
from proctor.perturbation.admission.measure import ItemPair, measure
from proctor.perturbation.admission.window import Goals
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.encoder import resolve_encoder
from proctor.perturbation.other_items import OtherItems
from proctor.perturbation.remembering import RememberingEncoder
from proctor.perturbation.tasks import variants_for
from proctor.runtime.artifacts.chunks import put_items
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import put_model
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from tests.stored_variants import get_variants
from tests.support import missing, shared_data

pytestmark = [
    # torch and transformers warn about themselves on import.
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
    # The first test waits for 2,000 embeddings, 20 s on two idle cores.
    pytest.mark.timeout(300),
]

#: The rephrasings that teach the window: a sample, because each costs an embedding.
_TAUGHT = 300
_DATA = Path(__file__).parents[1] / "data"
CHANGED = _DATA / "changed_questions"
FURTHER_LABELS = _DATA / "further_pairs" / "labels.csv"
CALIBRATED = PerturbationSection(gate="calibrated", calibration_path="calibration.json")


class Gsm8k(NamedTuple):
    """The benchmark, its rephrasings by item, and which of them were labelled by reading."""

    encoder: RememberingEncoder
    items: list[Item]
    pairs: list[Pair]
    labels: dict[int, str]
    others: OtherItems

    def rephrased(self, index: int) -> ItemPair:
        """An item with its rephrasing."""
        return ItemPair(self.items[index], Candidate(self.pairs[index].rephrased, (), "imported", 1, {}))

    def admitted(self, label: str, section: PerturbationSection) -> float:
        """The share of the pairs with a label that a gate admits."""
        pairs = [self.rephrased(index) for index, given in self.labels.items() if given == label]
        return sum(one.rejection is None for one in measure(pairs, section, self.encoder, others=self.others)) / len(
            pairs
        )


@pytest.fixture(scope="module")
def gsm8k() -> Gsm8k:
    try:
        encoder = resolve_encoder(None)
        encoder.encode(["warm up"])
    except EncoderError as error:
        missing(str(error))
    pairs = read_pairs(shared_data() / "gsm8k" / "rephrased.jsonl")
    with LABELS.open(encoding="utf-8", newline="") as lines:
        labels = {int(row["index"]): row["label"] for row in csv.DictReader(lines)}
    items = [Item(item_id=f"gsm8k-{pair.index}", question=pair.original, target=pair.answer) for pair in pairs]
    assert [pair.index for pair in pairs] == list(range(1319))
    remembering = RememberingEncoder(encoder)
    others = OtherItems((item.question for item in items), remembering.encode)
    return Gsm8k(remembering, items, pairs, labels, others)


@pytest.fixture(scope="module")
def learned(gsm8k: Gsm8k) -> GateCalibration:
    """Learned from items that nobody labelled, with the margin kept to all of them."""
    unread = [index for index in range(len(gsm8k.items)) if index not in gsm8k.labels]
    same = [LabelledPair(*gsm8k.rephrased(index), equivalent=True) for index in unread[:_TAUGHT]]
    items = [gsm8k.items[index] for index in unread]
    different = nearest_different(items, gsm8k.encoder, neighbours_needed(len(items), Goals()))
    changed = _changed("gsm8k", {str(pair.index): item for pair, item in zip(gsm8k.pairs, gsm8k.items, strict=True)})
    return calibrate(
        [*same, *different],
        PerturbationSection(),
        benchmark="gsm8k",
        encoder=gsm8k.encoder,
        items=gsm8k.items,
        changed=changed,
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    # Not by splitlines: a question of MMLU holds a mark that ends a line for Python and not for JSON lines.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _changed(name: str, items: dict[str, Item]) -> list[ChangedQuestion]:
    """Questions that a model changed on purpose, of the items by `index` or `item_id`."""
    rows = _rows(CHANGED / f"{name}.jsonl")
    pairs = [(items.get(str(row.get("index", row.get("item_id")))), row) for row in rows]
    return [
        ChangedQuestion(item, Candidate(row["question"], item.choices, "changed", 1, {}), row["kind"])
        for item, row in pairs
        if item is not None
    ]


@pytest.fixture(scope="module")
def section(gsm8k: Gsm8k, learned: GateCalibration) -> PerturbationSection:
    return with_window(CALIBRATED, learned, benchmark="gsm8k", encoder=gsm8k.encoder)


def test_on_held_out_items_the_learned_window_admits_rephrasings_and_no_other_question(
    learned: GateCalibration,
) -> None:
    assert (learned.rates.true_admits.low or 0) > 0.9
    assert learned.rates.false_admits.value == learned.rates.nearest_admits.value == 0.0
    assert (learned.fixed_windows[0].true_admits.value or 0) < 0.2
    assert learned.roc_gate.auc > 0.95


def test_at_least_95_percent_of_the_pairs_that_a_careful_reader_accepts_are_admitted(
    gsm8k: Gsm8k, section: PerturbationSection
) -> None:
    assert gsm8k.admitted("acceptable", section) >= 0.95


def test_the_gate_lets_most_faults_of_relation_and_unit_through_which_the_documentation_says(
    gsm8k: Gsm8k, section: PerturbationSection
) -> None:
    # Not a goal but a fact: 73 % pass. A gate that lets fewer through is better, one that lets more through is not.
    assert gsm8k.admitted("not_acceptable", section) < 0.8


def test_the_articles_window_admits_a_tenth_of_what_a_careful_reader_accepts(gsm8k: Gsm8k) -> None:
    assert gsm8k.admitted("acceptable", PerturbationSection()) < 0.15


def test_at_most_2_of_1000_nearest_different_questions_are_admitted_over_all_of_gsm8k(
    gsm8k: Gsm8k, section: PerturbationSection
) -> None:
    pairs = [ItemPair(pair.item, pair.candidate) for pair in nearest_different(gsm8k.items, gsm8k.encoder, 1)]
    assert len(pairs) == 1319
    measured = measure(pairs, section, gsm8k.encoder, others=gsm8k.others)
    assert sum(one.rejection is None for one in measured) / len(pairs) <= 0.002
    # The distance alone would not do, neither by the learned window nor by the article's.
    distances = [one.measurements.semantic_distance for one in measured if one.measurements is not None]
    assert sum(distance <= section.max_semantic_distance for distance in distances) / len(pairs) > 0.02
    assert sum(0.15 <= distance <= 0.45 for distance in distances) / len(pairs) > 0.85


def test_a_calibrated_audit_takes_its_window_from_the_file(
    gsm8k: Gsm8k, learned: GateCalibration, tmp_path: Path
) -> None:
    artifacts = LocalArtifacts(tmp_path / "artifacts")
    indices = [index for index in range(60) if index not in gsm8k.labels and gsm8k.pairs[index].rephrased][:20]
    rows = [{"item_id": gsm8k.items[n].item_id, "question": gsm8k.pairs[n].rephrased} for n in indices]
    asked = CALIBRATED.model_copy(
        update={"perturbation_strategy": "imported", "rewordings_path": "r.jsonl", "num_variants_per_item": 1}
    )
    message = BuildVariants(
        audit_id="a",
        items=put_items(artifacts, ItemSet(items=tuple(gsm8k.items[n] for n in indices))),
        settings=put_model(artifacts, asked),
        rewordings=artifacts.put("".join(json.dumps(row) + "\n" for row in rows).encode()),
        calibration=artifacts.put(gate_calibration_bytes(learned)),
        questions=put_model(artifacts, QuestionSet(questions=tuple(item.question for item in gsm8k.items))),
        benchmark="gsm8k",
    )

    def run(message: BuildVariants) -> VariantSet:
        records = Records(f"sqlite:///{tmp_path / 'records.sqlite'}")
        built = variants_for(message, Settings(home=tmp_path), records, artifacts, gsm8k.encoder)
        assert built.variants is not None
        return get_variants(artifacts, built.variants)

    made = run(message)
    assert len(made.variants) >= 18
    assert any(variant.measurements.semantic_distance < 0.15 for variant in made.variants)
    assert all((variant.measurements.margin or 0.0) >= (learned.min_margin or 1.0) for variant in made.variants)
    with pytest.raises(BadInputError, match="questions did not come with it"):
        run(message.model_copy(update={"questions": None}))
    fewer = QuestionSet(questions=tuple(item.question for item in gsm8k.items[:60]))
    with pytest.raises(BadInputError, match=r"was learned with 1,319 questions .* and here are 60"):
        run(message.model_copy(update={"questions": put_model(artifacts, fewer)}))
    with pytest.raises(BadInputError, match="its calibration did not come with it"):
        run(message.model_copy(update={"calibration": None}))
    with pytest.raises(BadInputError, match="learned for the benchmark 'gsm8k', and the suite's is 'mmlu'"):
        run(message.model_copy(update={"benchmark": "mmlu"}))


def test_what_is_admitted_of_questions_changed_on_purpose_is_told_and_the_ceiling_keeps_out_most_of_another_setting(
    learned: GateCalibration,
) -> None:
    assert learned.changed is not None
    told = {one.kind: one for one in learned.changed}
    assert {kind: one.questions for kind, one in told.items()} == {"analogous": 40, "extended": 40}
    assert (told["analogous"].admitted.value or 0) <= 0.15
    # Not a goal but a fact: 43 % pass.
    assert 0.0 < (told["extended"].admitted.value or 0) <= 0.5


class Mmlu(NamedTuple):
    """Three subjects as one benchmark, and the rephrasings that two readers labelled alike.

    Of history's items those that were read: its passages cost more to embed than all the rest, and
    `scripts/measure_gate.py` measures with all of them.
    """

    items: dict[str, Item]
    rephrased: dict[str, str]
    labels: dict[str, str]

    def pairs(self, label: str) -> list[ItemPair]:
        """The items with their rephrasing, of one label."""
        named = [item_id for item_id, given in self.labels.items() if given == label and item_id in self.items]
        return [
            ItemPair(self.items[one], Candidate(self.rephrased[one], self.items[one].choices, "imported", 1, {}))
            for one in named
        ]


@pytest.fixture(scope="module")
def mmlu(gsm8k: Gsm8k) -> Mmlu:
    folder = shared_data() / "mmlu_rephrased"
    with FURTHER_LABELS.open(encoding="utf-8", newline="") as lines:
        labels = {row["id"]: row["label"] for row in csv.DictReader(lines) if row["source"] == "mmlu"}
    items: dict[str, Item] = {}
    rephrased: dict[str, str] = {}
    for subject in ("sociology", "high_school_us_history", "abstract_algebra"):
        for row in _rows(folder / f"{subject}.jsonl"):
            target = row["choices"]["ABCD".index(row["answer"])]
            # One item of sociology has the right option twice, and no target then.
            if row["choices"].count(target) == 1 and row["id"] in labels:
                items[row["id"]] = Item(
                    item_id=row["id"], question=row["question"], choices=tuple(row["choices"]), target=target
                )
        for row in _rows(folder / f"{subject}_rephrased.jsonl"):
            rephrased[row["item_id"]] = row["question"]
    return Mmlu(items, rephrased, labels)


def _learned_of(mmlu: Mmlu, encoder: RememberingEncoder, seed: int, goals: Goals) -> GateCalibration:
    items = list(mmlu.items.values())
    same = [LabelledPair(*pair, equivalent=True) for pair in mmlu.pairs("acceptable")]
    different = nearest_different(items, encoder, neighbours_needed(len(items), goals))
    section = PerturbationSection(seed=seed)
    changed = _changed("mmlu", mmlu.items)
    return calibrate(
        [*same, *different],
        section,
        benchmark="mmlu",
        encoder=encoder,
        items=items,
        changed=changed,
        goals=goals,
    )


def test_on_a_benchmark_of_words_nine_of_ten_good_rewordings_are_admitted_and_no_other_question(
    gsm8k: Gsm8k, mmlu: Mmlu
) -> None:
    learned = [_learned_of(mmlu, gsm8k.encoder, seed, Goals()) for seed in range(4)]
    held_out = [one.rates.true_admits.value or 0.0 for one in learned]
    assert min(held_out) >= 0.9
    assert sum(held_out) / len(held_out) >= 0.93
    assert all(one.rates.nearest_admits.value == 0.0 for one in learned)
    assert all(one.reworded_admits is not None and one.reworded_admits.value == 0.0 for one in learned)
    # Passages and near-identical items of algebra: what no rewording tells apart is named.
    assert all(one.crowding is not None and one.crowding.items > 20 for one in learned)


def test_on_all_of_mmlu_the_gate_admits_no_nearest_question_and_fewer_than_a_third_of_the_bad_rewordings(
    gsm8k: Gsm8k, mmlu: Mmlu
) -> None:
    learned = _learned_of(mmlu, gsm8k.encoder, 0, Goals())
    section = with_window(CALIBRATED, learned, benchmark="mmlu", encoder=gsm8k.encoder)
    items = list(mmlu.items.values())
    others = OtherItems((item.question for item in items), gsm8k.encoder.encode)

    def share(pairs: list[ItemPair]) -> float:
        return sum(one.rejection is None for one in measure(pairs, section, gsm8k.encoder, others=others)) / len(pairs)

    assert share(mmlu.pairs("acceptable")) >= 0.9
    assert share(mmlu.pairs("not_acceptable")) < 0.3
    assert share([ItemPair(one.item, one.candidate) for one in nearest_different(items, gsm8k.encoder, 3)]) == 0.0


def test_options_do_not_let_another_items_question_through(gsm8k: Gsm8k, mmlu: Mmlu) -> None:
    # With question and options as one text, another question before the item's own options is nearest to that item.
    items = [item for item in mmlu.items.values() if item.item_id.startswith("sociology")][:60]
    asked = nearest_different(items, gsm8k.encoder, 1)
    others = OtherItems((item.question for item in items), gsm8k.encoder.encode)
    section = PerturbationSection(min_semantic_distance=0.0, max_semantic_distance=2.0, min_margin=0.0001)
    pairs = [ItemPair(one.item, one.candidate) for one in asked]
    assert all(one.rejection is not None for one in measure(pairs, section, gsm8k.encoder, others=others))
    whole = gsm8k.encoder.encode(["\n".join([item.question, *item.choices]) for item in items])
    mixed = gsm8k.encoder.encode(["\n".join([one.candidate.question, *one.item.choices]) for one in asked])
    nearest = (mixed @ whole.T).argmax(axis=1)
    assert sum(int(row) == place for place, row in enumerate(nearest)) > 0.5 * len(items)


@pytest.fixture
def small_suite(tmp_path: Path) -> Path:
    """A made-up benchmark whose items differ by their numbers, with a rewording each."""
    names = ("Ann", "Bo", "Cy", "Dan", "Eve", "Flo")
    things = ("apples", "boxes", "coins", "dolls", "eggs", "flags", "goats", "hats")
    items, rewordings = [], []
    for n in range(48):
        name, thing, count = names[n % 6], things[n // 6], n + 2
        items.append(
            {"item_id": f"i{n}", "question": f"How many {thing} has {name} if {name} buys {count}?", "answer": "1"}
        )
        rewordings.append(
            {"item_id": f"i{n}", "question": f"If {count} {thing} are bought by {name}, what is the total?"}
        )
    for path, rows in (("items.jsonl", items), ("rewordings.jsonl", rewordings)):
        (tmp_path / path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    suite = {
        "audit_suite_id": "small",
        "model_config": {"model_id": "m", "model_version": "sha256:" + "0" * 64, "endpoint": "local-triton"},
        "dataset_config": {"benchmark_name": "things", "path": "items.jsonl"},
        "perturbation_config": {"perturbation_strategy": "imported", "rewordings_path": "rewordings.jsonl"},
    }
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    return tmp_path / "suite.json"


_SMALL_GOALS = ["--true-admits", "0.9", "--false-admits", "0.01"]


def _run(arguments: list[str]) -> int:
    result = calibrate_command.main(arguments, standalone_mode=False)
    return int(result or 0)


def test_the_command_writes_a_calibration_and_figures_and_says_how_to_use_them(
    gsm8k: Gsm8k, small_suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = small_suite.parent
    assert _run([str(small_suite), *_SMALL_GOALS, "--plot", str(folder / "figures")]) == 0
    printed = capsys.readouterr()
    assert "A window of 0 to" in printed.out
    assert '"calibration_path": "gate-calibration.json"' in printed.out
    assert "the rewordings of 'imported' are taken for equivalent; nobody has read them" in printed.err
    document = parse_gate_calibration((folder / "gate-calibration.json").read_bytes(), "gate-calibration.json")
    assert document.benchmark == "things"
    assert set(document.inputs) == {"items"}
    assert {path.name for path in (folder / "figures").iterdir()} == {"distances.svg", "roc.svg"}


def test_without_matplotlib_the_calibration_is_written_and_a_line_says_what_to_install(
    gsm8k: Gsm8k, small_suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadInputError, match=r"charts need matplotlib: pip install 'proctor\[plots\]'"):
        _run([str(small_suite), *_SMALL_GOALS, "--plot", str(small_suite.parent / "figures")])
    assert "A window of 0 to" in capsys.readouterr().out
    written = small_suite.parent / "gate-calibration.json"
    assert parse_gate_calibration(written.read_bytes(), written.name).benchmark == "things"


def test_json_stands_alone_and_files_of_pairs_are_pinned_by_digest(
    gsm8k: Gsm8k, small_suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = small_suite.parent
    other = [{"item_id": f"i{n}", "question": f"Where does the {n + 2}nd train go?"} for n in range(48)] * 5
    (folder / "other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in other))
    arguments = [str(small_suite), *_SMALL_GOALS, "--pairs", str(folder / "rewordings.jsonl")]
    _run([*arguments, "--different", str(folder / "other.jsonl"), "--out", str(folder / "c.json"), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["written"] == str(folder / "c.json")
    assert set(document["inputs"]) == {"items", "pairs", "different"}
    assert document["held_out"]["different"] == 120
    assert document["conclusion"].startswith("A window of 0 to")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--false-admits", "0.0005"], "has 48 items, which do not make the 4000 different pairs"),
        (["--pairs", "absent.jsonl"], "--pairs: absent.jsonl cannot be read: No such file or directory"),
        (["--false-admits", "0.01"], "24 equivalent pairs that pass the gate's other checks are in the half"),
    ],
)
def test_a_calibration_that_cannot_be_made_is_one_clear_error(
    gsm8k: Gsm8k, small_suite: Path, arguments: list[str], message: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        _run([str(small_suite), *arguments])
    assert message in str(caught.value)
    assert not (small_suite.parent / "gate-calibration.json").exists()


def test_the_command_is_one_of_proctor_variants(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["variants", "calibrate", "--help"]) == 0
    assert "known to be equivalent" in capsys.readouterr().out
