"""Datasets of the hub: an id is a part of the hub's address and nothing else, and what comes from there is counted."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.hub import HubAccess, hub_patterns
from proctor.domain.problems import SuiteProblems
from proctor.domain.suite import DatasetSection
from proctor.domain.suite_problems import parse_suite
from proctor.formats import hub as hub_reader
from proctor.formats.hub_tree import listed_file
from proctor.formats.items import LoadedItems, load_items
from proctor.gateway.attachments import gather_attached
from proctor.runtime.settings import Settings
from tests.hostile.hub_stand_in import StandInHub, endless, send, stand_in_hub

REVISION = "0123456789abcdef" * 2 + "01234567"
ROWS: list[dict[str, Any]] = [{"question": f"What is {n} and 1?", "answer": n + 1} for n in range(5)]
JSONL = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
NAME = "owner/data"


@pytest.fixture
def hub() -> Iterator[StandInHub]:
    with stand_in_hub() as hub:
        yield hub


def section(**changes: Any) -> DatasetSection:
    named = {"benchmark_name": "data", "hub_id": NAME, "hub_revision": REVISION}
    return DatasetSection.model_construct(**{**DatasetSection(**named).model_dump(), **changes})


def load(hub: StandInHub, datasets: tuple[str, ...] | None = None, **changes: Any) -> LoadedItems:
    access = HubAccess(datasets, hub.url, changes.pop("token", None))
    return load_items(section(**changes), Path("/nowhere"), Path("/nowhere"), hub=access)


def parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow
    from pyarrow import parquet as pq

    stream = io.BytesIO()
    pq.write_table(pyarrow.Table.from_pylist(rows), stream)
    return stream.getvalue()


NO_IDS = ["..", ".", "sub", "text", "json", "parquet", "/etc/passwd", "../secret", "owner/..", "owner/.git", "a/b/c"]


@pytest.mark.parametrize("hub_id", [*NO_IDS, "owner/", "/data", "http://host/x", "owner\\data", "owner/data\n", ""])
def test_what_is_not_owner_and_name_is_no_dataset(
    hub: StandInHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub_id: str
) -> None:
    # A folder of that name, and a file in it, is what the hub's own package would have read.
    (tmp_path / "sub").mkdir()
    for folder in (tmp_path, tmp_path / "sub"):
        (folder / "test.jsonl").write_bytes(JSONL)
    monkeypatch.chdir(tmp_path / "sub")
    with pytest.raises(BadInputError, match="names no dataset of the hub"):
        load(hub, hub_id=hub_id)
    assert hub.asked == []
    suite = {"dataset_config": {"benchmark_name": "b", "hub_id": hub_id, "hub_revision": REVISION}}
    with pytest.raises(SuiteProblems, match=r"dataset_config\.hub_id: .*(owner/name|empty)"):
        parse_suite(json.dumps(suite))


@pytest.mark.parametrize(
    "revision", [None, "main", "refs/pr/1", "0123456", REVISION[:-1] + "/", "../" * 13 + "x", REVISION + "\n"]
)
def test_only_a_commit_is_a_revision(hub: StandInHub, revision: str | None) -> None:
    with pytest.raises(BadInputError, match="40 hex digits"):
        load(hub, hub_revision=revision)
    assert hub.asked == []


@pytest.mark.parametrize(
    ("path", "content", "variant"),
    [
        ("main/test-00000-of-00001.parquet", parquet(ROWS), "main"),
        ("data/test-00000-of-00001-a9b8c7.parquet", parquet(ROWS), "main"),
        ("test.jsonl", JSONL, "main"),
        ("plain_text/test.jsonl", JSONL, "main"),
        ("ARC-Easy/test/part.jsonl", JSONL, "ARC-Easy"),
        (
            "test.csv",
            b"question,answer\n" + b"".join(b"%s,%d\n" % (r["question"].encode(), r["answer"]) for r in ROWS),
            "main",
        ),
    ],
)
def test_a_split_is_found_by_the_names_of_its_files(hub: StandInHub, path: str, content: bytes, variant: str) -> None:
    other = {"train.jsonl": b"{}\n", "main.py": b"raise SystemExit", "README.md": b"---\nconfigs: []\n---"}
    hub.files[NAME, REVISION] = {**other, path: content}
    loaded = load(hub, dataset_variant=variant)
    assert [item.target for item in loaded.items] == ["1", "2", "3", "4", "5"]
    # Neither a loading script nor a card is fetched.
    assert hub.asked == [f"/api/datasets/{NAME}/tree/{REVISION}", f"/datasets/{NAME}/resolve/{REVISION}/{path}"]


def test_the_files_of_a_split_are_one_benchmark_in_their_order(hub: StandInHub) -> None:
    hub.files[NAME, REVISION] = {f"data/test-0000{n}-of-00002.parquet": parquet([ROWS[n]]) for n in (1, 0)}
    assert [item.question for item in load(hub).items] == [ROWS[0]["question"], ROWS[1]["question"]]
    assert load(hub).source == f"{NAME}@{REVISION}/test"


def test_a_split_that_no_file_is_named_for_is_refused_with_what_there_is(hub: StandInHub) -> None:
    hub.files[NAME, REVISION] = {"a/test.jsonl": JSONL, "b/test.jsonl": JSONL}
    with pytest.raises(
        BadInputError, match=r"no file of the split 'test' of 'main'.*\('a'; 'b'\).*dataset_config\.path"
    ):
        load(hub)


def test_faults_of_a_hub_dataset_name_it_and_no_folder_of_this_machine(hub: StandInHub) -> None:
    hub.files[NAME, REVISION] = {"test.jsonl": b'{"question": 1, "answer": 2}\n', "bad/test.parquet": b"PAR1 nothing"}
    with pytest.raises(BadInputError, match=rf"^{NAME}@{REVISION}/test has 1 fault") as caught:
        load(hub)
    with pytest.raises(BadInputError, match="cannot be read as Parquet") as other:
        load(hub, dataset_variant="bad")
    assert "/tmp" not in f"{caught.value}{other.value}"


@pytest.mark.parametrize(
    ("patterns", "allowed"),
    [
        (None, True),
        ("*/*", True),
        ("owner/*", True),
        ("owner/data", True),
        ("openai/gsm8k, owner/da*", True),
        ("", False),
        ("owner2/*", False),
        ("*/gsm8k", False),
        ("owner/dat", False),
    ],
)
def test_the_operator_says_which_datasets_are_read(hub: StandInHub, patterns: str | None, allowed: bool) -> None:
    hub.files[NAME, REVISION] = {"test.jsonl": JSONL}
    environ = {} if patterns is None else {"PROCTOR_HUB_DATASETS": patterns}
    settings = Settings.from_environment({**environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": "secret"})
    assert Settings.from_environment(settings.to_environment()).hub.datasets == settings.hub.datasets
    assert "secret" not in f"{settings!r}{settings.to_environment()}"
    if allowed:
        assert len(load_items(section(), Path(), Path(), hub=settings.hub).items) == len(ROWS)
    else:
        with pytest.raises(BadInputError, match="PROCTOR_HUB_DATASETS"):
            load_items(section(), Path(), Path(), hub=settings.hub)
        assert hub.asked == []


@pytest.mark.parametrize("text", ["*", "data", "a/b/c", "../x y", "https://huggingface.co/a/b"])
def test_a_pattern_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="PROCTOR_HUB_DATASETS holds"):
        hub_patterns(text)


def test_callers_of_a_gateway_read_nothing_of_the_hub_that_its_operator_did_not_name(hub: StandInHub) -> None:
    hub.files[NAME, REVISION] = {"test.jsonl": JSONL}
    suite = {
        "audit_suite_id": "s",
        "model_config": {"model_id": "m", "model_version": "sha256:" + "0" * 64, "endpoint": "prod"},
        "dataset_config": {"benchmark_name": "b", "hub_id": NAME, "hub_revision": REVISION},
    }
    parsed = parse_suite(json.dumps(suite))
    with pytest.raises(BadInputError, match="lets suites read no datasets of the hub"):
        gather_attached(parsed, {}, Path(), hub=HubAccess(endpoint=hub.url))
    assert hub.asked == []
    data = gather_attached(parsed, {}, Path(), hub=HubAccess(("owner/*",), hub.url))
    assert len(data.items.items) == len(ROWS)


def test_a_split_that_says_that_it_is_too_large_is_not_fetched(hub: StandInHub) -> None:
    hub.files[NAME, REVISION] = {"test.jsonl": JSONL}
    hub.listed["test.jsonl"] = {"size": hub_reader.MAX_HUB_BYTES + 1}
    with pytest.raises(BadInputError, match="at most 256 of 256 MiB are read"):
        load(hub)
    assert len(hub.asked) == 1


def test_a_file_that_is_larger_than_it_says_is_left_where_it_passes_its_size(hub: StandInHub) -> None:
    hub.files[NAME, REVISION] = {"test.jsonl": JSONL}
    hub.answers[f"/datasets/{NAME}/resolve/{REVISION}/test.jsonl"] = endless
    with pytest.raises(BadInputError, match=f"more than the {len(JSONL)} bytes"):
        load(hub)


def test_a_listing_without_end_is_left(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = f"/api/datasets/{NAME}/tree/{REVISION}"
    hub.answers[tree] = endless
    with pytest.raises(BadInputError, match="sends more than"):
        load(hub)
    monkeypatch.setattr(hub_reader, "MAX_LISTED_FILES", 50)
    page = json.dumps([hub.entry(f"{n}.txt", b"") for n in range(20)]).encode()
    hub.answers[tree] = lambda handler: send(handler, page, Link=f'<{hub.url}{tree}?cursor=x>; rel="next"')
    with pytest.raises(BadInputError, match="more than 50 files"):
        load(hub)
    hub.answers[tree] = lambda handler: send(handler, page, Link='<http://169.254.169.254/>; rel="next"')
    with pytest.raises(ProctorError, match="goes on elsewhere"):
        load(hub)


def test_a_moved_repository_is_another_one(hub: StandInHub) -> None:
    hub.files["else/where", REVISION] = {"test.jsonl": JSONL}
    moved = f"{hub.url}/api/datasets/else/where/tree/{REVISION}?recursive=true"
    hub.answers[f"/api/datasets/{NAME}/tree/{REVISION}"] = lambda handler: send(
        handler, b"", status=307, Location=moved
    )
    with pytest.raises(BadInputError, match="has moved to"):
        load(hub)


def test_a_files_storage_gets_no_token_and_its_content_is_that_of_the_commit(hub: StandInHub) -> None:
    resolve = f"/datasets/{NAME}/resolve/{REVISION}/test.jsonl"
    hub.files[NAME, REVISION] = {"test.jsonl": JSONL}
    with stand_in_hub() as storage:
        storage.answers["/blob"] = lambda handler: send(handler, JSONL)
        hub.answers[resolve] = lambda handler: send(handler, b"", status=302, Location=f"{storage.url}/blob")
        assert len(load(hub, token="secret").items) == len(ROWS)
        assert hub.tokens == ["Bearer secret"] * 2
        assert storage.tokens == [None]
        storage.answers["/blob"] = lambda handler: send(handler, JSONL.replace(b"What", b"Whom"))
        with pytest.raises(ProctorError, match="its digest is another"):
            load(hub)
        hub.answers[resolve] = lambda handler: send(handler, b"", status=302, Location="file:///etc/passwd")
        with pytest.raises(ProctorError, match="which is not followed"):
            load(hub)
        hub.answers[resolve] = lambda handler: send(handler, b"", status=302, Location=f"{hub.url}{resolve}")
        with pytest.raises(BadInputError, match="has moved"):
            load(hub)


@pytest.mark.parametrize(
    ("status", "body", "headers", "error", "words"),
    [
        (404, b"{}", {}, BadInputError, "is not on the hub"),
        (401, b"{}", {}, BadInputError, "HF_TOKEN"),
        (503, b"{}", {}, ProctorError, "status 503"),
        (200, b"{}", {}, ProctorError, "no JSON list"),
        (200, b"[" * 100_000, {}, ProctorError, "no JSON list"),
        (200, b'[1, null, {}, {"type": "file"}]', {}, BadInputError, "no Parquet, JSONL or CSV"),
        (200, b"[]", {"Content_Encoding": "gzip"}, ProctorError, "encoded answer"),
    ],
)
def test_what_is_no_listing_is_one_line(
    hub: StandInHub, status: int, body: bytes, headers: dict[str, str], error: type[ProctorError], words: str
) -> None:
    tree = f"/api/datasets/{NAME}/tree/{REVISION}"
    hub.answers[tree] = lambda handler: send(handler, body, status=status, **headers)
    with pytest.raises(error, match=words) as caught:
        load(hub)
    assert "\n" not in str(caught.value)


def test_a_hub_that_is_away_is_no_fault_of_the_suite() -> None:
    with pytest.raises(ProctorError, match="cannot be fetched from the hub") as caught:
        load_items(section(), Path(), Path(), hub=HubAccess(endpoint="http://127.0.0.1:9"))
    assert not isinstance(caught.value, BadInputError)


@pytest.mark.parametrize(
    "path",
    ["../test.jsonl", "a/../../test.jsonl", "/etc/test.jsonl", "a//test.jsonl", "a\\test.jsonl", "a\n/test.jsonl", 1],
)
def test_a_listed_file_that_climbs_is_no_file(path: Any) -> None:
    assert listed_file({"type": "file", "path": path, "size": 1, "oid": "0" * 40}) is None
