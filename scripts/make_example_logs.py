"""Write the small invented logs that the worked examples read: `docs/examples/logs`.

Two made-up models answer 120 invented word problems, and every wrong answer is wrong in a way that is known, so that
the examples' findings can be checked. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "examples" / "logs"
ITEMS = 120
#: Words, for these models have no tokeniser; the short limit cuts about a third of A's answers.
LIMITS = {"a_limit_96.csv": 96, "a_limit_24.csv": 24, "b_limit_96.csv": 96}
_NAMES = ("Amara", "Bram", "Chidi", "Dalia", "Eero", "Farah", "Goran", "Hana")
_THINGS = ("apples", "buttons", "candles", "marbles", "pencils", "shells", "stamps", "tiles")


class Problem(NamedTuple):
    """A word problem: `boxes` of `each` things, `given` given away."""

    name: str
    things: str
    boxes: int
    each: int
    given: int

    @property
    def question(self) -> str:
        """As it is asked."""
        return (
            f"{self.name} fills {self.boxes} boxes with {self.each} {self.things} each and gives {self.given} "
            f"{self.things} away. How many {self.things} are left?"
        )

    @property
    def answer(self) -> int:
        """The right one."""
        return self.boxes * self.each - self.given

    @property
    def solution(self) -> str:
        """A worked solution in GSM8K's form."""
        packed = self.boxes * self.each
        return (
            f"There are {self.boxes} * {self.each} = <<{self.boxes}*{self.each}={packed}>>{packed} {self.things}.\n"
            f"{packed} - {self.given} = <<{packed}-{self.given}={self.answer}>>{self.answer} are left.\n"
            f"#### {self.answer}"
        )


def problems(rng: np.random.Generator) -> list[Problem]:
    """Invented problems, no two the same."""
    found: dict[str, Problem] = {}
    while len(found) < ITEMS:
        boxes, each, given = (int(rng.integers(*bounds)) for bounds in ((3, 13), (11, 60), (5, 30)))
        problem = Problem(_NAMES[rng.integers(len(_NAMES))], _THINGS[rng.integers(len(_THINGS))], boxes, each, given)
        found.setdefault(problem.question, problem)
    return list(found.values())


def _right(problem: Problem, long: bool) -> tuple[str, int]:
    packed = problem.boxes * problem.each
    preamble = (
        f"Let us take this step by step. First we need to know how many {problem.things} {problem.name} has in all, "
        "and then we take away those that were given to somebody else. "
        if long
        else ""
    )
    return (
        f"{preamble}{problem.boxes} boxes of {problem.each} are {problem.boxes} * {problem.each} = {packed} "
        f"{problem.things}. After giving some away, {packed} - {problem.given} = {problem.answer} are left.",
        problem.answer,
    )


def _slip(problem: Problem, long: bool) -> tuple[str, int]:
    """The method is right and a product is not."""
    packed = problem.boxes * problem.each + 10
    left = packed - problem.given
    return (
        f"{problem.boxes} * {problem.each} = {packed} {problem.things}, and {packed} - {problem.given} = {left}.",
        left,
    )


def _withdrawn(problem: Problem, long: bool) -> tuple[str, int]:
    """The right answer is found, and given up."""
    text, _ = _right(problem, long)
    packed = problem.boxes * problem.each
    wrong = packed + problem.given
    return (
        f"{text} The answer is {problem.answer}. Wait, that is not right: {packed} + {problem.given} = {wrong}.",
        wrong,
    )


def _misread(problem: Problem, long: bool) -> tuple[str, int]:
    """Another problem is solved."""
    wrong = problem.boxes + problem.each - problem.given
    return f"{problem.boxes} + {problem.each} - {problem.given} = {wrong}.", wrong


Way = Callable[[Problem, bool], tuple[str, int]]
#: How often each model answers in each way; the ways are the truth that the triage of wrong answers should find.
WAYS: Mapping[str, Sequence[tuple[Way, float]]] = {
    "a": ((_right, 0.72), (_slip, 0.12), (_withdrawn, 0.06), (_misread, 0.10)),
    "b": ((_right, 0.74), (_slip, 0.05), (_withdrawn, 0.03), (_misread, 0.18)),
}
#: How often the final answer stands after `####`, where the strict filter looks for it.
MARKED = {"a": 0.98, "b": 0.55}


class Generation(NamedTuple):
    """A model's text, the number it ends in, whether that stands behind the marker, and how it came about."""

    text: str
    number: int
    marked: bool
    way: str


