"""What the calibrated gate admits of MMLU's and GSM8K's rewordings, over several splits into halves.

For GSM8K the pairs that nobody labelled first teach, as in `docs/perturbation.md`; for MMLU half of the rewordings that
two readers accept. Each row is a benchmark; held out by items, the mean and the least over the seeds, and what the gate
of the first seed does with every labelled pair and with the questions that were changed on purpose.

    python scripts/measure_gate.py ../shared/data
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from draw_further_pairs import ACCEPTABLE, labelled_further_pairs
from draw_labelled_pairs import LABELS as FIRST_LABELS
from draw_labelled_pairs import read_pairs
from proctor.domain.evidence import Estimate
from proctor.domain.gate_calibration import GateCalibration
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.evidence.intervals import wilson
from proctor.perturbation.admission.calibration import calibrate
from proctor.perturbation.admission.learned import with_window
from proctor.perturbation.admission.measure import ItemPair, measure
from proctor.perturbation.admission.pairs import ChangedQuestion, LabelledPair, nearest_different, neighbours_needed
from proctor.perturbation.admission.window import Goals
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.encoder import Encoder, resolve_encoder
from proctor.perturbation.other_items import OtherItems
from proctor.perturbation.remembering import RememberingEncoder

_CHANGED: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "changed_questions"
_SUBJECTS: Final = ("sociology", "high_school_us_history", "abstract_algebra")


class Measured(NamedTuple):
    """A benchmark with its rewordings."""

    name: str
    true_admits: float
    """The share to hold, which a small half cannot have as high."""
    items: list[Item]
    teaching: list[ItemPair]
    """Good rewordings; the half that does not teach is held out."""
    labelled: dict[str, list[ItemPair]]
    changed: list[ChangedQuestion]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """JSON lines. Not by splitlines: a question of MMLU holds a mark that ends a line for Python and not for JSON."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def benchmarks(data: Path) -> Iterator[Measured]:
    """GSM8K, three subjects of MMLU as one benchmark, and two of them alone."""
    yield gsm8k(data)
    yield mmlu(data, _SUBJECTS, "MMLU, three subjects", 0.99)
    yield mmlu(data, ("sociology",), "MMLU sociology", 0.98)
    yield mmlu(data, ("abstract_algebra",), "MMLU algebra", 0.95)


def gsm8k(data: Path) -> Measured:
    """The benchmark, taught by what the first reader's labels leave."""
    pairs = read_pairs(data / "gsm8k" / "rephrased.jsonl")
    items = [Item(item_id=f"gsm8k-{pair.index}", question=pair.original, target=pair.answer) for pair in pairs]
    reworded = [_pair(item, pair.rephrased) for item, pair in zip(items, pairs, strict=True)]
    with FIRST_LABELS.open(encoding="utf-8", newline="") as lines:
        first = {int(row["index"]): row["label"] for row in csv.DictReader(lines)}
    labelled: dict[str, list[ItemPair]] = {}
    for index, label in first.items():
        labelled.setdefault(f"first labels, {label}", []).append(reworded[index])
    for one in labelled_further_pairs(data):
        if one.pair.source == "gsm8k":
            place = int(one.pair.id.removeprefix("gsm8k-"))
            labelled.setdefault(f"further labels, {one.label}", []).append(reworded[place])
    teaching = [pair for index, pair in enumerate(reworded) if index not in first]
    changed = _changed("gsm8k", {item.item_id.removeprefix("gsm8k-"): item for item in items})
    return Measured("GSM8K", 0.99, items, teaching, labelled, changed)


def mmlu(data: Path, subjects: Sequence[str], name: str, true_admits: float) -> Measured:
    """Subjects as one benchmark. One item of sociology has its right option twice, and is left out."""
    items: dict[str, Item] = {}
    for subject in subjects:
        for row in rows_of(data / "mmlu_rephrased" / f"{subject}.jsonl"):
            target = row["choices"]["ABCD".index(row["answer"])]
            if row["choices"].count(target) == 1:
                choices = tuple(row["choices"])
                items[row["id"]] = Item(item_id=row["id"], question=row["question"], choices=choices, target=target)
    labelled: dict[str, list[ItemPair]] = {}
    for one in labelled_further_pairs(data):
        if one.pair.id in items:
            labelled.setdefault(one.label, []).append(_pair(items[one.pair.id], one.pair.rephrased))
    return Measured(name, true_admits, list(items.values()), labelled[ACCEPTABLE], labelled, _changed("mmlu", items))


