"""What an audit cannot say because answers were cut at the token limit, though arms were cut alike."""

from __future__ import annotations

from collections.abc import Iterable

from proctor.domain.evidence import ArmAccuracy, Evidence
from proctor.domain.limitation import Limitation
from proctor.domain.suite import Suite
from proctor.evidence.protocol.channel import RAISE_THE_LIMIT
from proctor.evidence.written_numbers import percent


def cut_short(evidence: Evidence, suite: Suite) -> tuple[Limitation, ...]:
    """That more answers than the suite lets pass were cut before an answer stood in them, arm by arm; empty where no
    arm has so many.
    """
    allowed = suite.scoring.max_cut_short_pct / 100
    found = [arm for arm in _arms(evidence) if arm.n_cut_short > allowed * arm.n_answers]
    if not found:
        return ()
    each = ", ".join(
        f"{arm.n_cut_short:,} of {arm.n_answers:,} ({percent(arm.n_cut_short / arm.n_answers)}) in arm {arm.arm}"
        for arm in found
    )
    return (
        Limitation(
            code="answers_cut_short",
            text=f"Answers were cut at the token limit before an answer stood in them: {each}. They count as not "
            f"right, and accuracies are too low by what they would have got right. {RAISE_THE_LIMIT} The limit is "
            f"{suite.decoding.max_tokens:,} tokens now, and how long the answers would have become is not known: begin "
            "with twice as many.",
        ),
    )


def _arms(evidence: Evidence) -> Iterable[ArmAccuracy]:
    """Every arm that was asked, each once."""
    perturbation, others = evidence.perturbation, (evidence.fresh, evidence.noise)
    control = None if perturbation is None else perturbation.control_items
    arms = (*evidence.protocol.arms, *(control.arms if control is not None else ()))
    arms += tuple(arm for channel in others if channel is not None for arm in channel.arms)
    return {arm.arm: arm for arm in arms}.values()
