"""How often the model that rewords will be asked, for the plan of an audit."""

from __future__ import annotations

from typing import Final

from proctor.domain.strategies import calls_for
from proctor.domain.suite import Suite

#: Candidates that are tried for a wanted variant before an item is left with fewer.
_MOST_TRIES: Final = 3


def rewording_calls(suite: Suite, items: int) -> int:
    """Calls of the first candidates: one candidate for every variant of every item; 0 where no model is asked."""
    strategies = suite.perturbation.perturbation_strategy.split("+")
    calls = sum(map(calls_for, strategies))
    return items * suite.perturbation.num_variants_per_item * calls


def rewording_note(suite: Suite, items: int) -> str | None:
    """What asking the model that rewords comes to, in a sentence; None where no strategy asks one."""
    section = suite.perturbation
    if not section.asks_a_model:
        return None
    if section.paraphrase_model is None:
        return (
            f"the strategy {section.perturbation_strategy} asks a paraphrasing model, which the audit will need: "
            "name it in perturbation_config.paraphrase_model"
        )
    first = rewording_calls(suite, items)
    return (
        f"before that the paraphrasing model {section.paraphrase_model} is asked up to {first:,} prompts, and "
        f"{_MOST_TRIES * first:,} at most where rewordings are turned away; its answers have at most "
        f"{section.paraphraser.decoding.max_tokens:,} tokens each, which are not counted in the table. Rewordings that "
        "the variant library holds cost nothing"
    )
