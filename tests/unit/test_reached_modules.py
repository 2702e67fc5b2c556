"""Every module is reached by a command, a task, the public API or a file that another program loads."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

import grimp
import pytest

import proctor
from proctor.domain.backends import BACKENDS
from proctor.domain.strategies import STRATEGIES
from proctor.formats.logs.reading import LOG_FORMATS
from proctor.registry.model_registry import REGISTRIES
from proctor.router.stages.registry import STAGES
from proctor.scorer.channels.registry import CHANNELS
from tests.support import REPOSITORY

PACKAGE = Path(proctor.__file__).parent
#: Public API that nothing asks yet; the page of the architecture says what each waits for.
WAITING = frozenset(
    {
        "proctor.evidence.protocol.conformal",
        "proctor.evidence.sequential.betting",
        "proctor.perturbation.strategies.delete",
        "proctor.perturbation.symbolic",
    }
)
#: Begun from outside of the package.
BEGUN = {
    "proctor.__main__": "`python -m proctor`",
    "proctor.inference.worker.prompt_backend": "what plug-ins make their backends from",
    "proctor.router.stages.asking": "what plug-ins make their stages from",
    "proctor.runtime.sandbox.harness": "run in the sandbox, as text, without the package around it",
    "proctor.localstack.private_exec": "run by its path, without the package around it",
    "proctor.localstack.triton_setup": "the command that the Makefile gives, and `proctor doctor` names",
    "proctor.inference.vllm_repository": "the command that docs/models.md gives, and `make models` calls",
    "proctor.perturbation.serving.rpc.perturbation_pb2_grpc": "stubs for callers in Python",
}
#: Functions and classes that the package itself does not name.
CALLED_FROM_OUTSIDE = {
    "TritonPythonModel": "Triton loads it, and calls the next two",
    "finalize": "Triton",
    "initialize": "Triton",
    "control_items_needed": "public API, waiting as the modules do: how many control items a plan needs",
    "AskingStage": "what plug-ins make their stages from",
    "capture_signals": "uvicorn calls it",
    "emit": "logging calls it",
    "extract_cookies": "http.cookiejar calls it",
    "collect_usage_pieces": "click calls it",
    "format_commands": "click calls it",
    "format_epilog": "click calls it",
    "list_commands": "click calls it",
    "get_consumers": "kombu calls it",
    "readinto": "io calls it, in a stream of our own",
    "seekable": "io calls it",
    "intercept_service": "gRPC calls it",
    "settings_customise_sources": "pydantic-settings calls it",
    "upgrade": "Alembic calls it",
    "rule_strategies": "what every rule of Proctor's own is tested by",
    "module_of": "what this test asks of an extension point",
    "note_pace": "what a test tells a pool",
    "output_tokens_per_trial": "what a test asks of a pool",
    "triton_command": "a Triton of their own, on ports, for tests and benchmarks",
}
_MODULE = re.compile(r"(proctor(?:\.[a-z_0-9]+)+)(?::[A-Za-z_]+)?")


def named_modules(source: str) -> Iterator[str]:
    """Modules that a source names in a string, to be imported when they are needed or run as a program."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (found := _MODULE.fullmatch(node.value)):
            yield found[1]


def reached(imports: Mapping[str, Set[str]], roots: Iterable[str]) -> Set[str]:
    """The modules that some roots need, with the packages that hold them."""
    seen: set[str] = set()
    pending = list(roots)
    while pending:
        module = pending.pop()
        if module not in seen:
            seen.add(module)
            pending += imports.get(module, ())
            pending += [module.rpartition(".")[0]] if "." in module else []
    return seen


