"""From an audit's graded trials to its evidence and decision: what every channel finds, and what the gate makes of it.

Pure, as far as the channels of plug-ins are.
"""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.channel_results import ChannelEvidence
from proctor.domain.decision import Decision
from proctor.domain.evidence import Evidence
from proctor.scorer.channels.channel import ChannelInputs, NotAudited
from proctor.scorer.channels.plugin_calls import weigh_plugin
from proctor.scorer.channels.registry import CHANNELS, plugins_of
from proctor.scorer.policy import decide


class Score(NamedTuple):
    """What an audit's completions amount to."""

    evidence: Evidence
    decision: Decision


def score(inputs: ChannelInputs) -> Score:
    """Weigh the evidence of every channel, and decide. A channel that did not run is never clean."""
    weighed = {name: CHANNELS.get(name).weigh(inputs) for name in CHANNELS.built_in}
    weighed |= {name: weigh_plugin(name, inputs) for name in plugins_of(inputs.suite)}
    results, not_audited = dict[str, ChannelEvidence](), dict[str, str]()
    for name, found in weighed.items():
        if isinstance(found, NotAudited):
            not_audited[name] = found.reason
        else:
            results[name] = found
    evidence = Evidence.of(results, not_audited)
    return Score(evidence, decide(evidence, inputs.suite))
