"""Profiles of suites: defaults for a domain of benchmarks, or for what rides on a decision.

A profile says what stands for fields that a suite leaves out; what the suite says itself goes first. What it sets is
written into the suite when it is read, so a protocol card has the numbers and not only the name: a suite under a
profile whose table was changed has another fingerprint, and one on record keeps what it ran with.

Each number here comes from the article that the suite's fields come from. It says that thresholds may have to differ by
domain, code generation among them, and names none; nothing that was measured here names one either. So no profile
moves a threshold, and there is none for code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, get_args

ProfileName = Literal["standard", "strict", "factual", "reasoning", "high_stakes"]
STANDARD: Final = "standard"
_PERTURBATION: Final = "perturbation_config"


class Profile(NamedTuple):
    """What a profile asks for."""

    why: str
    sets: Mapping[tuple[str, str], float] = {}
    """Section and field → what stands for it where the suite leaves it out."""


PROFILES: Final[Mapping[str, Profile]] = {
    STANDARD: Profile("every field's own default"),
    # What it requires is channels, which stand with the others (`REQUIRED_BY_PROFILE`).
    "strict": Profile("an approval by wordings alone does not rule out memory of short facts"),
    "factual": Profile(
        "small changes of words carry much meaning there, so what is farther from its item may ask something else",
        sets={(_PERTURBATION, "max_semantic_distance"): 0.30},
    ),
    "reasoning": Profile(
        "there is more room to say the same in other words, and what is too near is recalled",
        sets={(_PERTURBATION, "min_semantic_distance"): 0.20, (_PERTURBATION, "max_semantic_distance"): 0.50},
    ),
    "high_stakes": Profile(
        "for regulatory submissions and the like: five prompts an item, the canonical one among them",
        sets={(_PERTURBATION, "num_variants_per_item"): 4},
    ),
}
assert tuple(PROFILES) == get_args(ProfileName)


def set_by_profile(tree: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """What a suite's profile sets: the fields that the suite, as it was written, leaves out."""
    governance = tree.get("governance")
    name = governance.get("profile") if isinstance(governance, Mapping) else None
    # Whatever stands there may be wrong, and is said to be by whoever reads it.
    profile = PROFILES.get(name) if isinstance(name, str) else None
    return {
        (section, field): value
        for (section, field), value in (profile.sets.items() if profile is not None else ())
        if isinstance(tree.get(section, {}), Mapping) and field not in tree.get(section, {})
    }


def with_profile(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """A suite's JSON with what its profile sets written into it."""
    found = set_by_profile(tree)
    if not found:
        return tree
    filled = dict(tree)
    for (section, field), value in found.items():
        filled[section] = {**filled.get(section, {}), field: value}
    return filled
