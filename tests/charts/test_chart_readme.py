"""The chart's page lists every value as values.yaml describes it."""

from __future__ import annotations

import pytest

from tests.charts.rendering import parse
from write_chart_readme import BEGIN, CHART, END, PAGE, comments, page, table, unsaid

_TEXT = (
    "# About the file.\n# -- A number of pods,\n# at least one.\nreplicas: 1\n# Of the gateway.\ngateway:\n"
    "  # -- Its token.\n  token: ''\n  # -- What it may use.\n  resources:\n    limits: {cpu: '1'}\n"
    "# -- A list.\npools:\n  - name: one\n    private: true\nforgotten: 2\n"
)


def test_the_table_of_values_is_current() -> None:
    current = PAGE.read_text("utf-8")
    assert page(current) == current, "python scripts/write_chart_readme.py writes it"


def test_every_value_is_described() -> None:
    text = (CHART / "values.yaml").read_text("utf-8")
    assert [".".join(path) for path in unsaid(parse(text), comments(text))] == []


def test_no_comment_of_a_value_is_lost() -> None:
    text = (CHART / "values.yaml").read_text("utf-8")
    assert text.count("# -- ") - 1 <= table(text, {}).count("\n| `") <= text.count("# -- ")


def test_a_value_is_described_by_its_comment_or_its_section_s() -> None:
    assert table(_TEXT, {}).splitlines()[2:] == [
        "| `replicas` | integer | `1` | A number of pods, at least one. |",
        '| `gateway.token` | string | `""` | Its token. |',
        '| `gateway.resources` | object | `{"limits": {"cpu": "1"}}` | What it may use. |',
        '| `pools` | array | `[{"name": "one", "private": true}]` | A list. |',
    ]


def test_a_value_without_a_comment_is_found() -> None:
    assert list(unsaid(parse(_TEXT), comments(_TEXT))) == [("forgotten",)]


def test_types_come_from_the_schema() -> None:
    schema = {
        "$defs": {"kind": {"type": "string", "enum": ["ClusterIP", "NodePort"]}},
        "properties": {"replicas": {"type": ["integer", "null"]}, "forgotten": {"$ref": "#/$defs/kind"}},
    }
    rows = table("# -- Pods.\nreplicas: null\n# -- Kind.\nforgotten: ClusterIP\n", schema).splitlines()[2:]
    assert rows == [
        "| `replicas` | integer or null | `null` | Pods. |",
        '| `forgotten` | `ClusterIP` or `NodePort` | `"ClusterIP"` | Kind. |',
    ]


def test_a_page_without_its_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the lines"):
        page(f"{END} {BEGIN[:-4]}")
