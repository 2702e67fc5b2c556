"""The protocol channel: whether the arms are comparable at all."""

from __future__ import annotations

from typing import Final

from proctor.domain.channel_results import Verdict
from proctor.domain.evidence import ProtocolEvidence
from proctor.domain.trial import Arm
from proctor.evidence.answers import cluster_labels
from proctor.evidence.protocol.channel import protocol_evidence
from proctor.scorer.channels.channel import Channel, ChannelInputs


class ProtocolChannel(Channel):
    """Makes other channels invalid; never evidence of contamination itself."""

    compares = (
        "Truncated, empty, unreadable and failed answers, arm against arm. Says whether the other channels can be "
        "trusted; never evidence of contamination itself."
    )
    null_hypothesis = "The arms do not differ in how often answers are truncated, empty, unreadable or missing."
    needs = "answers of every arm that is compared"
    gap = "Whether the arms were comparable was not checked."

    def weigh(self, inputs: ChannelInputs) -> ProtocolEvidence:
        """Compare the arms in which the model is asked directly."""
        return protocol_evidence(
            inputs.rows.answers(direct=True),
            expected_arms=(Arm.CANONICAL, Arm.PERTURBED),
            level=inputs.suite.scoring.confidence_level,
            clusters=cluster_labels(inputs.items),
        )

    def word(self, verdict: Verdict) -> str:
        """As any channel's, but that comparable arms are clean under any policy."""
        return "Clean" if verdict is Verdict.CLEAN else super().word(verdict)


CHANNEL: Final = ProtocolChannel()
