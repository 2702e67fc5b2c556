"""The exposure channel: items against training corpora. No audit is given a corpus yet, so it says why not."""

from __future__ import annotations

from typing import Final

from proctor.scorer.channels.channel import Channel, ChannelInputs, NotAudited


class ExposureChannel(Channel):
    """Suspicious when the items' text is found in a training corpus."""

    compares = "Items against training corpora. Suspicious when their text is found there."
    null_hypothesis = "No item's text is in the training corpora."
    needs = "a training corpus to search"
    gap = (
        "No training corpus was searched. Whether the benchmark's text was in the training data is not known from this "
        "report."
    )

    def weigh(self, inputs: ChannelInputs) -> NotAudited:
        """Nothing: there is no corpus."""
        return NotAudited("no training corpus was given")


CHANNEL: Final = ExposureChannel()
