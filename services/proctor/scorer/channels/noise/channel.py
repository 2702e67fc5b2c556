"""The noise channel (arXiv 2603.21636): answers behind one clean router against those behind r noisy ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from proctor.domain.channel_results import ChannelEvidence, Section
from proctor.domain.evidence import NoiseEvidence
from proctor.domain.suite import Suite
from proctor.evidence.noise.channel import NULL_HYPOTHESIS
from proctor.formats.router_table_writing import ROUTER_TABLE, router_table
from proctor.scorer.channels.channel import Channel, ChannelInputs, ChannelPlan, NotAudited, Printed
from proctor.scorer.channels.noise.calls import router_calls, router_note
from proctor.scorer.channels.noise.section import noise_section
from proctor.scorer.channels.noise.weighing import noise_of


class NoiseChannel(Channel):
    """Suspicious when the noisy routers' answers are better."""

    compares = (
        "Answers from intact input against answers from degraded input. Suspicious when degraded input is answered "
        "better."
    )
    null_hypothesis = NULL_HYPOTHESIS
    needs = "arms behind clean and noisy routers, which the suite's protocol_config asks for"
    gap = (
        "Answers from degraded input were not compared with answers from intact input, so cues that survive noise were "
        "not looked for."
    )

    def weigh(self, inputs: ChannelInputs) -> NoiseEvidence | NotAudited:
        """Read the routers' messages, and weigh the answers behind them; not audited where no routers are asked."""
        if not inputs.suite.protocol.asks_routers:
            return NotAudited("the suite asks for no noisy-router arms")
        return noise_of(inputs.suite, inputs.items, list(inputs.rows.answers(direct=False)), inputs.messages)

    def section(self, result: ChannelEvidence) -> Section | None:
        """A row for each number of routers."""
        assert isinstance(result, NoiseEvidence)
        return noise_section(result)

    def plan(self, suite: Suite, items: int) -> ChannelPlan:
        """How many messages routers write, and how many prompts are made of them."""
        note = router_note(suite, items)
        return ChannelPlan((note,) if note else (), sum(router_calls(suite, items)))

    def files(self, result: ChannelEvidence) -> Mapping[str, bytes]:
        """The table of router settings, which `proctor noise` reads."""
        assert isinstance(result, NoiseEvidence)
        return {ROUTER_TABLE: router_table(result.settings)} if result.settings else {}

    def printed(self, result: Mapping[str, Any], folder: Path) -> Printed | None:
        """The verdict, and where the table is; nothing where there is none."""
        if not result["settings"]:
            return None
        verdict, table = result["verdict"], str(folder / ROUTER_TABLE)
        return Printed(
            {"noise_verdict": verdict, "router_table": table},
            f"noise channel: {verdict}; `proctor noise {table}` reads its table",
        )


CHANNEL: Final = NoiseChannel()