def generations(model: str, asked: Sequence[Problem], rng: np.random.Generator) -> list[Generation]:
    """What a model answers."""
    ways, shares = zip(*WAYS[model], strict=True)
    made = []
    for problem in asked:
        way = ways[rng.choice(len(ways), p=shares)]
        text, number = way(problem, bool(rng.random() < 0.35))
        marked = bool(rng.random() < MARKED[model])
        ending = f" #### {number}" if marked else f" So there are {number} {problem.things} left."
        made.append(Generation(text + ending, number, marked, way.__name__.removeprefix("_")))
    return made


def lm_eval_rows(asked: Sequence[Problem], made: Sequence[Generation]) -> str:
    """The log as `lm_eval --log_samples` writes it: a row for each item and filter."""
    rows = []
    for number, (problem, generation) in enumerate(zip(asked, made, strict=True)):
        doc = {"question": problem.question, "answer": problem.solution}
        digest = hashlib.sha256(json.dumps(doc, indent=2, ensure_ascii=False).encode()).hexdigest()
        for name in ("strict-match", "flexible-extract"):
            read = str(generation.number) if name == "flexible-extract" or generation.marked else "[invalid]"
            rows.append(
                {
                    "doc_id": number,
                    "doc": doc,
                    "target": problem.solution,
                    "arguments": {
                        "gen_args_0": {
                            "arg_0": f"Question: {problem.question}\nAnswer:",
                            "arg_1": {"until": ["Question:"], "do_sample": False, "temperature": 0.0},
                        }
                    },
                    "resps": [[generation.text]],
                    "filtered_resps": [read],
                    "filter": name,
                    "metrics": ["exact_match"],
                    "doc_hash": digest,
                    "exact_match": float(read == str(problem.answer)),
                }
            )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def csv_log(asked: Sequence[Problem], made: Sequence[Generation], limit: int) -> str:
    """The same generations under a limit of so many words, as a plain CSV."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    header = ("id", "question", "expected", "correct", "answer", "text", "finish_reason", "tokens", "max_tokens")
    writer.writerow(header)
    for number, (problem, generation) in enumerate(zip(asked, made, strict=True)):
        words = generation.text.split(" ")
        cut = len(words) > limit
        right = not cut and generation.number == problem.answer
        writer.writerow(
            (
                f"problem-{number}",
                problem.question,
                problem.answer,
                "true" if right else "false",
                "" if cut else generation.number,
                " ".join(words[:limit]),
                "length" if cut else "stop",
                min(len(words), limit),
                limit,
            )
        )
    return out.getvalue()


def router_table(rng: np.random.Generator) -> str:
    """Noisy routers against a clean one: one model is unmoved, one remembers, and one stops answering."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    header = ("model", "router_count", "n", "clean_accuracy", "noisy_accuracy", "gain", "improve", "degrade", "invalid")
    writer.writerow(header)
    n, clean = 200, 100
    for model in ("steady", "remembers", "falls-silent"):
        for routers in range(1, 7):
            silent = model == "falls-silent" and routers >= 5
            improve = rng.binomial(n - clean, 0.10 + (0.06 * routers if model == "remembers" else 0.0))
            degrade = rng.binomial(clean, 0.12 if model != "remembers" else 0.10)
            if silent:
                improve, degrade = 0, 88
            noisy = clean + improve - degrade
            shares = (f"{value / n:.3f}" for value in (clean, noisy, noisy - clean))
            writer.writerow((model, routers, n, *shares, improve, degrade, 176 if silent else int(rng.integers(4))))
    return out.getvalue()


def files(seed: int) -> dict[str, str]:
    """Every file by name."""
    first, second, third, fourth = (np.random.default_rng(stream) for stream in np.random.SeedSequence(seed).spawn(4))
    asked = problems(first)
    made = {"a": generations("a", asked, second), "b": generations("b", asked, third)}
    written = {f"{model}.jsonl": lm_eval_rows(asked, texts) for model, texts in made.items()}
    written |= {name: csv_log(asked, made[name[0]], limit) for name, limit in LIMITS.items()}
    return written | {"noisy_routers.csv": router_table(fourth)}


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="Seed of everything that is drawn (default: 0).")
    parser.add_argument("--out", type=Path, default=FOLDER, help="Folder to write to (default: docs/examples/logs).")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, text in files(options.seed).items():
        (options.out / name).write_text(text, encoding="utf-8")
        print(options.out / name)


if __name__ == "__main__":
    main()