def learned_of(measured: Measured, encoder: Encoder, seed: int) -> GateCalibration:
    """The calibration of one split."""
    goals = Goals(measured.true_admits)
    different = nearest_different(measured.items, encoder, neighbours_needed(len(measured.items), goals))
    return calibrate(
        [*(LabelledPair(*pair, equivalent=True) for pair in measured.teaching), *different],
        PerturbationSection(seed=seed),
        benchmark=measured.name,
        encoder=encoder,
        items=measured.items,
        changed=measured.changed or None,
        goals=goals,
    )


def told(measured: Measured, encoder: Encoder, seeds: int) -> Iterator[str]:
    """The lines of one benchmark."""
    found = [learned_of(measured, encoder, seed) for seed in range(seeds)]
    first, held_out = found[0], [one.rates.true_admits.value or 0.0 for one in found]
    yield f"{measured.name}, {len(measured.items):,} items, target {measured.true_admits:g}"
    yield f"  window 0 to {first.max_semantic_distance:g}, margin {first.min_margin:g}"
    yield f"  held out, seed 0: {_share(first.rates.true_admits)} of {first.held_out.equivalent:,}"
    yield f"  held out, {seeds} seeds: mean {100 * sum(held_out) / seeds:.1f} %, least {100 * min(held_out):.1f} %"
    yield f"  nearest different, worst seed: {100 * max(one.rates.nearest_admits.value or 0.0 for one in found):.2f} %"
    if first.reworded_admits is not None:
        yield f"  good ones put to the nearest other item: {_share(first.reworded_admits)}"
    calibrated = PerturbationSection(gate="calibrated", calibration_path="learned")
    section = with_window(calibrated, first, benchmark=measured.name, encoder=encoder)
    others = OtherItems((item.question for item in measured.items), encoder.encode)
    for label, pairs in sorted(measured.labelled.items()):
        admitted = sum(one.rejection is None for one in measure(pairs, section, encoder, others=others))
        yield f"  {label}: {admitted} of {len(pairs)}, {_share(wilson(admitted, len(pairs), 0.95))}"
    for kind in first.changed or ():
        places = [
            one.measurements
            for one in measure(
                [ItemPair(one.item, one.candidate) for one in measured.changed if one.kind == kind.kind],
                section,
                encoder,
                others=others,
            )
            if one.measurements is not None
        ]
        near = sum(one.semantic_distance <= section.max_semantic_distance for one in places) / kind.questions
        apart = sum((one.margin or 0.0) >= (section.min_margin or 0.0) for one in places) / kind.questions
        alone = f"window alone {100 * near:.1f} %, margin alone {100 * apart:.1f} %"
        yield f"  changed on purpose, {kind.kind}: {_share(kind.admitted)} of {kind.questions}; {alone}"


def _pair(item: Item, rephrased: str) -> ItemPair:
    return ItemPair(item, Candidate(rephrased, item.choices, "imported", 1, {}))


def _changed(name: str, items: dict[str, Item]) -> list[ChangedQuestion]:
    rows = [(str(row.get("index", row.get("item_id"))), row) for row in rows_of(_CHANGED / f"{name}.jsonl")]
    return [
        ChangedQuestion(items[key], _pair(items[key], row["question"]).candidate, row["kind"])
        for key, row in rows
        if key in items
    ]


def _share(found: Estimate) -> str:
    return f"{100 * (found.value or 0.0):.1f} % [{100 * (found.low or 0.0):.1f}, {100 * (found.high or 0.0):.1f}]"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder with gsm8k/ and mmlu_rephrased/")
    parser.add_argument("--seeds", type=int, default=10, help="splits into halves")
    arguments = parser.parse_args()
    encoder = RememberingEncoder(resolve_encoder(None))
    for measured in benchmarks(arguments.data):
        for line in told(measured, encoder, arguments.seeds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
