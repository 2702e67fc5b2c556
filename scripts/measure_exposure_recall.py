"""What each exposure policy finds of GSM8K's test problems, planted in documents and corrupted in known ways.

    python scripts/measure_exposure_recall.py --gsm8k FOLDER [--columns NAME...] [--format table|json]

FOLDER holds test.jsonl, train.jsonl and rephrased.jsonl. A document is planted for each problem; what is found of the
1,319 is the recall. False positives are problems that a policy calls exposed to the training problems, none of which
are among the test problems. Searches for near duplicates are two more columns; the encoder takes its time, so the
embedding's is of every thirteenth problem, and its false positives are of a seeded sample of passages. The table stands
in docs/exposure.md.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from proctor.exposure.corpus import CorpusFile, corpus_files
from proctor.exposure.index import build_index
from proctor.exposure.items import Part, ScannedItem, read_items
from proctor.exposure.judging import judge_stage
from proctor.exposure.near.matches import NearMethod
from proctor.exposure.policies import POLICIES, WITHOUT_NGRAMS, Measure, Policy
from proctor.exposure.scanning import scan_corpus
from proctor.studies.exposure.near import near_report

SEED: Final = 17
#: Of a hundred words, how many get a typo.
_TYPOS: Final = 10
_KEPT: Final = (90, 80, 70, 50, 30, 10)

#: Of the problems, how many are left out for each that the column of embeddings has; and of the training problems'
#: passages, how many it has for its false positives.
_EMBEDDING_STEP: Final = 13
_EMBEDDING_SAMPLE: Final = 1_000
#: Policies that count n-grams.
BY_NGRAMS: Final = tuple(name for name, policy in POLICIES.items() if policy.measure not in WITHOUT_NGRAMS)

#: With the searches for near duplicates.
COLUMNS: Final = (*BY_NGRAMS, *(f"--near {method}" for method in NearMethod))

Corruption = Callable[[str, random.Random], str]


def typos(text: str, rng: random.Random) -> str:
    """Two letters side by side change places, in a tenth of the words."""
    words = text.split(" ")
    for place, word in enumerate(words):
        if len(word) > 1 and rng.randrange(100) < _TYPOS:
            at = rng.randrange(len(word) - 1)
            words[place] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return " ".join(words)


def markdown(text: str, rng: random.Random) -> str:
    """A heading, bold words, numbers in TeX's dollars."""
    words = [
        f"**{word}**" if rng.randrange(8) == 0 else f"${word}$" if word.isdigit() else word for word in text.split(" ")
    ]
    return f"## Problem\n\n> {' '.join(words)}\n"


def kept(percent: int) -> Corruption:
    """The first words of a text."""

    def cut(text: str, rng: random.Random) -> str:
        words = text.split(" ")
        return " ".join(words[: max(1, round(len(words) * percent / 100))])

    return cut


CORRUPTIONS: Final[dict[str, Corruption]] = {
    "verbatim": lambda text, rng: text,
    "re-wrapped": lambda text, rng: "\n".join(textwrap.wrap(text, 40)),
    "re-cased": lambda text, rng: text.upper(),
    "markdown": markdown,
    "typos in 10 % of words": typos,
    **{f"first {percent} % of words": kept(percent) for percent in _KEPT},
}


def measure(folder: Path, names: Sequence[str] = BY_NGRAMS, rows: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Share of the problems that each policy finds, by corruption; `false positives` are the training problems'.

    Args:
        folder: of GSM8K.
        names: of `COLUMNS`.
        rows: of the corruptions; all where none is named.
    """
    items = read_items(folder / "test.jsonl")
    questions = [item.parts[Part.QUESTION] for item in items]
    training = [json.loads(line)["question"] for line in (folder / "train.jsonl").read_text("utf-8").splitlines()]
    rephrased = [json.loads(line) for line in (folder / "rephrased.jsonl").read_text("utf-8").splitlines()]
    rng = random.Random(SEED)
    corpora = {name: [corruption(question, rng) for question in questions] for name, corruption in CORRUPTIONS.items()}
    corpora["embedded in a longer text"] = [
        "\n\n".join([*rng.sample(training, 4), question, *rng.sample(training, 4)]) for question in questions
    ]
    corpora["rephrased by GPT-4"] = [row["rephrased"] for row in sorted(rephrased, key=lambda row: row["index"])]
    corpora["false positives"] = training
    found: dict[str, dict[str, float]] = {name: {} for name in rows or corpora}
    for what in found:
        planted = Planted(items, corpora[what], is_paired=what != "false positives")
        for name in names:
            found[what][name] = planted.share(name)
    return found


class Planted(NamedTuple):
    """Problems, and documents of which each is a corrupted one of them."""

    items: Sequence[ScannedItem]
    documents: Sequence[str]
    is_paired: bool
    """Whether there is a document for each problem, in their order."""

    def share(self, column: str) -> float:
        """Which share of the problems a column's search finds."""
        if column == f"--near {NearMethod.EMBEDDING}":
            step = _EMBEDDING_STEP
            return Planted(self.items[::step], self.documents[:: step if self.is_paired else 1], self.is_paired)._near(
                column
            )
        return self._near(column) if column.startswith("--near") else self._by_ngrams(POLICIES[column])

    def _by_ngrams(self, policy: Policy) -> float:
        index = build_index(self.items, policy.n, weighted=policy.measure is Measure.WEIGHTED)
        with self._written() as files:
            scanned = scan_corpus(index, files)
        judged = judge_stage(self.items, index, scanned, policy, "pretrain")
        return sum(one.is_exposed for one in judged) / len(judged)

    def _near(self, column: str) -> float:
        with self._written() as files:
            report = near_report(
                NearMethod(column.removeprefix("--near ")),
                self.items,
                {"pretrain": files},
                columns=(),
                workers=1,
                sample=None if self.is_paired else _EMBEDDING_SAMPLE,
                seed=SEED,
                prepare=str,
                progress=lambda read, total: None,
            )
        return report.n_near / len(self.items)

    @contextmanager
    def _written(self) -> Iterator[tuple[CorpusFile, ...]]:
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "corpus.jsonl"
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in self.documents), "utf-8")
            yield corpus_files([str(path)])


def table(found: dict[str, dict[str, float]]) -> str:
    """The shares in per cent, as Markdown."""
    names = list(next(iter(found.values())))
    lines = [f"| planted | {' | '.join(f'`{name}`' for name in names)} |", "|---|" + "---:|" * len(names)]
    lines += [f"| {what} | {' | '.join(f'{100 * row[name]:.1f}' for name in names)} |" for what, row in found.items()]
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gsm8k", type=Path, required=True, metavar="FOLDER", help="where the three files are")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, default=COLUMNS, metavar="NAME", help="of the table")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    found = measure(arguments.gsm8k, arguments.columns)
    print(json.dumps(found, indent=2) if arguments.format == "json" else table(found))


if __name__ == "__main__":
    main()
