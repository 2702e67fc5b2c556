"""Plug-ins that are installed and cannot be used: a command names each in one line before it starts anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from proctor.cli.main import main
from tests.installed_plugins import Plugins
from tests.toy_audit import write_suite

#: Group and name of each part that the suite names, and where it does.
PARTS: Final = {
    "strategy": ("proctor.strategies", "polite", "perturbation_config.perturbation_strategy"),
    "backend": ("proctor.backends", "backwards", "model_config.backend"),
    "stage": ("proctor.stages", "self_report", "protocol_config.stages"),
    "channel": ("proctor.channels", "published", "scoring_config.required_channels"),
}
#: What a module holds, and what is said of the part that its entry point names.
BROKEN: Final = {
    "raise OSError('no such card')": "cannot be loaded: OSError: no such card; mend that distribution, or use a part",
    "raise SystemExit(3)": "cannot be loaded: SystemExit: 3; mend that distribution, or use a part",
    "": "cannot be loaded: AttributeError: module 'broken_part' has no attribute 'PART'; mend that distribution",
    "PART = 7": "is a int, and not a ",
}
ONE_OF_EACH: Final[dict[str, Any]] = {
    "perturbation_config": {"perturbation_strategy": "typo"},
    "protocol_config": {},
    "scoring_config": {},
}


def suite_with(folder: Path, part: str) -> Path:
    """A suite that names one part of a plug-in, and else Proctor's own."""
    changed: dict[str, dict[str, Any]] = {
        "strategy": {"perturbation_config": {"perturbation_strategy": "typo+polite"}},
        "stage": {"protocol_config": {"stages": ["self_report"]}},
        "channel": {"scoring_config": {"required_channels": ["published"]}},
    }
    path = write_suite(folder, **{**ONE_OF_EACH, **changed.get(part, {})})
    suite = json.loads(path.read_text())
    if part != "backend":
        del suite["model_config"]["backend"]
    path.write_text(json.dumps(suite))
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What a command says that refuses its input."""
    assert main([*map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    return said.err


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("source", BROKEN)
def test_a_part_that_cannot_be_loaded_is_named_where_the_suite_is_checked(
    part: str, source: str, plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group, name, field = PARTS[part]
    plugins.install({"broken_part": source}, {group: {name: "broken_part:PART"}})
    path = suite_with(tmp_path, part)
    said = refused(capsys, "suite", "validate", path)
    assert said.startswith(f"{path}: {field}: the {part} '{name}' of toy 1.2 {BROKEN[source]}")
    assert said.endswith("\n1 problem.\n")


def test_every_broken_part_is_named_at_once(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = {group: {name: "broken_part:PART"} for group, name, _ in PARTS.values()}
    groups["proctor.channels"]["admitted"] = "broken_part:PART"
    plugins.install({"broken_part": "1 / 0"}, groups)
    lines = refused(capsys, "suite", "validate", write_suite(tmp_path)).splitlines()
    assert [line.count("ZeroDivisionError") for line in lines] == [1, 1, 1, 1, 1, 0]
    assert lines[-1] == "5 problems."


def test_an_audit_is_not_begun_with_a_broken_part(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugins.install({"broken_part": "1 / 0"}, {"proctor.channels": {"published": "broken_part:PART"}})
    home = tmp_path / "home"
    said = refused(capsys, "audit", "run", suite_with(tmp_path, "channel"), "--home", home)
    assert "the channel 'published' of toy 1.2 cannot be loaded: ZeroDivisionError: division by zero" in said
    assert not home.exists()


@pytest.mark.parametrize(
    ("part", "source", "said"),
    [
        ("strategy", "class PART: pass", "is the class PART, which is no strategy; have its entry point in"),
        ("backend", "class PART: pass", "has no probe, complete, session, close; have it keep the contract of"),
    ],
)
def test_a_class_of_another_kind_is_named(
    part: str, source: str, said: str, plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group, name, _ = PARTS[part]
    plugins.install({"broken_part": source}, {group: {name: "broken_part:PART"}})
    assert said in refused(capsys, "suite", "validate", suite_with(tmp_path, part))


def test_a_stage_under_another_kind_than_its_own_is_named(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    point = {"proctor.stages": {"self_report": "proctor.router.stages.answer:ANSWER"}}
    plugins.install({}, point)
    said = refused(capsys, "suite", "validate", suite_with(tmp_path, "stage"))
    assert "the stage 'self_report' of toy 1.2 has the kind 'answer' and the state 'answering'" in said


@pytest.mark.parametrize("part", PARTS)
def test_a_part_whose_distribution_has_no_version_is_refused(
    part: str, plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group, name, field = PARTS[part]
    folder = plugins.install({"broken_part": ""}, {group: {name: "broken_part:PART"}})
    (metadata,) = folder.glob("*.dist-info/METADATA")
    metadata.write_text("Metadata-Version: 2.1\nName: toy\n")
    path = suite_with(tmp_path, part)
    assert refused(capsys, "suite", "validate", path).startswith(
        f"{path}: {field}: the {part} '{name}' is of toy, whose metadata hold no version, so that no card could name "
        "what gave a score; install that distribution anew"
    )


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        ("typo+lexcial", 'has "lexcial", which is none of "back_translation", '),
        ("lexcial", 'is none of "back_translation", '),
        ("polite", 'is none of "back_translation", '),
    ],
)
def test_a_strategy_that_is_not_installed_is_refused_where_the_suite_is_checked(
    strategy: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_suite(tmp_path, **{**ONE_OF_EACH, "perturbation_config": {"perturbation_strategy": strategy}})
    path.write_text(path.read_text().replace(', "backend": "backwards"', ""))
    line = refused(capsys, "suite", "validate", path).splitlines()[0]
    assert line.startswith(f'{path}: perturbation_config.perturbation_strategy: "{strategy}" {said}')
    assert strategy == "polite" or line.endswith('did you mean "lexical"?')
