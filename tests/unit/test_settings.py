"""Settings come from the environment, and the page of settings lists every variable."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import OtherEndpoints
from proctor.runtime.settings import Settings
from proctor.runtime.timing import Timing
from tests.support import REPOSITORY

_PAGE = REPOSITORY / "docs" / "settings.md"
_NAME = re.compile(r"PROCTOR_[A-Z0-9_]*[A-Z0-9]")
#: Set by the stack for its own processes.
_INTERNAL = {"PROCTOR_MLFLOW_PASSWORD", "PROCTOR_STACK"}


def test_the_page_of_settings_lists_every_variable_that_the_code_reads() -> None:
    page = set(_NAME.findall(_PAGE.read_text("utf-8")))
    sources = (REPOSITORY / "services" / "proctor").rglob("*.py")
    read = {name for source in sources for name in _NAME.findall(source.read_text("utf-8"))}
    own_help = {name for name in read if name.startswith(("PROCTOR_PERTURBATION_", "PROCTOR_GATEWAY_"))}
    assert read - own_help - _INTERNAL - page == set()


def test_the_page_of_settings_lists_every_variable_that_is_handed_on(tmp_path: Path) -> None:
    page = _PAGE.read_text("utf-8")
    assert [name for name in Settings(home=tmp_path).to_environment() if f"`{name}`" not in page] == []


def test_settings_survive_the_way_through_the_environment(tmp_path: Path) -> None:
    settings = Settings.from_environment(
        {
            "PROCTOR_HOME": str(tmp_path),
            "PROCTOR_ENDPOINTS": '{"a": "http://a/v1", "b": {"replicas": ["grpc://b:1", "grpc://c"], "private": true}}',
            "PROCTOR_OTHER_ENDPOINTS": "public",
            "PROCTOR_BENCHMARKS": "/b",
        }
    )
    assert (len(settings.endpoints), settings.other_endpoints) == (2, OtherEndpoints.PUBLIC)
    assert Settings.from_environment(settings.to_environment()) == settings


def test_every_setting_has_a_variable_and_survives_the_way_through_it(tmp_path: Path) -> None:
    said = {
        "PROCTOR_HOME": str(tmp_path / "home"),
        "PROCTOR_BROKER_URL": "redis://a/0",
        "PROCTOR_LEDGER_URL": "redis://a/1",
        "PROCTOR_LEDGER_CHECK": "warn",
        "PROCTOR_RECORDS_URL": "postgresql://a",
        "PROCTOR_RECORDS_MIGRATE": "never",
        "PROCTOR_RECORDS_WAIT_S": "600",
        "PROCTOR_SIGNING_KEY": "/k.pem",
        "PROCTOR_TRUSTED_KEYS": "/keys",
        "PROCTOR_ARTIFACTS": "s3://bucket",
        "PROCTOR_S3_ENDPOINT_URL": "http://minio:9000",
        "PROCTOR_REGISTRY_URI": "http://mlflow",
        "PROCTOR_DASHBOARD_URL": "https://proctor.example.org",
        "PROCTOR_ADMISSION_APPROVALS": "proctor/approvals",
        "PROCTOR_ADMISSION_STALE_S": "60",
        "PROCTOR_NOTIFY": '{"targets": {"a": "json://a"}, "rules": [], "mail": null, "names": {}}',
        "PROCTOR_ENDPOINTS": '{"a": "http://a"}',
        "PROCTOR_OTHER_ENDPOINTS": "none",
        "PROCTOR_PRIVATE_BENCHMARKS": '{"names": ["x"]}',
        "PROCTOR_CEILINGS": '{"*": {"max_items": 5}}',
        "PROCTOR_ENCODER": "/e",
        "PROCTOR_ENCODER_PRECISION": "bf16",
        "PROCTOR_BUNDLE": "/bundle",
        "PROCTOR_BENCHMARKS": "/b",
        "PROCTOR_CORPORA": "/corpora",
        "PROCTOR_RETENTION_DAYS": "30",
        "PROCTOR_METRICS_SCORES": "7",
        "PROCTOR_LOG_FORMAT": "json",
        "PROCTOR_CODE_EXECUTION": "sandbox",
        "PROCTOR_HUB_DATASETS": "",
        **{f"PROCTOR_{name.upper()}": str(n) for n, name in enumerate(Timing.model_fields, 1)},
    }
    settings, unset = Settings.from_environment(said), Settings.from_environment({})
    assert [name for name in Settings.model_fields if getattr(settings, name) == getattr(unset, name)] == []
    assert list(settings.to_environment()) == list(said)
    assert Settings.from_environment(settings.to_environment()) == settings


def test_a_variable_that_is_empty_is_one_that_is_not_set() -> None:
    empty = dict.fromkeys(Settings.from_environment({}).to_environment(), "")
    assert Settings.from_environment(empty) == Settings.from_environment({})


def test_the_page_of_settings_states_the_defaults_that_the_code_has(tmp_path: Path) -> None:
    written = Settings(home=tmp_path).to_environment()
    stated = dict(re.findall(r"^\| `(PROCTOR_[A-Z_]+)` \| `?([^|`]+?)`? \|", _PAGE.read_text("utf-8"), re.MULTILINE))
    words = {name: text for name, text in written.items() if re.fullmatch(r"[a-z]+[0-9]*|redis://.*|[0-9.]+", text)}
    assert len(words) > 12
    assert {name: stated[name] for name in words} == {
        name: text.removesuffix(".0") if text.endswith(".0") and "://" not in text else text
        for name, text in words.items()
    }


def test_settings_that_are_made_in_code_take_nothing_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, quick = Settings(home=tmp_path), Timing(lease_s=60)
    monkeypatch.setenv("PROCTOR_LEDGER_URL", "redis://elsewhere")
    monkeypatch.setenv("PROCTOR_ENDPOINTS", "[")
    monkeypatch.setenv("PROCTOR_GRACE_S", "soon")
    assert (Settings(home=tmp_path), Timing(lease_s=60)) == (plain, quick)


def test_a_variable_counts_under_its_own_name_alone() -> None:
    others = {
        "proctor_home": "/elsewhere",
        "PROCTOR_home": "/elsewhere",
        "home": "/elsewhere",
        "HOME": "/elsewhere",
        "TIMING": "x",
        "PROCTOR_TIMING": "x",
        "PROCTOR_HUB": "x",
        "PROCTOR_LEASE": "x",
        "PROCTOR_" + "X" * 10_000: "x" * 1_000_000,
    }
    assert Settings.from_environment(others) == Settings.from_environment({})


def test_settings_are_shown_without_what_may_hold_a_password(tmp_path: Path) -> None:
    secret = "hunter2hunter2"
    settings = Settings.from_environment(
        {
            "PROCTOR_HOME": str(tmp_path),
            "PROCTOR_BROKER_URL": f"redis://:{secret}@a/0",
            "PROCTOR_LEDGER_URL": f"redis://:{secret}@a/1",
            "PROCTOR_RECORDS_URL": f"postgresql://proctor:{secret}@a/proctor",
            "PROCTOR_REGISTRY_URI": f"http://proctor:{secret}@a",
            "HF_TOKEN": secret,
        }
    )
    assert secret not in f"{settings!r} {settings}"
    assert settings.hub.token == secret
    with pytest.raises(ValidationError) as error:
        Settings(home=tmp_path, registry_uri=[secret])  # a mistake in the code
    assert secret not in str(error.value)


def test_a_folder_whose_name_is_no_utf_8_is_one_all_the_same(tmp_path: Path) -> None:
    home = tmp_path / os.fsdecode(b"caf\xe9")
    settings = Settings.from_environment(
        {"PROCTOR_HOME": str(home), "PROCTOR_ARTIFACTS": str(home / "a"), "PROCTOR_ENCODER": str(home / "e")}
    )
    assert (settings.home, settings.artifacts, settings.encoder) == (home, str(home / "a"), str(home / "e"))
    assert Settings.from_environment(settings.to_environment()) == settings


@pytest.mark.parametrize(
    ("variable", "mend"),
    [
        ("PROCTOR_LEDGER_CHECK", "refuse or warn; unset it for refuse"),
        ("PROCTOR_RECORDS_MIGRATE", "auto or never; unset it for auto"),
        ("PROCTOR_ENCODER_PRECISION", "fp32 or bf16; unset it for fp32"),
        ("PROCTOR_RETENTION_DAYS", "a number of days; unset it for what each suite says"),
        ("PROCTOR_OUTAGE_S", "a number of seconds above 0"),
    ],
)
@pytest.mark.parametrize("text", [" ", "-1", "nan", "1e400", "9" * 5_000, "٣", "0x10", "1__0", "a\nb", "\udcff", "[1]"])
def test_a_value_that_is_none_is_refused_in_one_line_that_says_what_to_write(
    variable: str, mend: str, text: str
) -> None:
    with pytest.raises(BadInputError) as error:
        Settings.from_environment({variable: text})
    assert str(error.value) == f"{variable} is {text[:80]!r}, but must be {mend}"


def test_where_s3_is_comes_from_proctors_own_variable_before_amazons() -> None:
    said = {
        "PROCTOR_ARTIFACTS": "s3://evidence",
        "PROCTOR_S3_ENDPOINT_URL": "http://own:9000/",
        "AWS_ENDPOINT_URL_S3": "http://s3:9000",
        "AWS_ENDPOINT_URL": "http://aws:9000",
    }
    found = []
    for name in list(said)[1:]:
        found.append(Settings.from_environment(said).s3_endpoint_url)
        said[name] = ""
    assert found == ["http://own:9000", "http://s3:9000", "http://aws:9000"]
    assert Settings.from_environment(said).s3_endpoint_url is None
    assert Settings.from_environment({"AWS_ENDPOINT_URL": "http://aws:9000"}).s3_endpoint_url is None


def test_endpoints_that_are_no_object_are_refused_with_an_example(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"PROCTOR_ENDPOINTS is not a JSON object; write one like \{"):
        Settings.from_environment({"PROCTOR_HOME": str(tmp_path), "PROCTOR_ENDPOINTS": "[1]"})


def test_endpoints_are_read_from_a_file_and_handed_on_without_it(tmp_path: Path) -> None:
    file = tmp_path / "endpoints.json"
    file.write_text('{"a": "http://a/v1"}')
    settings = Settings.from_environment({"PROCTOR_ENDPOINTS": f"@{file}"})
    file.unlink()
    assert Settings.from_environment(settings.to_environment()).endpoints == settings.endpoints
    assert settings.endpoints["a"].url == "http://a/v1"


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), (b"\xff", "not UTF-8")])
def test_a_file_of_endpoints_that_cannot_be_read_is_named_with_the_reason(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "endpoints.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadInputError, match=rf"PROCTOR_ENDPOINTS names the file .*endpoints\.json.*{reason}"):
        Settings.from_environment({"PROCTOR_ENDPOINTS": f"@{file}"})


def test_what_is_wrong_in_a_file_of_endpoints_is_said_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "endpoints.json"
    file.write_text('{"a": {"url": "http://a", "privat": true}}')
    with pytest.raises(
        BadInputError, match=r"endpoints\.json \(PROCTOR_ENDPOINTS\): endpoint \"a\": privat is an unknown"
    ):
        Settings.from_environment({"PROCTOR_ENDPOINTS": f"@{file}"})


def test_a_word_that_is_not_offered_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadInputError, match="'all', but must be none, loopback, public or any; unset it for loopback"):
        Settings.from_environment({"PROCTOR_OTHER_ENDPOINTS": "all"})


@pytest.mark.parametrize(
    "address",
    ["proctor.example.org", "ftp://host", "https://user:s3cret@host", "https://host/?token=s3cret", "https://"],
)
def test_an_address_of_pages_that_would_carry_a_secret_or_none_is_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(BadInputError, match="PROCTOR_DASHBOARD_URL") as caught:
        Settings.from_environment({"PROCTOR_DASHBOARD_URL": address})
    assert "s3cret" not in str(caught.value)
    assert Settings.from_environment({"PROCTOR_DASHBOARD_URL": "https://h/p/"}).dashboard_url == "https://h/p"
