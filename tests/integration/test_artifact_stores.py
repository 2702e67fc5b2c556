"""A folder and a bucket keep content under its digest, hold the same bytes, and say so when they cannot."""

from __future__ import annotations

import hashlib
import os
import random
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.item import Item
from proctor.domain.manifest import ItemSet
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.location import S3Location
from proctor.runtime.artifacts.objects import REFRESH_AFTER, StoredObject
from proctor.runtime.artifacts.opening import open_artifacts
from proctor.runtime.artifacts.packing import max_stored_bytes, object_name, packed
from proctor.runtime.artifacts.s3 import S3Artifacts
from proctor.runtime.artifacts.store import StoreOfArtifacts, get_model, put_model
from proctor.runtime.settings import Settings
from tests.s3_server import CREDENTIALS, Answer, Bucket, ScriptedS3, moto_server, only_credentials
from tests.support import free_port

DIGEST = "sha256:" + hashlib.sha256(b"content").hexdigest()


class Place(NamedTuple):
    """A store, and a way to its objects that does not go through it."""

    store: StoreOfArtifacts
    names: Callable[[], list[str]]
    read: Callable[[str], bytes]
    write: Callable[[str, bytes], None]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture(autouse=True, scope="module")
def credentials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        only_credentials(patch, CREDENTIALS)
        yield


@pytest.fixture(scope="module", params=["folder", "bucket", "bucket_with_prefix"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    if request.param == "folder":
        return _folder(tmp_path_factory.mktemp("store"))
    prefix = "proctor/eu" if request.param == "bucket_with_prefix" else ""
    return _bucket(request.getfixturevalue("server"), request.param.replace("_", "-"), prefix)


def _folder(root: Path) -> Place:
    def write(name: str, data: bytes) -> None:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(data)

    def names() -> list[str]:
        return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]

    return Place(LocalArtifacts(root), names, lambda name: (root / name).read_bytes(), write)


def _bucket(server: str, name: str, prefix: str) -> Place:
    bucket, start = Bucket(server, name), f"{prefix}/" if prefix else ""

    def names() -> list[str]:
        keys = bucket.keys()
        assert all(key.startswith(start) for key in keys)
        return [key.removeprefix(start) for key in keys]

    store = S3Artifacts(S3Location(name, prefix, server))
    return Place(store, names, lambda key: bucket.read(start + key), lambda key, data: bucket.write(start + key, data))


@settings(max_examples=40)
@given(data=st.binary(max_size=4096))
def test_what_was_stored_comes_back_under_its_sha256(place: Place, data: bytes) -> None:
    digest = place.store.put(data)
    assert digest == "sha256:" + hashlib.sha256(data).hexdigest()
    assert place.store.get(digest) == data


@settings(max_examples=20)
@given(data=st.binary(max_size=256))
def test_equal_content_is_one_object(place: Place, data: bytes) -> None:
    digest = place.store.put(data)
    held = place.names()
    assert place.store.put(data) == digest
    assert sorted(place.names()) == sorted(held)
    assert held.count(object_name(digest)) == 1


def test_content_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    store = LocalArtifacts(tmp_path)
    path = tmp_path / object_name(store.put(b"content"))
    written = path.stat()
    store.put(b"content")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)


def test_writers_at_the_same_time_leave_one_object(place: Place) -> None:
    data = random.Random(5).randbytes(20_000)
    with ThreadPoolExecutor(8) as pool:
        digests = set(pool.map(place.store.put, [data] * 16))
    assert len(digests) == 1
    assert place.store.get(digests.pop()) == data


def test_an_object_of_many_mebibytes_comes_back(place: Place) -> None:
    data = random.Random(6).randbytes(12 << 20)
    assert place.store.get(place.store.put(data)) == data


def test_objects_are_compressed(place: Place) -> None:
    prompt = b"What is the capital of France? " * 500
    stored = place.read(object_name(place.store.put(prompt)))
    assert len(stored) * 20 < len(prompt)
    assert zlib.decompress(stored) == prompt


