"""Files of training data that a suite names: which they are, what is bound of them, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.suite_exposure import ExposureSection
from proctor.formats import corpora
from proctor.formats.corpora import find_files, plan_search, sample_of
from tests.suites.examples import SMALL


def section(*patterns: str, **said: object) -> ExposureSection:
    return ExposureSection.model_validate({"corpora": {"tune": list(patterns)}, **said})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sft").mkdir()
    for name in ("b.jsonl", "a.jsonl", "c[1].jsonl"):
        (tmp_path / "sft" / name).write_text(f"{name}\n")
    return tmp_path


def test_files_are_found_once_each_by_their_paths(folder: Path) -> None:
    found = find_files(section("sft/*.jsonl", "sft/a.jsonl", str(folder / "sft" / "b.jsonl")), folder)
    assert [file.path.name for file in found["tune"]] == ["a.jsonl", "b.jsonl", "c[1].jsonl"]
    assert [file.path.name for file in find_files(section("sft/c[1].jsonl"), folder)["tune"]] == ["c[1].jsonl"]


def test_a_stage_is_bound_by_names_sizes_and_content_and_not_by_where_it_lies(folder: Path, tmp_path: Path) -> None:
    first = plan_search(section("sft/*.jsonl"), folder)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (folder / "sft").rename(moved / "sft")
    assert plan_search(section("sft/*.jsonl"), moved).corpora_digest == first.corpora_digest
    (moved / "sft" / "a.jsonl").write_text("A.jsonl\n")
    assert plan_search(section("sft/*.jsonl"), moved).corpora_digest != first.corpora_digest


def test_of_a_corpus_that_is_too_large_to_be_read_twice_the_ends_are_bound(tmp_path: Path) -> None:
    path = tmp_path / "large"
    middle, end = bytearray(5 << 20), bytearray(5 << 20)
    middle[2_500_000] = end[-1] = 1
    path.write_bytes(bytes(5 << 20))
    whole, ends = sample_of(path, whole=True), sample_of(path, whole=False)
    path.write_bytes(middle)
    assert sample_of(path, whole=True) != whole
    assert sample_of(path, whole=False) == ends
    path.write_bytes(end)
    assert sample_of(path, whole=False) != ends


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("sft/*.parquet", r"exposure_config\.corpora\.tune: 'sft/\*\.parquet' matches no file"),
        ("sft", r"is a folder; name its files, e\.g\. sft/\*\*/\*\.jsonl"),
    ],
)
def test_what_names_no_file_is_refused_with_its_field(folder: Path, pattern: str, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        plan_search(section(pattern), folder)


def test_a_pipe_is_no_file_to_wait_for(folder: Path) -> None:
    os.mkfifo(folder / "sft" / "pipe.jsonl")
    assert "pipe.jsonl" not in {file.path.name for file in find_files(section("sft/*.jsonl"), folder)["tune"]}
    with pytest.raises(BadInputError, match="matches no file"):
        find_files(section("sft/pipe.jsonl"), folder)


@pytest.mark.parametrize("pattern", ["/etc/hostname", "../secret.jsonl", "sft/../../secret.jsonl"])
def test_no_path_leads_out_of_the_operator_s_folder(folder: Path, pattern: str) -> None:
    with pytest.raises(BadInputError, match="leads out of the operator's folder of corpora"):
        plan_search(section(pattern), folder, operators=True)


def test_nor_does_a_link(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret.jsonl"
    secret.write_text("secret\n")
    (folder / "sft" / "link.jsonl").symlink_to(secret)
    with pytest.raises(BadInputError, match="is a link out of the operator's folder"):
        plan_search(section("sft/*.jsonl"), folder, operators=True)
    assert len(find_files(section("sft/*.jsonl"), folder)["tune"]) == 4


def test_more_files_than_a_plan_may_have_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "MAX_FILES", 2)
    with pytest.raises(BadInputError, match="names 3 files; at most 2 are searched"):
        plan_search(section("sft/*.jsonl"), folder)


def test_a_gateway_without_a_folder_of_corpora_takes_no_such_suite(tmp_path: Path) -> None:
    from proctor.domain.suite import Suite
    from proctor.gateway.attachments import gather_attached

    suite = Suite.model_validate({**SMALL, "exposure_config": {"corpora": {"tune": ["/etc/*"]}}})
    with pytest.raises(BadInputError, match="no folder of them"):
        gather_attached(suite, {}, tmp_path)


def test_a_suite_that_came_through_a_gateway_names_files_of_the_operator_s_folder(folder: Path, tmp_path: Path) -> None:
    from proctor.domain.suite import Suite
    from proctor.exposure.audit_search import search
    from proctor.gateway.attachments import gather_attached

    suite = Suite.model_validate(
        {
            **SMALL,
            "dataset_config": {"benchmark_name": "sums", "path": "items.jsonl"},
            "exposure_config": {"corpora": {"tune": ["sft/said.jsonl"]}, "policy": "verbatim_item"},
        }
    )
    (folder / "sft" / "said.jsonl").write_text('{"text": "Well: what is one plus two plus three? It is 6."}\n')
    items = b'{"id": "q", "question": "What is one plus two plus three?", "answer": "6"}\n'
    data = gather_attached(suite, {"items.jsonl": items}, tmp_path, corpora=folder)
    assert data.corpora is not None
    assert (data.corpora.folder, data.corpora.stages["tune"][0].path) == (None, "sft/said.jsonl")
    (found,) = search(data.corpora, data.items.items, corpora=folder).items
    assert (found.item_id, found.spans[0].file) == ("q", "sft/said.jsonl")
    with pytest.raises(BadInputError, match="PROCTOR_CORPORA is not set here"):
        search(data.corpora, data.items.items)
