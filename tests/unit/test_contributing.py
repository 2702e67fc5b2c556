"""The page for contributors, and the layout in the page of the architecture, name what is there."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from proctor.cli.main import COMMANDS, cli
from tests.support import REPOSITORY

PAGE = REPOSITORY / "CONTRIBUTING.md"
ARCHITECTURE = REPOSITORY / "docs" / "architecture.md"
PACKAGE = REPOSITORY / "services" / "proctor"
#: Files and folders of which a page may speak that are made, or are another's.
_MADE = frozenset(
    {"shared/data", ".proctor/logs", "kombu/transport/redis.py", ".venv/bin/activate", ".venv/bin/python"}
)
_OF_PYTEST = frozenset({"--no-loadscope-reorder", "--pdb", "--randomly-seed", "--timeout"})
_PATH = re.compile(r"(?<![\w./$=-])\.?[\w-]+(?:/[\w.-]+)+|\b(?:[\w-]+\.(?:py|md|toml|txt))\b")
_CODE = re.compile(r"^```sh\n(.*?)^```$|`([^`\n]+)`", re.MULTILINE | re.DOTALL)


def said(page: str) -> Iterator[str]:
    """What stands as code in a page: each line of a block, without its comment, and what is in backticks."""
    for block, inline in _CODE.findall(page):
        yield from (line.partition("  #")[0].strip() for line in block.splitlines()) if block else (inline,)


def commands(page: str, program: str) -> Iterator[list[str]]:
    """The arguments of each command of a program that a page says."""
    for text in said(page):
        for found in re.findall(rf"(?:^|[ /]){re.escape(program)} ([^`]*)", text):
            yield shlex.split(found)


def paths(page: str) -> set[str]:
    """Files and folders that a page names as code."""
    return {found.rstrip(".") for text in said(page) for found in _PATH.findall(text)} - _MADE


def links(page: str) -> set[tuple[str, str]]:
    """The file and the heading of each link of a page to another."""
    return {(file, anchor) for file, anchor in re.findall(r"\]\(([^)#:]+)(?:#([\w-]+))?\)", page)}


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def absent(names: set[str], *roots: Path) -> set[str]:
    return {name for name in names if not any((root / name).exists() for root in roots)}


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text("utf-8")


def test_every_path_of_the_page_is_there(page: str) -> None:
    named = paths(page)
    assert len(named) > 50
    # A file whose folder the sentence names before it.
    beside = REPOSITORY / "services" / "proctor" / "runtime" / "messaging"
    assert absent(named, REPOSITORY, beside) == set()


def test_every_link_leads_to_a_page_and_a_heading(page: str) -> None:
    for file in (PAGE, ARCHITECTURE):
        for name, anchor in links(file.read_text("utf-8")):
            target = (file.parent / name).resolve()
            assert target.exists(), f"{file.name}: {name}"
            assert not anchor or anchor in anchors(target), f"{file.name}: {name}#{anchor}"


def test_every_target_of_make_is_in_the_makefile(page: str) -> None:
    made = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    asked = {arguments[0] for arguments in commands(page, "make")}
    assert {"unit", "test", "lint", "chaos", "fuzz", "sbom"} <= asked <= made


def test_every_proctor_command_has_the_options_that_are_said(page: str) -> None:
    asked = [arguments for arguments in commands(page, "proctor") if arguments[0] != "--version"]
    assert {"doctor", "worker", "status", "audit"} <= {one[0] for one in asked} <= COMMANDS.keys()
    for arguments in asked:
        command: click.Command | None = cli
        context = click.Context(cli)
        for word in arguments:
            if isinstance(command, click.Group) and not word.startswith("-"):
                command = command.get_command(context, word)
                assert command is not None, f"there is no proctor {' '.join(arguments)}"
        known = {option for one in command.params for option in one.opts} if command else set()
        assert {word for word in arguments if word.startswith("--")} <= known, arguments


def test_every_option_of_a_script_or_a_module_is_in_its_source(page: str) -> None:
    checked = 0
    for arguments in commands(page, "python"):
        module = "/".join(arguments[1].split(".")) + ".py" if arguments[0] == "-m" else arguments[0]
        if module == "pytest.py" or not module.endswith(".py"):
            continue
        source = (REPOSITORY / module).read_text("utf-8")
        for option in (word for word in arguments if word.startswith("--") and word not in ("--help", "--format")):
            assert f'"{option}"' in source, f"{module} has no {option}"
        checked += 1
    assert checked > 5


def test_an_option_that_stands_alone_is_one_of_a_script_a_run_or_a_command(page: str) -> None:
    alone = {re.split("[ =]", text)[0] for text in said(page) if text.startswith("--")}
    folders = (REPOSITORY / "scripts", REPOSITORY / "tests" / "chaos", REPOSITORY / "tests" / "fuzz", PACKAGE / "cli")
    source = "".join(path.read_text("utf-8") for folder in folders for path in folder.rglob("*.py"))
    assert {"--victim", "--check", "--home"} <= alone
    # Some scripts have their options from a table.
    assert {one for one in alone - _OF_PYTEST if f'"{one}"' not in source and f'"{one[2:]}": (' not in source} == set()


def test_what_is_given_to_the_long_runs_are_options_of_theirs(page: str) -> None:
    given = dict(re.findall(r'`(CHAOS|FUZZ)="([^"]+)"`', page))
    for name, file in (("CHAOS", "tests/chaos/run.py"), ("FUZZ", "tests/fuzz/run.py")):
        source = (REPOSITORY / file).read_text("utf-8")
        assert all(f'"{word}"' in source for word in given[name].split() if word.startswith("--")), name
        assert f"$({name})" in (REPOSITORY / "Makefile").read_text("utf-8")


def test_every_dotted_name_is_a_module_and_every_variable_is_a_setting(page: str) -> None:
    modules = {name for text in said(page) for name in re.findall(r"\bproctor(?:\.[a-z_]+)+", text)}
    assert modules
    assert {name for name in modules if importlib.util.find_spec(name) is None} == set()
    listed = (REPOSITORY / "docs" / "settings.md").read_text("utf-8")
    listed += (REPOSITORY / "tests" / "support.py").read_text("utf-8")
    assert {name for name in re.findall(r"PROCTOR_[A-Z_]*[A-Z]", page) if name not in listed} == set()


def test_the_layout_names_every_room_and_what_it_names_is_there() -> None:
    layout = ARCHITECTURE.read_text("utf-8").partition("\n## Layout\n")[2].partition("\n## ")[0]
    assert absent(paths(layout), PACKAGE, REPOSITORY) == set()
    code = set(said(layout))
    rooms = [one.parent.relative_to(PACKAGE).as_posix() for one in PACKAGE.glob("*/**/__init__.py")]
    # The first two floors of folders; generated stubs and what lies deeper is its room's own affair.
    missing = {room for room in rooms if room.count("/") < 2 and not room.endswith("/rpc")} - code
    assert missing == set()


def test_the_architecture_names_files_that_are_there() -> None:
    named = {name for name in paths(ARCHITECTURE.read_text("utf-8")) if name.endswith((".py", ".lua", ".proto"))}
    assert len(named) > 20
    assert absent(named, PACKAGE, REPOSITORY) == set()