def roots(modules: Iterable[str]) -> Iterator[str]:
    """What is not imported, but begun with: commands, tasks, entry points, migrations, and what Triton loads."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    groups = [project["scripts"], *project.get("entry-points", {}).values()]
    yield from (target.partition(":")[0] for group in groups for target in group.values())
    yield from BEGUN
    for extension_point in (BACKENDS, CHANNELS, LOG_FORMATS, REGISTRIES, STAGES, STRATEGIES):
        yield from (extension_point.module_of(name) for name in extension_point.built_in)
    for module in modules:
        # `proctor worker SERVICE` imports the first, Alembic the second.
        if module.endswith(".tasks") or ".migrations." in module:
            yield module
    for model in (REPOSITORY / "services" / "triton").rglob("model.py"):
        yield from re.findall(r"^from (proctor[\w.]+) import", model.read_text("utf-8"), re.MULTILINE)


def unreached() -> Set[str]:
    graph = grimp.build_graph("proctor", cache_dir=None)
    imports: dict[str, Set[str]] = {}
    for module in graph.modules:
        path = PACKAGE.parent.joinpath(*module.split("."))
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        named = set(named_modules(source.read_text("utf-8"))) & graph.modules
        imports[module] = graph.find_modules_directly_imported_by(module) | named
    return graph.modules - reached(imports, roots(graph.modules))


def is_waiting(module: str) -> bool:
    return any(f"{module}.".startswith(f"{one}.") for one in WAITING)


def defined(source: str) -> Iterator[str]:
    """Public functions, methods and classes, but those that a decorator hands to somebody else."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            decorators = {ast.unparse(one).partition("(")[0] for one in node.decorator_list}
            if decorators <= {"property", "classmethod", "staticmethod", "cache", "contextmanager", "dataclass"}:
                yield node.name


def named(source: str) -> Iterator[str]:
    """Whatever a source names: in code, or in a string that is a name, as a lazy import has it."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case ast.Constant(value=str(text)):
                yield text.rpartition(":")[2]
            case _:
                pass


def test_nothing_stands_in_the_package_that_nothing_reaches() -> None:
    found = unreached()
    assert {module for module in found if not is_waiting(module)} == set()
    assert {one for one in WAITING if one not in found} == set(), "an exception that nobody needs any more"


def test_no_function_stands_in_the_package_for_tests_alone() -> None:
    sources = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path.read_text("utf-8")
        for path in PACKAGE.rglob("*.py")
        if "_pb2" not in path.name
    }
    used = {name for source in sources.values() for name in named(source)}
    waiting = {name for module, source in sources.items() if is_waiting(module) for name in defined(source)}
    unused = {name for source in sources.values() for name in defined(source)} - used - waiting
    assert unused - set(CALLED_FROM_OUTSIDE) == set()
    assert set(CALLED_FROM_OUTSIDE) - unused == set(), "an exception that nobody needs any more"


def test_a_function_is_used_where_its_name_stands_in_code_or_in_a_lazy_import() -> None:
    source = '@click.command()\ndef shown(): called()\ndef called(): ...\ndef dead():\n    "dead"\nLAZY = "a.b:late"'
    assert list(defined(source)) == ["called", "dead"]
    assert {"called", "late"} <= set(named(source))


def test_the_page_of_the_architecture_says_what_waits() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")
    section = page.partition("\n## Built, and waiting\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(proctor[\w.]+)`", section, re.MULTILINE)) == set(WAITING)


def test_a_module_that_only_a_test_imports_is_found() -> None:
    imports = {"p.cli": {"p.a"}, "p.a": {"p.room.b"}, "p.room.b": set[str](), "p.c": {"p.a"}}
    assert set(imports) - reached(imports, ["p.cli"]) == {"p.c"}
    assert "p.room" in reached(imports, ["p.cli"])


def test_a_name_in_a_string_is_read_as_a_module_where_it_is_one() -> None:
    source = 'ENTRY = "proctor.cli.demo:demo"\nargv = ("-m", "proctor.localstack.supervisor")\nsay("proctor.x is gone")'
    assert sorted(named_modules(source)) == ["proctor.cli.demo", "proctor.localstack.supervisor"]


def test_no_leftover_of_a_merge_or_an_editor_is_tracked() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a checkout")
    assert [name for name in listed.stdout.splitlines() if re.search(r"(\.(orig|rej|bak|swp)|~)$", name)] == []
