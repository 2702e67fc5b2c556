"""Where artifacts are kept, under which names and in which form. (The stores: integration/test_artifact_stores.py.)"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import BadInputError, StoreError
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.location import S3Location, s3_location
from proctor.runtime.artifacts.opening import open_artifacts
from proctor.runtime.artifacts.packing import object_name, packed, unpacked
from proctor.runtime.settings import Settings


@given(data=st.binary(max_size=4096))
def test_what_was_packed_is_unpacked_against_its_digest(data: bytes) -> None:
    assert unpacked(packed(data), bytes_digest(data), where="here") == data


@given(data=st.binary(max_size=512), other=st.binary(max_size=512))
def test_no_other_bytes_are_unpacked_under_a_digest(data: bytes, other: bytes) -> None:
    if data != other:
        with pytest.raises(StoreError, match="other content"):
            unpacked(packed(other), bytes_digest(data), where="here")


def test_an_object_that_inflates_past_the_bound_is_refused_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.runtime.artifacts.packing.MAX_OBJECT_BYTES", 1000)
    bomb = bytes(10_000)
    with pytest.raises(StoreError, match="other content"):
        unpacked(zlib.compress(bomb), bytes_digest(bomb), where="here")


def test_an_object_is_named_by_its_digest_below_its_first_two_digits() -> None:
    assert object_name("sha256:" + "ab" * 32) == "ab/" + "ab" * 32 + ".z"


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "sha256:../x", "sha256:" + "A" * 64, "sha256:abc"])
def test_only_a_whole_digest_has_a_name(digest: str) -> None:
    with pytest.raises(StoreError, match="not the digest"):
        object_name(digest)


@pytest.mark.parametrize("folder", ["", "artifacts", "/var/lib/proctor", "s3", "s3:/odd", "C:/x"])
def test_a_path_is_a_folder_whatever_the_endpoint_says(folder: str) -> None:
    assert s3_location(folder, "nonsense") is None


@pytest.mark.parametrize(
    ("text", "bucket", "prefix"),
    [
        ("s3://evidence", "evidence", ""),
        ("s3://evidence/", "evidence", ""),
        ("s3://team.evidence-1/proctor/eu_1/", "team.evidence-1", "proctor/eu_1"),
    ],
)
def test_an_s3_url_names_a_bucket_and_a_prefix(text: str, bucket: str, prefix: str) -> None:
    assert s3_location(text, None) == S3Location(bucket, prefix, None)


@pytest.mark.parametrize(
    "text",
    [
        "s3://", "s3:///prefix", "s3://Evidence", "s3://a", "s3://a..b", "s3://user:secret@bucket/x",
        "s3://evidence/a//b", "s3://evidence/../x", "s3://evidence/a b", "s3://evidence/ü",
        "s3://evidence/" + "x" * 901,
        "gs://evidence/x", "https://evidence.s3.amazonaws.com", "file:///tmp",
    ],
)  # fmt: skip
def test_a_location_that_is_neither_folder_nor_bucket_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="PROCTOR_ARTIFACTS is"):
        s3_location(text, None)


@pytest.mark.parametrize(
    "url", ["nonsense", "minio:9000", "ftp://minio", "http://", "http://minio:port", "http://a b", "http://ü"]
)
def test_an_endpoint_that_is_no_url_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(BadInputError, match=r"the S3 endpoint is .*e\.g\. https://"):
        s3_location("s3://evidence", url)


def test_a_location_with_credentials_in_it_is_refused_without_showing_them() -> None:
    with pytest.raises(BadInputError, match="names no bucket") as refusal:
        s3_location("s3://key:hidden@evidence/x", None)
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize("url", ["https://key:hidden@minio:port", "https://key:hidden@[minio", "key:hidden@minio"])
def test_an_endpoint_that_is_no_url_is_not_shown_where_it_may_hold_credentials(url: str) -> None:
    with pytest.raises(BadInputError, match="the S3 endpoint is a URL with '@' in it") as refusal:
        s3_location("s3://evidence", url)
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize("url", ["https://key:hidden@minio", "https://minio?token=hidden", "https://hidden@minio:1"])
def test_an_endpoint_with_credentials_in_it_is_refused_without_showing_them(url: str) -> None:
    with pytest.raises(BadInputError, match="more than an address") as refusal:
        s3_location("s3://evidence", url)
    assert "hidden" not in str(refusal.value)


def test_the_home_keeps_artifacts_in_a_folder_unless_told_otherwise(tmp_path: Path) -> None:
    settings = Settings.from_environment({"PROCTOR_HOME": str(tmp_path), "AWS_ENDPOINT_URL": "not looked at"})
    assert (settings.artifacts, settings.s3_endpoint_url) == (str(tmp_path / "artifacts"), None)
    open_artifacts(settings).put(b"x")
    assert LocalArtifacts(tmp_path / "artifacts").get(bytes_digest(b"x")) == b"x"


@pytest.mark.parametrize("variable", ["PROCTOR_S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_a_child_process_finds_the_same_bucket_at_the_same_endpoint(variable: str) -> None:
    settings = Settings.from_environment({"PROCTOR_ARTIFACTS": "s3://evidence/eu", variable: "http://minio:9000/"})
    assert s3_location(settings.artifacts, settings.s3_endpoint_url) == ("evidence", "eu", "http://minio:9000")
    assert Settings.from_environment(settings.to_environment()) == settings


def test_a_bad_location_is_refused_before_anything_runs() -> None:
    with pytest.raises(BadInputError, match=r"gs://evidence.*must be a folder or s3://"):
        Settings.from_environment({"PROCTOR_ARTIFACTS": "gs://evidence"})


def test_without_its_client_a_bucket_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("obstore", "obstore.exceptions", "obstore.store", "proctor.runtime.artifacts.s3"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Absent(), *sys.meta_path])
    with pytest.raises(BadInputError, match=r"s3://evidence.*pip install obstore"):
        open_artifacts(Settings(home=Path(), artifacts="s3://evidence"))


class _Absent:
    """A finder to which obstore is not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == "obstore":
            raise ModuleNotFoundError(f"No module named {name!r}", name="obstore")
