"""Model registries of other distributions: chosen by the scheme of the URI, and written to by the same task."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.errors import RegistryError
from proctor.registry import tasks
from proctor.registry.mlflow_registry import MlflowRegistry
from proctor.registry.model_registry import open_registry
from tests.installed_plugins import Plugins

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
DIGEST: Final = "sha256:" + "ab" * 32


@pytest.fixture
def files(plugins: Plugins) -> Plugins:
    names = {"toy-files": "toy_files:FileRegistry", "toy-nothing": "toy_files:Nothing", "toy-gone": "toy_files:Gone"}
    plugins.install({"toy_files": FILES}, {"proctor.registries": names})
    return plugins


def event(**changes: Any) -> DecisionEvent:
    values = {
        "audit_id": "a-1", "audit_suite_id": "s", "model_id": "org/m", "model_digest": DIGEST,
        "outcome": DecisionOutcome.REVIEW, "reasons": (), "fingerprint": DIGEST, "protocol_digest": DIGEST,
        "report_digest": DIGEST, "report_path": "report.json", "n_items": 3,
    }  # fmt: skip
    return DecisionEvent.model_validate(values | changes)


def written(uri: str, *waited: Callable[[], None]) -> str:
    """The version of a decision, written where each wait between attempts does what is given."""
    waits = iter(waited)
    return tasks.write_with_retries(uri, event(), [0.0] * len(waited), sleep=lambda _: next(waits)())


@pytest.mark.usefixtures("files")
def test_a_decision_is_written_to_the_registry_whose_scheme_the_uri_has(tmp_path: Path) -> None:
    assert written(f"toy-files://{tmp_path}") == "abababababab"
    assert json.loads((tmp_path / "abababababab.json").read_text()) == {"outcome": "review", "audit_id": "a-1"}
    assert (tmp_path / "closed").exists()


@pytest.mark.usefixtures("files")
def test_a_registry_that_is_away_is_asked_again_as_mlflow_is(tmp_path: Path) -> None:
    folder = tmp_path / "mounted-later"
    assert written(f"toy-files://{folder}", lambda: None, folder.mkdir) == "abababababab"
    with pytest.raises(RegistryError, match="is not mounted"):
        written(f"toy-files://{tmp_path / 'never'}", lambda: None)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("toy-nothing://x", r"the registry 'toy-nothing' of toy 1\.2 is no model registry"),
        ("toy-gone://x", r"the registry 'toy-gone' of toy 1\.2 cannot be loaded: AttributeError"),
        ("toy://x", "'toy://x' is no http or https URL, and no plug-in that is installed here has its scheme"),
    ],
)
def test_what_cannot_be_written_to_is_an_error_of_the_registry(uri: str, said: str) -> None:
    with pytest.raises(RegistryError, match=said):
        written(uri)


def test_an_mlflow_server_needs_no_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(group: str) -> None:
        raise AssertionError(f"{group} was looked for")

    monkeypatch.setattr("proctor.domain.plugins.declared", refused)
    for uri in ("http://127.0.0.1:1", "HTTPS://registry.example"):
        opened = open_registry(uri)
        assert isinstance(opened, MlflowRegistry)
        opened.close()
