"""What each exposure policy finds of GSM8K's test problems, planted in documents and corrupted in known ways.

    python scripts/measure_exposure_recall.py --gsm8k FOLDER [--format table|json]

FOLDER holds test.jsonl, train.jsonl and rephrased.jsonl. A document is planted for each problem; what is found of the
1,319 is the recall. False positives are problems that a policy calls exposed to the training problems, none of which
are among the test problems. The table stands in docs/exposure.md.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from proctor.exposure.corpus import corpus_files
from proctor.exposure.index import build_index
from proctor.exposure.items import Part, read_items
from proctor.exposure.judging import judge_stage
from proctor.exposure.policies import POLICIES, Measure, Policy
from proctor.exposure.scanning import scan_corpus

SEED: Final = 17
#: Of a hundred words, how many get a typo.
_TYPOS: Final = 10
_KEPT: Final = (90, 80, 70, 50, 30, 10)

#: Policies that count n-grams.
BY_NGRAMS: Final = tuple(name for name, policy in POLICIES.items() if policy.measure is not Measure.TOKENS)

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


def measure(folder: Path, names: tuple[str, ...] = BY_NGRAMS) -> dict[str, dict[str, float]]:
    """Share of the problems that each policy finds, by corruption; `false positives` are the training problems'."""
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
    found: dict[str, dict[str, float]] = {name: {} for name in corpora}
    with tempfile.TemporaryDirectory() as temporary:
        for name, texts in corpora.items():
            path = Path(temporary) / "corpus.jsonl"
            path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
            for policy in (POLICIES[one] for one in names):
                found[name][policy.name] = _share(items, path, policy)
    return found


def _share(items: Any, corpus: Path, policy: Policy) -> float:
    index = build_index(items, policy.n, weighted=policy.measure is Measure.WEIGHTED)
    scanned = scan_corpus(index, corpus_files([str(corpus)]))
    judged = judge_stage(items, index, scanned, policy, "pretrain")
    return sum(one.is_exposed for one in judged) / len(judged)


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
    parser.add_argument("--format", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    found = measure(arguments.gsm8k)
    print(json.dumps(found, indent=2) if arguments.format == "json" else table(found))


if __name__ == "__main__":
    main()