def test_a_model_comes_back_equal(place: Place) -> None:
    items = ItemSet(items=(Item(item_id="1", question="ß \u2028?", choices=("a", "b"), target="b"),))
    assert get_model(place.store, put_model(place.store, items), ItemSet) == items


def test_a_missing_object_is_named_in_the_error(place: Place) -> None:
    digest = "sha256:" + "0" * 64
    with pytest.raises(StoreError, match=f"{digest} is not in the store"):
        place.store.get(digest)


@pytest.mark.parametrize("damage", [b"", b"not zlib", packed(b"other"), packed(b"a damaged object")[:-6]])
def test_a_damaged_object_is_refused(place: Place, damage: bytes) -> None:
    digest = place.store.put(b"a damaged object")
    place.write(object_name(digest), damage)
    with pytest.raises(StoreError, match=rf"{digest} in .*(damaged|other content)"):
        place.store.get(digest)


def test_only_a_digest_is_looked_up(place: Place) -> None:
    with pytest.raises(StoreError, match="not the digest"):
        place.store.get("../../etc/passwd")


def test_a_folder_and_a_bucket_can_be_copied_to_each_other(server: str, tmp_path: Path) -> None:
    folder, bucket = _folder(tmp_path / "folder"), _bucket(server, "copied", "from/a-folder")
    contents = [b"", b"x", bytes(range(256)) * 40]
    digests = [folder.store.put(data) for data in contents]
    for name in folder.names():
        bucket.write(name, folder.read(name))
    assert [bucket.store.get(digest) for digest in digests] == contents
    assert [bucket.store.put(data) for data in contents] == digests
    assert {name: bucket.read(name) for name in bucket.names()} == {name: folder.read(name) for name in folder.names()}


def test_the_settings_of_a_worker_open_the_bucket(server: str) -> None:
    bucket = Bucket(server, "worker")
    environ = {"PROCTOR_ARTIFACTS": "s3://worker/proctor", "PROCTOR_S3_ENDPOINT_URL": server}
    digest = open_artifacts(Settings.from_environment(environ)).put(b"a shard")
    assert bucket.keys() == [f"proctor/{object_name(digest)}"]


def test_a_folder_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=r"cannot be written to .*file: .*PROCTOR_ARTIFACTS"):
        LocalArtifacts(tmp_path / "file").put(b"content")


def test_a_folder_that_cannot_be_read_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / object_name(DIGEST)).mkdir(parents=True)
    with pytest.raises(StoreError, match=f"{DIGEST} in .* cannot be read"):
        LocalArtifacts(tmp_path).get(DIGEST)


def _put(store: S3Artifacts) -> object:
    return store.put(b"content")


def _get(store: S3Artifacts) -> object:
    return store.get(DIGEST)


either = pytest.mark.parametrize("use", [_put, _get])


def _at(url: str, bucket: str = "evidence", retries: int = 2) -> S3Artifacts:
    return S3Artifacts(S3Location(bucket, "proctor", url), retries=retries)


@either
def test_a_missing_bucket_is_named_with_the_mend(server: str, use: Callable[[S3Artifacts], object]) -> None:
    with pytest.raises(StoreError, match=r"s3://absent/proctor at http://.*no such bucket; create it"):
        use(_at(server, bucket="absent"))


@either
def test_a_server_that_is_down_is_named_with_the_mend(use: Callable[[S3Artifacts], object]) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(StoreError, match=rf"at {url}: .*cannot be reached; check PROCTOR_S3_ENDPOINT_URL"):
        use(_at(url, retries=1))


