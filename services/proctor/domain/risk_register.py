"""What is published of how much of public benchmarks stands in training data."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_ARTICLE: Final = "the article on building evaluations, table of representative results (undated; read in 2026)"


class KnownExposure(NamedTuple):
    """One published figure. It says something of the corpora that its source looked at, and nothing of others."""

    benchmark: str
    exposed: str
    """Share of its items, as the source states it."""
    inflation: str
    """What the source says that this does to scores."""
    method: str
    """By which overlap was looked for."""
    source: str
    names: tuple[str, ...]
    """Names of the benchmark in suites, besides its own: lower case, letters and digits alone."""


REGISTER: Final = (
    KnownExposure(
        "MMLU", "3-8 % of questions", "+2-5 points", "n-gram overlap", _ARTICLE, ("caismmlu", "hendryckstest")
    ),
    KnownExposure(
        "HumanEval", "15-25 % (widely available)", "+5-15 points", "exact code match", _ARTICLE, ("openaihumaneval",)
    ),
    KnownExposure(
        "GSM8K", "10-20 %", "+3-8 points", "question fingerprinting", _ARTICLE, ("openaigsm8k", "gradeschoolmath")
    ),
    KnownExposure(
        "CodeForces",
        "78 % of problems have a semantic duplicate in OLMo 3's training data",
        "+13-22 points",
        "embeddings, then a judge of duplicates",
        "arXiv 2602.12413 (February 2026)",
        ("openr1codeforces",),
    ),
)


#: What the register's silence says.
NO_SIGN: Final = "That nothing is published here of a benchmark is no sign that it did not leak."


def known_exposure(*names: str) -> tuple[KnownExposure, ...]:
    """What is published of a benchmark, by its names in whatever spelling; nothing where nothing is known here."""
    wanted = {_plain(name) for name in names}
    return tuple(one for one in REGISTER if wanted & {_plain(one.benchmark), *one.names})


def exposure_of_dataset(benchmark_name: str, hub_id: str | None) -> tuple[KnownExposure, ...]:
    """What is published of the benchmark that a suite names, by its name or by its place on the hub."""
    on_hub = () if hub_id is None else (hub_id, hub_id.rpartition("/")[2])
    return known_exposure(benchmark_name, *on_hub)


def published(one: KnownExposure) -> str:
    """A figure with its method and its source, and what it does not say, in sentences."""
    return (
        f"Published of {one.benchmark}: exposed: {one.exposed}; scores: {one.inflation}; looked for by {one.method}; "
        f"source: {one.source}. That is of the corpora that its source looked at, says nothing of this model, and "
        f"moves no decision. {NO_SIGN}"
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
