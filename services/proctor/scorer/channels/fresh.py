"""The fresh channel: the benchmark against newly written items. No audit asks such items yet, so it says why not."""

from __future__ import annotations

from typing import Final

from proctor.scorer.channels.channel import Channel, ChannelInputs, NotAudited


class FreshChannel(Channel):
    """Suspicious when the benchmark is answered better than newly written items of the same kind."""

    compares = (
        "The benchmark against newly written items of the same kind. Suspicious when the benchmark is answered better."
    )
    null_hypothesis = "The benchmark is answered no better than newly written items of the same kind."
    needs = "answers to newly written items of the same kind"
    gap = (
        "No newly written questions of the same kind were asked, so a model that has learned the benchmark in every "
        "wording would not stand out."
    )

    def weigh(self, inputs: ChannelInputs) -> NotAudited:
        """Nothing: there are no such items."""
        return NotAudited("no freshly written items were given")


CHANNEL: Final = FreshChannel()