@either
@pytest.mark.parametrize(
    "environ",
    [
        # The role of a machine that is none: its service does not answer.
        {"AWS_METADATA_ENDPOINT": "http://127.0.0.1:1"},
        {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE"},
        {"AWS_SECRET_ACCESS_KEY": "example-secret"},
        {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/-",
        },
    ],
    ids=["none", "half", "other half", "container"],
)
def test_without_credentials_the_error_says_which_to_set(
    server: str, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, use: Callable[[S3Artifacts], object]
) -> None:
    only_credentials(monkeypatch, environ)
    with pytest.raises(StoreError, match=r"no credentials were found; set AWS_ACCESS_KEY_ID"):
        use(_at(server, retries=0))


@either
def test_refused_credentials_are_not_repeated_in_the_error(use: Callable[[S3Artifacts], object]) -> None:
    body = (
        b"<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIAEXAMPLE</AWSAccessKeyId>"
        b"<StringToSign>example-secret</StringToSign></Error>"
    )
    with (
        ScriptedS3(Answer(403, body)) as s3,
        pytest.raises(StoreError, match=r"refused \(403 SignatureDoesNotMatch\)") as refusal,
    ):
        use(_at(s3.url))
    assert "AKIA" not in str(refusal.value)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__suppress_context__


@pytest.mark.parametrize("value", ["hidden\n", "hid\rden", "hiddén"])
@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"])
def test_a_secret_that_no_header_can_carry_is_refused_without_showing_it(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadInputError, match=f"{name} holds a line break") as refusal:
        _at("http://127.0.0.1:1")
    assert "hid" not in str(refusal.value)


@pytest.mark.parametrize("passing", [Answer(503, b"<Error><Code>SlowDown</Code></Error>"), Answer(429), Answer(500)])
def test_throttling_and_server_errors_are_waited_out(passing: Answer) -> None:
    with ScriptedS3(passing, passing, Answer(404), passing, Answer(200)) as s3:
        assert _at(s3.url).put(b"content") == DIGEST
    assert s3.asked == ["HEAD", "HEAD", "HEAD", "PUT", "PUT"]


def test_a_read_is_asked_again_after_a_server_error() -> None:
    with ScriptedS3(Answer(503), Answer(200, packed(b"content"))) as s3:
        assert _at(s3.url).get(DIGEST) == b"content"


@either
def test_trouble_that_does_not_pass_ends_after_the_retries(use: Callable[[S3Artifacts], object]) -> None:
    with ScriptedS3(Answer(503)) as s3, pytest.raises(StoreError, match="the service answered 503"):
        use(_at(s3.url))
    assert len(s3.asked) == 3


def test_a_full_store_fails_the_write_with_its_answer() -> None:
    full = Answer(507, b"<Error><Code>XMinioStorageFull</Code></Error>")
    with ScriptedS3(Answer(404), full) as s3, pytest.raises(StoreError, match=r"written to .* 507 XMinioStorageFull"):
        _at(s3.url).put(b"content")


def test_what_is_there_is_not_sent_again() -> None:
    with ScriptedS3(Answer(200)) as s3:
        assert _at(s3.url).put(b"content") == DIGEST
    assert s3.asked == ["HEAD"]


def test_who_may_not_list_the_bucket_can_write_all_the_same() -> None:
    with ScriptedS3(Answer(403), Answer(200)) as s3:
        assert _at(s3.url).put(b"content") == DIGEST
    assert s3.asked == ["HEAD", "PUT"]


@either
def test_a_bucket_in_another_region_says_what_to_set(use: Callable[[S3Artifacts], object]) -> None:
    moved = Answer(301, b"<Error><Code>PermanentRedirect</Code></Error>")
    with ScriptedS3(moved) as s3, pytest.raises(StoreError, match="another region; set AWS_REGION"):
        use(_at(s3.url))


def test_an_answer_that_breaks_off_is_a_store_error() -> None:
    with ScriptedS3(Answer(200, b"half", announced=1000)) as s3, pytest.raises(StoreError, match=f"{DIGEST} cannot"):
        _at(s3.url, retries=1).get(DIGEST)


def test_an_object_past_the_bound_is_not_read() -> None:
    huge = Answer(200, b"", announced=max_stored_bytes() + 1)
    with ScriptedS3(huge) as s3, pytest.raises(StoreError, match=f"damaged: it has {max_stored_bytes() + 1} bytes"):
        _at(s3.url).get(DIGEST)


# Going through a store, and forgetting (what goes when: tests/hostile/test_retention.py).


def _all(store: StoreOfArtifacts) -> dict[str, StoredObject]:
    return {one.name: one for batch in store.objects() for one in batch}


def test_every_object_is_listed_with_its_age_and_nothing_that_is_not_the_stores(place: Place) -> None:
    names = [object_name(place.store.put(b"listed %d" % number)) for number in range(20)]
    place.write("ab/notes.txt", b"somebody else's")
    listed = _all(place.store)
    assert set(names) <= set(listed)
    assert "ab/notes.txt" not in listed
    for name in names:
        assert listed[name].n_bytes == len(place.read(name))
        assert abs(datetime.now(UTC) - listed[name].last_put) < timedelta(minutes=1)


def test_what_was_put_before_a_time_is_taken_out_and_the_rest_of_its_batch_stays(place: Place) -> None:
    old, new = (place.store.put(content) for content in (b"old", b"new"))
    listed = _all(place.store)
    an_hour, at = timedelta(hours=1), datetime.now(UTC)
    batch = [listed[object_name(old)]._replace(last_put=at - an_hour), listed[object_name(new)]]
    if isinstance(place.store, LocalArtifacts):
        os.utime(place.store._root / batch[0].name, ((at - an_hour).timestamp(),) * 2)
    batches = [batch] if len({one.name[:2] for one in batch}) == 1 else [[one] for one in batch]
    gone = [one.name for each in batches for one in place.store.take_out(each, at - an_hour / 2)]
    assert gone == [object_name(old)]
    assert (place.store.holds(old), place.store.holds(new)) == (False, True)
    assert place.store.take_out([], at) == []
    with pytest.raises(StoreError, match="is not in the store"):
        place.store.get(old)
    assert place.store.get(place.store.put(b"old")) == b"old"


def test_a_store_without_objects_lists_none(tmp_path: Path, server: str) -> None:
    Bucket(server, "empty")
    assert list(LocalArtifacts(tmp_path / "missing").objects()) == []
    assert _all(S3Artifacts(S3Location("empty", "prefix", server))) == {}


def test_a_bucket_of_more_objects_than_a_page_is_gone_through(server: str) -> None:
    bucket, names = Bucket(server, "pages"), [object_name(f"sha256:{number:064x}") for number in range(1100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: bucket.write(name, b"x"), names))
    store = S3Artifacts(S3Location("pages", "", server))
    pages = list(store.objects())
    assert [len(page) for page in pages] == [1000, 100]
    for page in pages:
        assert len(store.take_out(page, datetime.now(UTC) + timedelta(hours=1))) == len(page)
    assert _all(store) == {}


def test_what_is_there_for_a_day_is_sent_again_so_that_it_is_not_taken_for_old() -> None:
    yesterday = datetime.now(UTC) - REFRESH_AFTER - timedelta(minutes=1)
    with ScriptedS3(Answer(200, put=yesterday)) as s3:
        _at(s3.url).put(b"content")
    assert s3.asked == ["HEAD", "PUT"]


@pytest.mark.parametrize("use", [lambda store: list(store.objects()), lambda store: store.holds(DIGEST)])
def test_a_store_that_refuses_to_say_what_it_holds_is_not_taken_for_empty(use: Callable[[S3Artifacts], object]) -> None:
    refused = Answer(403, b"<Error><Code>AccessDenied</Code></Error>")
    with ScriptedS3(refused) as s3, pytest.raises(StoreError, match="access is refused"):
        use(_at(s3.url))


def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for use in (lambda store: list(store.objects()), lambda store: store.holds(DIGEST)):
        with pytest.raises(StoreError, match="cannot be"):
            use(LocalArtifacts(tmp_path / "file"))
