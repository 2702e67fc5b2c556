"""Settings come from the environment, and the page of settings lists every variable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError
from proctor.runtime.settings import Settings
from tests.support import REPOSITORY

_PAGE = REPOSITORY / "docs" / "settings.md"
_NAME = re.compile(r"PROCTOR_[A-Z0-9_]*[A-Z0-9]")
#: Set by the stack for its own processes.
_INTERNAL = {"PROCTOR_STACK"}


def test_the_page_of_settings_lists_every_variable_that_the_code_reads() -> None:
    page = set(_NAME.findall(_PAGE.read_text("utf-8")))
    sources = (REPOSITORY / "services" / "proctor").rglob("*.py")
    read = {name for source in sources for name in _NAME.findall(source.read_text("utf-8"))}
    own_help = {name for name in read if name.startswith("PROCTOR_PERTURBATION_")}
    assert read - own_help - _INTERNAL - page == set()


def test_the_page_of_settings_lists_every_variable_that_is_handed_on(tmp_path: Path) -> None:
    page = _PAGE.read_text("utf-8")
    assert [name for name in Settings.for_home(tmp_path).to_environment() if f"`{name}`" not in page] == []


def test_settings_survive_the_way_through_the_environment(tmp_path: Path) -> None:
    settings = Settings.from_environment(
        {"PROCTOR_HOME": str(tmp_path), "PROCTOR_ENDPOINTS": '{"a": "http://a/v1"}', "PROCTOR_BENCHMARKS": "/b"}
    )
    assert Settings.from_environment(settings.to_environment()) == settings


def test_endpoints_that_are_no_object_of_strings_are_refused_with_an_example(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"PROCTOR_ENDPOINTS is .* e\.g\. \{"):
        Settings.from_environment({"PROCTOR_HOME": str(tmp_path), "PROCTOR_ENDPOINTS": "[1]"})
