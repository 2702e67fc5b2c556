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


def known_exposure(name: str) -> tuple[KnownExposure, ...]:
    """What is published of a benchmark, by its name in whatever spelling; nothing where nothing is known here."""
    wanted = _plain(name)
    return tuple(one for one in REGISTER if wanted in (_plain(one.benchmark), *one.names))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
