"""The Contamination Score over the versions of each model, and what the gate decided."""

from __future__ import annotations

from typing import Final

from dashboards.page import Page, Panel, Query, Section, line

_SCORE: Final = "proctor_contamination_score{%"
_OF: Final = "{{model}} on {{suite}}"
CONTAMINATION: Final = Page(
    "contamination",
    "Proctor: contamination trends",
    "The Contamination Score over the versions of each model, measured by the same suite, and what the gate decided.",
    (
        Section(
            "Newest versions",
            (
                Panel(
                    "Contamination Score of the newest version",
                    "The highest ten. The gate decides by the interval, and not by this point.",
                    "percentunit",
                    (
                        Query(
                            f'topk(10, max by (model, suite) ({_SCORE}, audited="newest", bound="estimate"}}))',
                            _OF,
                        ),
                    ),
                    kind="bargauge",
                    width=12,
                ),
                Panel(
                    "Scores and their intervals",
                    "Of the newest version, and of the one before it that was measured alike.",
                    "percentunit",
                    (Query(f"max by (model, suite, audited, bound) ({_SCORE}}})", ""),),
                    kind="table",
                    width=12,
                ),
            ),
        ),
        Section(
            "Over versions",
            (
                line(
                    "Contamination Score",
                    "It steps when another version of the model is decided on.",
                    "percentunit",
                    (f'max by (model, suite) ({_SCORE}, audited="newest", bound="estimate"}})', _OF),
                    width=12,
                ),
                line(
                    "Interval of the newest version",
                    "Lower and upper bound of the Contamination Score.",
                    "percentunit",
                    (f'max by (model, suite) ({_SCORE}, audited="newest", bound="low"}})', f"{_OF}, low"),
                    (f'max by (model, suite) ({_SCORE}, audited="newest", bound="high"}})', f"{_OF}, high"),
                    width=12,
                ),
                line(
                    "Rise from the version before",
                    "Difference of the two estimates, which were measured alike.",
                    "percentunit",
                    ('max by (model, suite) (proctor:contamination_rise{%, model=~"$model", suite=~"$suite"})', _OF),
                    width=12,
                ),
                line(
                    "Rise, lower bound",
                    "Above 0 the rise is more than chance: the alert ProctorContaminationRises looks at it.",
                    "percentunit",
                    (
                        'max by (model, suite) (proctor:contamination_rise:low{%, model=~"$model", suite=~"$suite"})',
                        _OF,
                    ),
                    width=12,
                ),
            ),
        ),
        Section(
            "The gate",
            (
                line(
                    "Decisions",
                    "Decisions a day by outcome.",
                    "short",
                    ("sum by (outcome) (increase(proctor_decisions_total{%}[24h]))", "{{outcome}}"),
                    stacked=True,
                    width=12,
                ),
                line(
                    "Share that is blocked",
                    "Of the decisions of a day.",
                    "percentunit",
                    (
                        'sum(increase(proctor_decisions_total{%, outcome="block"}[24h])) / '
                        "(sum(increase(proctor_decisions_total{%}[24h])) > 0)",
                        "blocked",
                    ),
                    width=12,
                ),
            ),
        ),
        Section(
            "Datasets of one's own",
            (
                line(
                    "Time until they are to be rotated",
                    "Below 0 the day is past: the alert ProctorRotationDue looks at it.",
                    "s",
                    (
                        "max by (dataset) (proctor_dataset_rotation_due_timestamp_seconds{%}) - time()",
                        "{{dataset}}",
                    ),
                    width=12,
                ),
                line(
                    "Items held out",
                    "The next rotation takes as many of them as are asked now.",
                    "short",
                    ("max by (dataset) (proctor_dataset_held_out{%})", "{{dataset}}"),
                    width=12,
                ),
            ),
        ),
    ),
    (
        ("model", "label_values(proctor_contamination_score, model)"),
        ("suite", "label_values(proctor_contamination_score, suite)"),
    ),
    of_score='model=~"$model", suite=~"$suite"',
)
