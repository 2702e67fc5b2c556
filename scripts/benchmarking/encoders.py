"""Proctor's encoder beside the model that it wraps, asked without Proctor, on the same texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from benchmarking.report import Claim, Figure, medians_s
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import rounded_distance
from proctor.perturbation.distances import PairDistances
from proctor.perturbation.encoder import Bf16Encoder, Encoder, SentenceEncoder
from proctor.perturbation.encoder.bf16 import has_bf16
from proctor.perturbation.rechecks import Pair
from proctor.perturbation.strategies.compose import make_chain
from proctor.perturbation.strategies.registry import rule_strategies
from proctor.runtime.packaged_encoder import PACKAGED_DIGEST, PACKAGED_NAME, packaged_folder

#: What is promised: without bf16 never slower, with it and all that it takes to decide as fp32 so much quicker.
LEAST_FP32_RATIO, LEAST_BF16_RATIO = 1.0, 1.5
#: A suite's own window, both of whose ends have pairs near them.
_SECTION: Final = PerturbationSection()
WINDOW: Final = (_SECTION.min_semantic_distance, _SECTION.max_semantic_distance)
#: One after the other, these find a place in nearly every question.
_MADE_BY: Final = "lexical+syntactic+number_words+distractor"


class Decided(NamedTuple):
    """How a rough encoder decided beside the exact one."""

    different: int
    """Pairs on another side of the window."""
    largest_error: float
    """Of the distances that the rough encoder gave, over all pairs."""


def reworded(items: Sequence[Item]) -> list[Pair]:
    """Questions, each with what the rules make of it."""
    chain = make_chain(_MADE_BY, rule_strategies())
    made = ((item.question, chain.candidates(item, seed=0, limit=1)) for item in items)
    return [(question, candidates[0].question) for question, candidates in made if candidates]


def beside_plain(pairs: Sequence[Pair], rounds: int) -> tuple[list[Figure], list[Claim]]:
    """Measure the distances of pairs, in fp32 and where the processor has it in bf16 with its rechecks.

    The peer embeds the same texts, each once, and measures no distance.
    """
    from sentence_transformers import SentenceTransformer

    folder = packaged_folder()
    assert folder is not None
    fp32 = SentenceEncoder(folder, name=PACKAGED_NAME, pinned_digest=PACKAGED_DIGEST)
    plain = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    # A new one each round, which has observed nothing yet.
    rough: list[Bf16Encoder] = []

    def in_bf16() -> None:
        rough.append(Bf16Encoder(fp32))
        measured(rough[-1], pairs)

    tasks: dict[str, Callable[[], object]] = {
        "plain": lambda: plain.encode(texts, show_progress_bar=False),
        "fp32": lambda: measured(fp32, pairs),
    }
    if has_bf16():
        tasks["bf16"] = in_bf16
    seconds = medians_s(tasks, rounds=rounds)
    ratios = {name: seconds["plain"] / seconds[name] for name in seconds}
    figures = [
        Figure("plain SentenceTransformer.encode", len(texts) / seconds["plain"], "texts/s", "fp32, batches of 32"),
        Figure("Proctor's encoder, fp32", len(texts) / seconds["fp32"], "texts/s", f"{len(texts)} texts, each once"),
    ]
    claims = [Claim("Proctor's encoder in fp32 / plain encode", ratios["fp32"], LEAST_FP32_RATIO, at_least=True)]
    if not rough:
        return [*figures, Figure("bf16", 0, "texts/s", "not measured: this processor has none")], claims
    found = decided(measured(fp32, pairs), measured(Bf16Encoder(fp32), pairs))
    rechecked = rough[-1].errors.pairs / len(set(pairs))
    low, high = WINDOW
    figures += [
        Figure("Proctor's encoder, bf16", len(texts) / seconds["bf16"], "texts/s", "rechecks in fp32 included"),
        Figure("pairs measured again in fp32", 100 * rechecked, "%", f"window {low:g} to {high:g}, {len(pairs)} pairs"),
        Figure("largest error of a distance in bf16", rough[-1].errors.largest, "", "where both were measured"),
        Figure("largest error of a distance that is kept", found.largest_error, "", "2 decimals; 4 near an end"),
    ]
    claims += [
        Claim(
            "Proctor's encoder in bf16 with rechecks / plain encode", ratios["bf16"], LEAST_BF16_RATIO, at_least=True
        ),
        Claim("decisions in bf16 that differ from fp32's", found.different, 0),
    ]
    return figures, claims


def measured(encoder: Encoder, pairs: Sequence[Pair]) -> list[float]:
    """The distances of pairs as a build measures them."""
    return PairDistances(encoder, window=WINDOW).of(pairs)


def decided(exact: Sequence[float], rough: Sequence[float]) -> Decided:
    """Hold the decisions of rough distances against those of exact ones."""
    both = [(rounded_distance(one), rounded_distance(other)) for one, other in zip(exact, rough, strict=True)]
    different = Counter(_side(one) != _side(other) for one, other in both)[True]
    return Decided(different, max((abs(one - other) for one, other in both), default=0.0))


def _side(distance: float) -> str:
    low, high = WINDOW
    return "too close" if distance < low else "too far" if distance > high else "admitted"
