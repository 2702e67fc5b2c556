"""Policies: when an item counts as exposed. Each is a rule of somebody, by name, with its source."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from proctor.exposure.items import Part


class Measure(StrEnum):
    """What of a part is compared with a policy's threshold."""

    ONE_DOCUMENT = "share of its n-grams in one document"
    WEIGHTED = "share of its n-grams in one document, weighted by inverse document frequency over the items"
    ANYWHERE = "share of its n-grams anywhere in the corpus"
    RARE = "number of its n-grams in the corpus, those of more than ten documents left out"
    VERBATIM = "share of its words in one unbroken run"
    CODE = "share of a program's tokens, comments, spaces and docstrings left out, in one unbroken run"
    TOKENS = "share of the tokens of identifier, question and answer in one document, or the whole answer there"


class Policy(NamedTuple):
    """A rule."""

    name: str
    n: int
    """Words an n-gram, unless the person asks for others."""
    parts: tuple[Part, ...]
    """The item is exposed when one of these is, and unscorable when none of these that it has can be scored."""
    measure: Measure
    threshold: float
    strict: bool
    """Whether the threshold must be passed, or reached."""
    source: str
    with_options: bool = False
    """Whether every option of an item that has some must stand beside what was found, too."""

    def is_past(self, value: float) -> bool:
        """Whether a measured value makes an item exposed."""
        return value > self.threshold if self.strict else value >= self.threshold

    @property
    def words(self) -> str:
        """The rule in a sentence."""
        if self.measure is Measure.TOKENS:
            return f"{self.measure.value} >= {self.threshold:g}; in tuning data: answer and identifier in one document"
        parts = " or ".join(part.value for part in self.parts)
        rule = f"of the {parts}: {self.measure.value} {'>' if self.strict else '>='} {self.threshold:g}"
        return f"{rule}, every option beside it" if self.with_options else rule


#: In more documents than this an n-gram is common, by GPT-3's appendix C.
COMMON_DOCUMENTS: Final = 10
#: Measures that read documents in a way of their own, in which nothing else can be asked for.
WITHOUT_NGRAMS: Final = (Measure.TOKENS, Measure.CODE)

_QUESTION: Final = (Part.QUESTION,)
POLICIES: Final = {
    policy.name: policy
    for policy in (
        Policy(
            "article_8gram_80", 8, _QUESTION, Measure.ONE_DOCUMENT, 0.8, True,
            "the article's detector: more than 80 % of the question's 8-grams in one document",
        ),
        Policy(
            "idf_containment", 5, _QUESTION, Measure.WEIGHTED, 0.8, False,
            "after decon (Allen Institute for AI, 2025): containment weighted by inverse document frequency",
        ),
        Policy(
            "verbatim_item", 5, _QUESTION, Measure.VERBATIM, 1.0, False,
            "the whole question, word for word, in one document, and beside it the options of an item that has some",
            with_options=True,
        ),
        Policy(
            "gpt3_13gram", 13, (Part.QUESTION, Part.PASSAGE), Measure.RARE, 0.0, True,
            "GPT-3 (Brown et al. 2020, arXiv 2005.14165, appendix C): any 13-gram of at most ten documents",
        ),
        Policy(
            "palm_8gram_70", 8, _QUESTION, Measure.ANYWHERE, 0.7, False,
            "PaLM (Chowdhery et al. 2022, arXiv 2204.02311, section 8): 70 % of 8-grams seen in the training data",
        ),
        Policy(
            "protocol_card", 1, _QUESTION, Measure.TOKENS, 0.25, False,
            "the page on protocol cards: a toy audit by sets of tokens, for small histories alone",
        ),
        Policy(
            "code_tokens", 10, (Part.ANSWER,), Measure.CODE, 1.0, False,
            "exact match of programs, for benchmarks of code: an answer of ten tokens of its language or more",
        ),
        Policy(
            "any_ngram", 13, _QUESTION, Measure.ANYWHERE, 0.0, True,
            "one n-gram in common, for comparison with others' figures; flags much that is no exposure",
        ),
    )
}  # fmt: skip
