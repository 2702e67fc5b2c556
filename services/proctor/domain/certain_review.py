"""Suites whose audits end in a review whatever they find: what they require has nothing to ask or search."""

from __future__ import annotations

from collections.abc import Collection

from proctor.domain.channels import ASKED_IN_SECTION
from proctor.domain.suite import Suite


def certain_review(suite: Suite) -> str | None:
    """Why every audit by a suite ends in a review, as a clause; None where one can be approved."""
    plain = suite.plain()
    found = [
        _of(suite, (channel,), f"that needs {section}")
        for channel, section in ASKED_IN_SECTION.items()
        if section not in plain
    ]
    said = [clause for clause in found if clause]
    return f"{' and '.join(said)}, so every audit by this suite ends in a review" if said else None


def _of(suite: Suite, channels: Collection[str], why: str) -> str:
    """Which of these channels a suite requires, and by which fields; empty where it requires none."""
    absent = [name for name in suite.required_channels if name in channels]
    if not absent:
        return ""
    by_suite = [name for name in absent if name in suite.scoring.required_channels]
    fields = {
        "scoring_config.required_channels": by_suite,
        f"governance.profile {suite.governance.profile}": [name for name in absent if name not in by_suite],
    }
    required = " and ".join(f"{field} requires {' and '.join(names)}" for field, names in fields.items() if names)
    which = "a channel" if len(absent) == 1 else "channels"
    return f"{required}, {which} {why}"
