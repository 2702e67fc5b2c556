"""No part of the product but the channels' own rooms asks which channel it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from proctor.domain.channels import ALWAYS_REQUIRED, BUILT_IN
from proctor.domain.evidence import Evidence
from proctor.scorer.channels.registry import CHANNELS

PRODUCT = Path(__file__).parents[2] / "services" / "proctor"
#: The channels themselves, their statistics, and where their names are registered.
ROOMS = ("scorer/channels/", "evidence/", "domain/channels.py")
#: The words mean something else there, or the channel that the gate's table is made of is shown at length.
ELSEWHERE: Mapping[str, str] = {
    "cli/audits/auditing.py": "the table of decisions shows the perturbation channel's figures",
    "cli/main.py": "the commands `noise` and `perturbation`",
    "cli/perturbation.py": "the service",
    "cli/worker.py": "the service",
    "domain/benchmark_kind.py": "which channels a suite of a kind should require, where suites are laid out",
    "domain/card.py": "sections of the suite on the card",
    "domain/messages.py": "the service",
    "domain/recorded_card.py": "the settings on a card",
    "domain/trial.py": "an arm",
    "domain/record/entry.py": "a key of a log's entry",
    "gateway/attachments.py": "the suite's section",
    "router/states.py": "the service",
    "formats/logs/proctor_report.py": "a report read as a log: its canonical answers stand under the channel's key",
    "formats/panel.py": "a word of a message",
    "perturbation/symbolic/resampling.py": "a key of an item's metadata",
    "registry/standing_record.py": "a key of a report's evidence, under which the article's score stands",
    "runtime/grpc/own_servers.py": "the service",
    "runtime/records/migrations/versions/v0002_log_and_requests.py": "a key of a log's entry",
    "scorer/policy.py": "an invalid protocol is the cause of what follows from it, so the gate names it first",
    "scorer/report/assembly.py": "a seed",
    "scorer/report/cut_short.py": "the channels that have arms of their own, whose cut answers are counted",
    "studies/comparison.py": "the cards of two logs",
    "studies/truncation.py": "the cards of two logs",
}
TEMPLATE = re.compile(rf"""["'](?:{"|".join(BUILT_IN)})["']|evidence\.(?:{"|".join(BUILT_IN)})\b""")


def names_in(source: str) -> Iterator[str]:
    """Channels that a module names in a text of its own, or takes out of the evidence by an attribute."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in BUILT_IN:
            yield str(node.value)
        if isinstance(node, ast.Attribute) and node.attr in set(BUILT_IN) - set(ALWAYS_REQUIRED):
            of = node.value
            if (isinstance(of, ast.Name) and of.id == "evidence") or (
                isinstance(of, ast.Attribute) and of.attr == "evidence"
            ):
                yield node.attr


def sources(ending: str) -> Iterator[tuple[str, str]]:
    for path in sorted(PRODUCT.rglob(f"*{ending}")):
        place = path.relative_to(PRODUCT).as_posix()
        if not place.startswith(ROOMS):
            yield place, path.read_text(encoding="utf-8")


def test_no_other_module_names_a_channel() -> None:
    naming = {place: found for place, source in sources(".py") if (found := set(names_in(source)))}
    assert {place: found for place, found in naming.items() if place not in ELSEWHERE} == {}
    assert set(ELSEWHERE) - set(naming) == set(), "named here, and names no channel any more"


def test_no_template_names_a_channel() -> None:
    templates = dict(sources(".jinja"))
    assert "scorer/page/templates/report.html.jinja" in templates
    assert {place: found for place, text in templates.items() if (found := TEMPLATE.findall(text))} == {}


@pytest.mark.parametrize(
    "source",
    [
        "if channel == 'noise': pass",
        "shown = report.evidence.noise",
        "found = evidence.fresh",
        "_ALL = {'exposure': 1}",
    ],
)
def test_a_name_would_be_found(source: str) -> None:
    assert len(list(names_in(source))) == 1


def test_every_channel_is_registered_by_its_name_and_the_evidence_has_no_other() -> None:
    assert CHANNELS.built_in == tuple(BUILT_IN)
    assert len({type(CHANNELS.get(name)) for name in BUILT_IN}) == len(BUILT_IN)
    assert set(Evidence.model_fields) - {"others", "not_audited"} <= set(BUILT_IN)
    assert set(ALWAYS_REQUIRED) <= set(Evidence.model_fields)
