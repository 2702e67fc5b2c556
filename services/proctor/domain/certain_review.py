"""Suites whose audits end in a review whatever they find, because this version does not run what they require."""

from __future__ import annotations

from proctor.domain.channels import NOT_RUN_YET
from proctor.domain.suite import Suite


def certain_review(suite: Suite) -> str | None:
    """Why every audit by a suite ends in a review, as a clause; None where one can be approved."""
    absent = [name for name in suite.required_channels if name in NOT_RUN_YET]
    if not absent:
        return None
    by_suite = [name for name in absent if name in suite.scoring.required_channels]
    fields = {
        "scoring_config.required_channels": by_suite,
        f"governance.profile {suite.governance.profile}": [name for name in absent if name not in by_suite],
    }
    required = " and ".join(f"{field} requires {' and '.join(names)}" for field, names in fields.items() if names)
    which = "a channel" if len(absent) == 1 else "channels"
    return f"{required}, {which} that no audit of this version runs, so every audit by this suite ends in a review"
