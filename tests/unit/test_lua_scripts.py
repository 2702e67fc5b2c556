"""What a Lua file says of its keys, arguments and rows, and what it uses of them, is what its declaration gives."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import pytest

from proctor.router.ledger import scripts as ledger
from proctor.router.pools import scripts as pools
from proctor.runtime.redis import scripts as runtime
from proctor.runtime.redis.script import Script

SCRIPTS: tuple[Script[Any, Any, Any, Any], ...] = (*ledger.SCRIPTS, *pools.SCRIPTS, *runtime.SCRIPTS)
PACKAGES = sorted({script.package for script in SCRIPTS})
every_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.package}-{script.name}")


def lua(package: str, file: str) -> str:
    return files(package).joinpath(f"lua/{file}.lua").read_text("utf-8")


def told(text: str, what: str) -> tuple[str, ...]:
    """The names on a line of a file's header."""
    found = re.search(rf"^-- {what}: (.*)$", text, re.MULTILINE)
    return () if found is None else tuple(found[1].split())


def used(text: str, table: str) -> set[str]:
    return set(re.findall(rf"(?<![\w.]){table}\.(\w+)", code(text)))


def code(text: str) -> str:
    return re.sub(r"--.*", "", text)


@every_script
def test_the_header_of_a_script_names_what_its_declaration_gives(script: Script[Any, Any, Any, Any]) -> None:
    text = lua(script.package, script.name)
    assert told(text, "Keys") == script.keys
    assert told(text, "Arguments") == script.argument_names
    assert told(text, "Rows") == script.columns
    assert told(text, "Parts") == script.parts


@every_script
def test_a_script_and_its_parts_use_what_is_declared_all_of_it_and_nothing_else(
    script: Script[Any, Any, Any, Any],
) -> None:
    own = lua(script.package, script.name)
    text = own + "".join(lua(script.package, f"parts/{part}") for part in script.parts)
    keys = used(text, "key")
    if re.search(r"\bkey\[", code(text)):
        # A table of keys by their names.
        keys |= {name for name in script.keys if re.search(rf"\b{name}\b", code(text))}
    assert keys <= set(script.keys)
    assert keys == set(script.keys) or "expire(KEYS" in text, "a key is named and never used"
    assert used(text, "arg") == set(script.argument_names)
    assert ("FIRST" in code(text)) == bool(script.columns), "rows are declared and read"
    assert ("WIDTH" in code(text)) == (len(script.columns) > 1), "a row is read whole"


@every_script
def test_a_script_counts_no_places_of_keys_and_arguments(script: Script[Any, Any, Any, Any]) -> None:
    assert not re.findall(r"KEYS\[\d|ARGV\[\d", lua(script.package, script.name))


@every_script
def test_the_names_lead_to_the_places_in_which_redis_is_handed_them(script: Script[Any, Any, Any, Any]) -> None:
    first = len(script.argument_names) + 1
    assert f"local FIRST, WIDTH = {first}, {max(1, len(script.columns))}\n" in script.text
    for place, name in enumerate(script.keys, 1):
        assert f"{name} = KEYS[{place}]" in script.text
    for place, name in enumerate(script.argument_names, 1):
        assert f"{name} = ARGV[{place}]" in script.text


def test_every_file_is_a_declared_script_or_a_part_of_one() -> None:
    scripts = {(script.package, script.name) for script in SCRIPTS}
    parts = {(script.package, part) for script in SCRIPTS for part in script.parts}

    def named(folder: Traversable) -> set[str]:
        return {path.name.removesuffix(".lua") for path in folder.iterdir() if path.is_file()}

    for package in PACKAGES:
        folder = files(package) / "lua"
        assert named(folder) - {"step"} == {name for of, name in scripts if of == package}
        found = named(folder / "parts") if (folder / "parts").is_dir() else set()
        assert found == {name for of, name in parts if of == package}


@pytest.mark.parametrize(
    ("package", "part"), sorted({(script.package, part) for script in SCRIPTS for part in script.parts})
)
def test_a_part_says_which_keys_it_uses_what_it_gives_and_what_it_holds(package: str, part: str) -> None:
    text = lua(package, f"parts/{part}")
    assert set(told(text, "Keys")) == used(text, "key")
    assert not used(text, "arg"), "a part is handed what it needs"
    header = text.split("\n\n", 1)[0]
    gives = header[header.index("-- Gives:") :].partition("-- Holds:")[0]
    functions = re.findall(r"^local function (\w+)", text, re.MULTILINE)
    assert functions
    assert all(re.search(rf"\b{name}\b", gives) for name in functions)
    assert "-- Holds: " in header
