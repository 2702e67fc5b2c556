"""Model registries of other distributions: chosen by the scheme of the URI, and written to by the same task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import RegistryError
from proctor.registry.mlflow_registry import MlflowRegistry
from proctor.registry.model_registry import open_registry
from tests.installed_plugins import Plugins
from tests.standing_audits import DecidedAudits, decided_audits

FILES: Final = """
import json
from pathlib import Path

from proctor.registry.model_registry import RegistryUnavailableError


class FileRegistry:
    def __init__(self, uri):
        self.folder = Path(uri.removeprefix("toy-files://"))

    def ensure_version(self, model_id, digest):
        if not self.folder.exists():
            raise RegistryUnavailableError(f"{self.folder} is not mounted")
        return digest[7:19]

    def write_decision(self, event, version):
        path = self.folder / f"{version}.json"
        path.write_text(json.dumps({"outcome": event.outcome.value, "audit_id": event.audit_id}))

    def close(self):
        if self.folder.exists():
            (self.folder / "closed").touch()


class Nothing:
    def __init__(self, uri):
        pass
"""


@pytest.fixture
def files(plugins: Plugins) -> Plugins:
    names = {"toy-files": "toy_files:FileRegistry", "toy-nothing": "toy_files:Nothing", "toy-gone": "toy_files:Gone"}
    plugins.install({"toy_files": FILES}, {"proctor.registries": names})
    return plugins


@pytest.fixture
def audits(tmp_path: Path) -> Iterator[DecidedAudits]:
    with decided_audits(tmp_path / "home") as opened:
        yield opened


def written(audits: DecidedAudits, uri: str, *waited: Callable[[], None]) -> str:
    """The version of a decision, written where each wait between attempts does what is given."""
    waits = iter(waited)
    event = audits.decide("org/m", DecisionOutcome.REVIEW, weights="a", subject="a")
    return audits.write_patiently(uri, event, [0.0] * len(waited), lambda _: next(waits)())


@pytest.mark.usefixtures("files")
def test_a_decision_is_written_to_the_registry_whose_scheme_the_uri_has(tmp_path: Path, audits: DecidedAudits) -> None:
    assert written(audits, f"toy-files://{tmp_path}") == "aaaaaaaaaaaa"
    assert json.loads((tmp_path / "aaaaaaaaaaaa.json").read_text()) == {"outcome": "review", "audit_id": "a-1"}
    assert (tmp_path / "closed").exists()


@pytest.mark.usefixtures("files")
def test_a_registry_that_is_away_is_asked_again_as_mlflow_is(tmp_path: Path, audits: DecidedAudits) -> None:
    folder = tmp_path / "mounted-later"
    assert written(audits, f"toy-files://{folder}", lambda: None, folder.mkdir) == "aaaaaaaaaaaa"
    with pytest.raises(RegistryError, match="is not mounted"):
        written(audits, f"toy-files://{tmp_path / 'never'}", lambda: None)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("toy-nothing://x", r"the registry 'toy-nothing' of toy 1\.2 is no model registry"),
        ("toy-gone://x", r"the registry 'toy-gone' of toy 1\.2 cannot be loaded: AttributeError"),
        ("toy://x", "'toy://x' is no http or https URL, and no plug-in that is installed here has its scheme"),
    ],
)
def test_what_cannot_be_written_to_is_an_error_of_the_registry(uri: str, said: str, audits: DecidedAudits) -> None:
    with pytest.raises(RegistryError, match=said):
        written(audits, uri)


def test_an_mlflow_server_needs_no_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(group: str) -> None:
        raise AssertionError(f"{group} was looked for")

    monkeypatch.setattr("proctor.domain.plugins.declared", refused)
    for uri in ("http://127.0.0.1:1", "HTTPS://registry.example"):
        opened = open_registry(uri)
        assert isinstance(opened, MlflowRegistry)
        opened.close()
