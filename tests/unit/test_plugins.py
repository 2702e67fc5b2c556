"""Extension points: built-in parts and those of other distributions, found by name and loaded when asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.plugins import ExtensionPoint, Origin, declared
from tests.installed_plugins import install

GROUP = "proctor.test_greetings"


class Greeting:
    def __init__(self, text: str) -> None:
        self.text = text


HELLO = Greeting("hello")
TOY = "from tests.unit.test_plugins import Greeting\nGOOD_DAY = Greeting('good day')\nNUMBER = 7\n"


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    declared.cache_clear()
    yield
    declared.cache_clear()
    for module in ("toy_greetings", "broken_greetings"):
        sys.modules.pop(module, None)


@pytest.fixture
def greetings() -> ExtensionPoint[Greeting]:
    return ExtensionPoint(GROUP, "greeting", Greeting, {"hello": f"{__name__}:HELLO"})


def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: dict[str, str], *, name: str = "toy", version: str = "1.2"
) -> None:
    modules = {"toy_greetings": TOY, "broken_greetings": "raise OSError('no such card')\n"}
    monkeypatch.syspath_prepend(str(install(tmp_path / name, modules, {GROUP: points}, name=name, version=version)))
    declared.cache_clear()


def test_a_built_in_part_is_found_and_has_no_origin(greetings: ExtensionPoint[Greeting]) -> None:
    assert greetings.get("hello") is HELLO
    assert greetings.names == greetings.built_in == ("hello",)
    assert greetings.origin("hello") is None


def test_a_part_of_another_distribution_is_found_with_its_name_and_version(
    greetings: ExtensionPoint[Greeting], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, {"good_day": "toy_greetings:GOOD_DAY"})
    assert greetings.names == ("hello", "good_day")
    assert "good_day" in greetings
    assert "toy_greetings" not in sys.modules, "imported before it was asked for"
    assert greetings.get("good_day").text == "good day"
    assert greetings.get("good_day") is greetings.get("good_day")
    assert greetings.origin("good_day") == Origin("toy", "1.2")
    assert str(greetings.origin("good_day")) == "toy 1.2"


def test_a_name_that_nobody_declares_is_refused_with_those_that_there_are(greetings: ExtensionPoint[Greeting]) -> None:
    with pytest.raises(BadInputError, match="there is no greeting 'bye'; there are: hello"):
        greetings.get("bye")
    assert "bye" not in greetings
    assert greetings.origin("bye") is None


def test_no_plug_in_takes_the_place_of_a_built_in_part(
    greetings: ExtensionPoint[Greeting], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, {"hello": "toy_greetings:GOOD_DAY"})
    assert greetings.get("hello") is HELLO
    assert greetings.names == ("hello",)
    assert greetings.origin("hello") is None


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("broken_greetings:ANY", "of toy 1.2 cannot be loaded: OSError: no such card"),
        ("toy_greetings:NONE", "of toy 1.2 cannot be loaded: AttributeError"),
        ("no_such_module:ANY", "of toy 1.2 cannot be loaded: ModuleNotFoundError"),
        ("toy_greetings:NUMBER", "of toy 1.2 is a int, and not a Greeting"),
    ],
)
def test_a_broken_plug_in_is_named_and_breaks_no_other_part(
    reference: str, said: str, greetings: ExtensionPoint[Greeting], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, {"odd": reference})
    assert greetings.get("hello") is HELLO
    with pytest.raises(BadInputError, match=said):
        greetings.get("odd")


def test_a_name_that_two_distributions_declare_is_taken_from_neither(
    greetings: ExtensionPoint[Greeting], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("toy", "game"):
        installed(tmp_path, monkeypatch, {"good_day": "toy_greetings:GOOD_DAY"}, name=name)
    with pytest.raises(BadInputError, match="two of the distributions that are installed declare a greeting"):
        greetings.get("good_day")


def test_a_distribution_that_is_on_the_path_twice_is_one(
    greetings: ExtensionPoint[Greeting], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("one", "other"):
        installed(tmp_path / folder, monkeypatch, {"good_day": "toy_greetings:GOOD_DAY"})
    assert greetings.get("good_day").text == "good day"
