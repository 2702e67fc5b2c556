"""What the answering check of an audit's rewordings cannot say."""

from __future__ import annotations

from proctor.domain.answering_check import AnsweringCheck
from proctor.domain.limitation import Limitation
from proctor.scorer.page.phrases import counted


def check_limitations(check: AnsweringCheck | None) -> tuple[Limitation, ...]:
    """The limits that an audit has by its answering check; none where it made none."""
    if check is None:
        return ()
    if not any(solver.heard for solver in check.solvers):
        return (
            Limitation(
                code="answering_check_silent",
                text="The answering check told nothing: none of its solvers knows enough of the benchmark to be heard. "
                "Whether the rewordings ask the same is known as far as the admission gate tells it.",
            ),
        )
    if not check.held:
        return ()
    return (
        Limitation(
            code="rewordings_held",
            text=f"{counted(check.held, 'rewording was', 'rewordings were')} left out because of what other models "
            "answered, or because they did not answer. A solver that has seen the benchmark itself answers rewordings "
            "otherwise for the same reason as a contaminated model, so that what it holds can be the evidence: read "
            "what was held.",
        ),
    )
