"""The value sets that everything else is tried with: many, each of another kind, each one that Helm's lint takes."""

from __future__ import annotations

import json

import pytest

from tests.charts.manifests import pods, strings, title
from tests.charts.rendering import CHART, RELEASE, helm, render, rendered, told, value_set, value_set_names

#: What must be among them, whatever else is.
_KINDS = ("minimal", "everything", "external-services", "hpa", "multi-pool-gpu", "air-gapped")
_WARNING = 2


def test_there_are_a_dozen_value_sets_and_each_is_another() -> None:
    names = value_set_names()
    assert len(names) >= 12
    assert [kind for kind in _KINDS if kind not in names] == []
    said = [json.dumps([value_set(name).values, value_set(name).apis], sort_keys=True) for name in names]
    assert len(set(said)) == len(names)


def test_each_value_set_becomes_other_objects() -> None:
    shapes = {name: sorted((one["kind"], told(one)) for one in rendered(name).objects) for name in value_set_names()}
    assert [(a, b) for a in shapes for b in shapes if a < b and shapes[a] == shapes[b]] == []


@pytest.mark.parametrize("name", value_set_names())
def test_strict_lint_takes_the_chart_with_a_value_set(name: str) -> None:
    helm()
    from helm_python.chart import lint

    report = lint(CHART, dict(value_set(name).values), strict=True, kube_version="v1.36.0")
    assert report["errors"] == []
    assert [one for one in report["messages"] if one["severity"] >= _WARNING] == []


@pytest.mark.parametrize("name", value_set_names())
def test_the_notes_say_a_next_step(name: str) -> None:
    said = rendered(name).notes
    # Without a pool to ask there is no test.
    assert (f"helm test {RELEASE}" in said) == bool(rendered(name).values["test"]["pool"])
    assert "kubectl" in said
    assert "<no value>" not in said
    assert "%!" not in said


@pytest.mark.parametrize("name", value_set_names())
def test_no_text_of_a_manifest_was_left_without_a_value(name: str) -> None:
    for one in rendered(name).objects:
        for text in strings(one):
            assert "<no value>" not in text, title(one)
            assert "%!" not in text or "%!(" not in text, title(one)
            assert "map[" not in text, f"{title(one)}: a map was written as Go prints it"


@pytest.mark.parametrize("name", value_set_names())
def test_an_upgrade_renders_the_same_objects_as_an_installation(name: str) -> None:
    given = value_set(name)
    upgraded = render(given.values, apis=given.apis, upgrade=True)
    # An installation with a database of its own migrates it as that comes up, an upgrade before anything else.
    before, after = (
        {title(one) for one in made.objects if one["kind"] != "Job"} for made in (rendered(name), upgraded)
    )
    assert after ^ before == set()
    assert any(pod.component == "migrate" for pod in pods(upgraded.objects))


@pytest.mark.parametrize("name", value_set_names())
def test_rendering_twice_gives_the_same_but_for_what_is_drawn(name: str) -> None:
    given = value_set(name)
    once, again = rendered(name), render(given.values, apis=given.apis)
    assert [told(one) for one in once.objects] == [told(one) for one in again.objects]
