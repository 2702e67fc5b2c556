"""From the routers' messages and the answers behind them to the evidence of the noise channel. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.domain.evidence import NoiseEvidence
from proctor.domain.item import Item
from proctor.domain.suite import Suite
from proctor.evidence.answers import Answer, cluster_labels
from proctor.evidence.noise.channel import noise_evidence
from proctor.evidence.noise.leaks import Reading
from proctor.grading.router_leaks import read_off, stated_option
from proctor.scorer.channels.channel import Messages


def noise_of(suite: Suite, items: Sequence[Item], answers: Sequence[Answer], messages: Messages) -> NoiseEvidence:
    """Read what the messages give away, and weigh the answers behind them."""
    by_id = {item.item_id: item for item in items}
    stated = {
        key: stated_option(message, item.question, item.choices)
        for key, message in messages
        if (item := by_id.get(key[1])) is not None
    }
    readings = {}
    for condition in suite.protocol.conditions:
        routes = condition.routes(suite.protocol.sampling)
        for item_id in by_id:
            keys = [(route.arm, item_id, route.place) for route in routes]
            if all(key in stated for key in keys):
                options = [stated[key] for key in keys]
                readings[condition, item_id] = Reading(options, read_off(options))
    targets = {item.item_id: item.target for item in items}
    clusters = cluster_labels(items)
    return noise_evidence(suite.model.model_id, answers, readings, targets, suite.protocol, suite.scoring, clusters)
