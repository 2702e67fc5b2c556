"""Objects of a cluster: read by their names, and what goes wrong is one clear error."""

from __future__ import annotations

import ssl
from contextlib import closing
from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError
from proctor.runtime.kubernetes.objects import (
    MAX_ANSWER_BYTES,
    ChangedMeanwhileError,
    KubernetesError,
    KubernetesObjects,
    object_name,
    version_of,
)
from tests.answering_http import Reply, serving

_PATH = "/api/v1/namespaces/a/configmaps/b"


def _get(reply: Reply, token: Path | None = None) -> tuple[dict[str, object], dict[str, str]]:
    with serving(lambda number, asked: reply) as server:
        with closing(KubernetesObjects(server.url, ssl.create_default_context(), token)) as objects:
            found = objects.get(_PATH)
        return found, server.asked[0].headers


def test_an_object_is_read_with_the_token_of_the_moment(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("abc\n")
    found, headers = _get(Reply(body=b'{"metadata": {"resourceVersion": "7"}}'), token)
    assert version_of(found) == "7"
    assert headers["authorization"] == "Bearer abc"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(body=b"nonsense"), "does not answer"),
        (Reply(body=b"[]"), "is no object"),
        (Reply(body=b"[" * 100_000), "does not answer"),
        (Reply(drop=True), "does not answer"),
        (Reply(status=403, body=b'{"message": "no\\nno"}'), "says 403: no no"),
        (Reply(body=b" " * (MAX_ANSWER_BYTES + 1)), "is larger than 4 MiB"),
    ],
    ids=range(6),
)
def test_an_answer_that_is_none_is_one_clear_error(reply: Reply, told: str) -> None:
    with pytest.raises(KubernetesError, match=told) as failed:
        _get(reply)
    assert str(failed.value).isprintable()


def test_a_write_that_came_late_is_told_apart() -> None:
    with pytest.raises(ChangedMeanwhileError):
        _get(Reply(status=409, body=b'{"message": "the object has been modified"}'))


@pytest.mark.parametrize("name", ["", "a/b", "..", "A", "a b", "-a", "x" * 254, "a..b", "a\n"])
def test_what_is_no_name_stands_in_no_path(name: str) -> None:
    with pytest.raises(BadInputError):
        object_name(name)


def test_what_is_no_pod_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="run it in the cluster"):
        KubernetesObjects.in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)
