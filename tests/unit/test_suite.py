"""Suites that are right: loading, the card and its two digests, the published schema, the example, the command."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from proctor.cli.suite import suite as command
from proctor.domain.canonical import bytes_digest, canonical_json
from proctor.domain.card import ContentDigests, ProtocolCard, protocol_card
from proctor.domain.errors import BadInputError
from proctor.domain.risk_register import known_exposure, published
from proctor.domain.suite import Suite
from proctor.domain.suite_fields import all_places, place_at
from proctor.domain.suite_problems import SuiteProblems, parse_suite
from proctor.domain.suite_schema import example_suite, suite_schema
from proctor.formats.suites import content_digests, load_suite
from tests.suites.examples import (
    ABSENT,
    BESIDE_THE_CARD,
    CHANGES,
    NOT_WRITTEN,
    PLUGINS,
    SMALL,
    UNCHANGEABLE,
    Change,
    article_suite,
    leaf_fields,
    with_changes,
)
from tests.unit.test_suite_problems import JSON_VALUES, PATHS
from write_suite_page import PAGE, page

SCHEMA = Draft202012Validator(suite_schema())


def parsed(data: dict[str, Any]) -> Suite:
    return parse_suite(json.dumps(data))


def card_of(data: dict[str, Any], contents: ContentDigests | None = None) -> ProtocolCard:
    return protocol_card(parsed(data), contents or ContentDigests(), evaluator_version="proctor test")


def shuffled(value: Any, draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key], draw) for key in draw(st.permutations(sorted(value)))}
    return value


def test_the_article_s_suite_loads_exactly_as_printed() -> None:
    text = article_suite()
    plain = parse_suite(text).plain()
    for section, printed in json.loads(text).items():
        if isinstance(printed, dict):
            assert {key: plain[section][key] for key in printed} == printed
        else:
            assert plain[section] == printed


def validated(file: Path, *options: str) -> list[str]:
    """What `proctor suite validate` answers, line by line."""
    result = CliRunner().invoke(command, ["validate", str(file), *options])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def written(folder: Path, data: dict[str, Any]) -> Path:
    file = folder / "suite.json"
    file.write_text(json.dumps(data))
    return file


#: A suite whose card is bound whole, given items.jsonl beside it.
WHOLE = {
    "model_config.model_version": "sha256:" + "ab" * 32,
    "dataset_config.path": "items.jsonl",
    "perturbation_config.perturbation_strategy": "lexical",
}


def test_a_valid_suite_is_answered_in_a_few_lines_that_say_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text("{}\n")
    file = written(tmp_path, with_changes(WHOLE))
    fingerprint = CliRunner().invoke(command, ["fingerprint", str(file)]).stdout.splitlines()[0]
    assert validated(file) == [
        f"{file}: valid (small)",
        "  model        org/model at local-triton, weights sha256:abababababab…",
        "  benchmark    gsm8k (main), version 1, at most 50 items",
        "  rewordings   3 of each item, by lexical",
        f"  fingerprint  {fingerprint}",
        f"note: {published(known_exposure('gsm8k')[0])}",
        "Fields that it leaves out have their defaults; --defaults shows them.",
    ]


def test_the_defaults_that_a_suite_takes_are_shown_when_they_are_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "suite.json"
    file.write_text(article_suite())
    lines = validated(file, "--defaults")
    assert lines[0] == f"{file}: valid (gsm8k-contamination-audit-v3)"
    assert '  scoring_config.method = "stratified"' in lines
    assert not any("sampling_seed" in line or "--defaults" in line for line in lines)
    assert not any("scoring_config.method" in line for line in validated(file))


def test_a_suite_that_leaves_nothing_out_is_told_of_no_defaults(tmp_path: Path) -> None:
    file = written(tmp_path, parsed(SMALL).plain())
    assert not any("defaults" in line for line in [*validated(file), *validated(file, "--defaults")])


def test_a_fingerprint_that_is_not_final_is_not_shown_and_the_reasons_are(tmp_path: Path) -> None:
    lines = validated(written(tmp_path, with_changes({"dataset_config.path": "items.jsonl"})))
    assert "  fingerprint  not known yet" in lines
    notes = [line for line in lines if line.startswith("note: ")]
    assert ["is abbreviated" in notes[0], "cannot be read" in notes[1], len(notes)] == [True, True, 3]
    assert notes[2].startswith("note: Published of GSM8K")


@pytest.mark.parametrize("path", ["/dev/zero", "pipe"])
def test_a_suite_that_names_what_has_no_end_is_answered_all_the_same(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    lines = validated(written(tmp_path, with_changes({**WHOLE, "dataset_config.path": path})))
    assert any(f'dataset_config.path "{path}" cannot be read' in line for line in lines)


def test_settings_that_are_wrong_leave_a_suite_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_RETENTION_DAYS", "often")
    lines = validated(written(tmp_path, with_changes(WHOLE)))
    assert "  fingerprint  not known yet" in lines
    assert any(line.startswith("note: PROCTOR_RETENTION_DAYS") for line in lines)


def test_a_suite_that_names_whom_to_notify_is_told_who_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def notes(addresses: list[str]) -> list[str]:
        file = written(tmp_path, with_changes({"governance.notify_on_failure": addresses}))
        return [line for line in validated(file) if "notify_on_failure" in line]

    (note,) = notes(["a@example.org"])
    assert "nobody is notified" in note
    assert notes([]) == []
    monkeypatch.setenv("PROCTOR_NOTIFY", '{"mail": {"server": "mailto://localhost", "domains": ["example.org"]}}')
    assert notes(["a@example.org"]) == []
    (note,) = notes(["a@example.org", "b@elsewhere.example"])
    assert '"b@elsewhere.example" is not told: suites may not name addresses of its domain here' in note


def test_a_suite_with_a_period_of_its_own_is_told_what_the_period_does(tmp_path: Path) -> None:
    def notes(days: int) -> list[str]:
        file = written(tmp_path, with_changes({"governance.result_retention_days": days}))
        return [line for line in validated(file) if "result_retention_days" in line]

    (note,) = notes(30)
    assert "result_retention_days 30: a router removes this audit's prompts and completions" in note
    assert "PROCTOR_RETENTION_DAYS" in note
    assert notes(365) == []


def test_the_json_answer_has_the_notes_and_the_fingerprint_too(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text("{}\n")
    file = written(tmp_path, with_changes({**WHOLE, "governance.notify_on_failure": ["a@example.org"]}))
    document = json.loads("\n".join(validated(file, "--format", "json")))
    fingerprint = CliRunner().invoke(command, ["fingerprint", str(file)]).stdout.splitlines()[0]
    assert document["fingerprint"] == fingerprint
    assert [note.split(":")[0] for note in document["notes"]] == ["governance.notify_on_failure"]
    assert json.loads("\n".join(validated(written(tmp_path, SMALL), "--format", "json")))["fingerprint"] is None


def test_a_validated_suite_s_defaults_are_all_fields_that_the_file_leaves_out(tmp_path: Path) -> None:
    file = tmp_path / "suite.json"
    file.write_text(json.dumps(SMALL))
    result = CliRunner().invoke(command, ["validate", str(file), "--format", "json"])
    document = json.loads(result.stdout)
    assert document["valid"] is True
    written = {
        f"{name}.{key}" if key else name
        for name, value in SMALL.items()
        for key in (value if isinstance(value, dict) else ("",))
    }
    nested = {"prompt_config.few_shot.question", "prompt_config.few_shot.choices", "prompt_config.few_shot.answer"}
    assert set(document["defaults"]) == leaf_fields() - written - nested - PLUGINS - NOT_WRITTEN - ABSENT
    assert parsed(document["suite"]) == load_suite(file)


@given(st.data())
def test_the_order_of_keys_never_changes_the_fingerprint(data: st.DataObject) -> None:
    changes = data.draw(st.lists(st.sampled_from([parameter.values[0] for parameter in CHANGES]), max_size=3))
    suite = SMALL
    for change in changes:
        suite = with_changes({**change.around, change.field: change.value}, suite)
    try:
        card = card_of(suite)
    except SuiteProblems:
        return  # two of the changes exclude each other
    assert card_of(shuffled(suite, data.draw)).fingerprint == card.fingerprint


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_field_changes_the_fingerprint_and_only_the_subject_leaves_the_protocol(change: Change) -> None:
    before = card_of(with_changes(change.around))
    after = card_of(with_changes({**change.around, change.field: change.value}))
    assert before.fingerprint != after.fingerprint
    assert (before.protocol_digest == after.protocol_digest) is change.is_subject


@pytest.mark.parametrize("field", BESIDE_THE_CARD)
def test_a_budget_changes_no_digest_so_that_a_raised_one_goes_on_with_the_same_audit(field: str) -> None:
    assert card_of(with_changes({field: BESIDE_THE_CARD[field]})) == card_of(SMALL)


def test_a_suite_keeps_the_fingerprint_that_it_had_before_datasets_could_be_private() -> None:
    card = card_of(SMALL).plain()
    assert "private" not in card["task_set"]
    assert "dataset_private" not in card["model_run_config"]["run"]


def test_a_suite_keeps_the_bytes_and_the_fingerprint_that_it_had_before_there_were_profiles() -> None:
    written = parsed({**SMALL, "governance": {**SMALL["governance"], "profile": "standard"}})
    assert "profile" not in written.plain()["governance"]
    assert card_of(written.plain()) == card_of(SMALL)
    assert "profile" not in card_of(SMALL).plain()["contamination_policy"]


def test_every_field_of_the_suite_is_among_the_changes() -> None:
    assert {parameter.values[0].field for parameter in CHANGES} | UNCHANGEABLE | PLUGINS | set(BESIDE_THE_CARD) == (
        leaf_fields()
    )


def test_the_content_of_the_files_and_the_evaluator_are_part_of_the_protocol() -> None:
    cards = [
        card_of(SMALL),
        card_of(SMALL, ContentDigests(dataset="sha256:" + "1" * 64)),
        card_of(SMALL, ContentDigests(rewordings="sha256:" + "1" * 64)),
        protocol_card(parsed(SMALL), ContentDigests(), evaluator_version="proctor next"),
    ]
    assert len({card.protocol_digest for card in cards}) == len(cards)


def test_a_default_that_is_written_out_changes_nothing() -> None:
    assert card_of(parsed(SMALL).plain()).fingerprint == card_of(SMALL).fingerprint


def test_a_card_survives_its_json() -> None:
    card = card_of(SMALL)
    again = ProtocolCard.model_validate_json(canonical_json(card.plain()))
    assert (again, again.fingerprint) == (card, card.fingerprint)


def test_comments_are_ignored_at_every_level() -> None:
    commented = {
        "$comment": "top",
        **SMALL,
        "governance": {**SMALL["governance"], "$comment": ["a", {"b": 1}]},
        "prompt_config": {"few_shot": [{"$comment": 1, "question": "q", "answer": "a"}]},
    }
    bare = with_changes({"prompt_config.few_shot": [{"question": "q", "answer": "a"}]})
    assert card_of(commented).fingerprint == card_of(bare).fingerprint


def test_minus_zero_is_zero() -> None:
    minus = with_changes({"decoding_config.temperature": -0.0})
    assert card_of(minus).fingerprint == card_of(SMALL).fingerprint


def test_the_example_is_valid_and_explains_every_field() -> None:
    example = example_suite()
    parsed(example)
    SCHEMA.validate(example)
    for place in all_places():
        if place.path[0] not in example:
            # A section that a suite may leave out is explained as a whole.
            assert any(line.startswith(f"{place.path[0]}: ") for line in example["$comment"])
        elif place.section is None and len(place.path) == 2:
            assert any(line.startswith(f"{place.path[1]}: ") for line in example[place.path[0]]["$comment"])


def test_every_field_has_a_meaning() -> None:
    assert [place.dotted for place in all_places() if not place.meaning] == []


def test_the_page_of_the_suite_says_what_the_fields_say() -> None:
    assert PAGE.read_text("utf-8") == page(), "write it again: python scripts/write_suite_page.py"


def test_a_field_s_own_words_are_those_of_messages_and_of_the_example() -> None:
    place = place_at(("dataset_config", "benchmark_name"))
    assert place is not None
    assert (place.field.examples, place.example) == (["my-benchmark", "gsm8k"], '"gsm8k"')
    assert example_suite()["dataset_config"]["benchmark_name"] == "my-benchmark"
    with pytest.raises(SuiteProblems, match=r'benchmark_name: is missing \(.*\); add "benchmark_name": "gsm8k"'):
        parsed({**SMALL, "dataset_config": {}})


def test_a_shared_section_says_what_its_fields_mean_where_it_stands() -> None:
    places = {place.dotted: place.meaning for place in all_places()}
    assert [
        places[f"{section}.stop"] for section in ("perturbation_config.paraphraser.decoding", "decoding_config")
    ] == [
        "Texts at which a rewording ends.",
        "Texts at which an answer ends.",
    ]


def test_the_schema_is_a_valid_schema_and_names_itself() -> None:
    schema = suite_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["$id"]
    assert schema["title"]
    assert all(definition["description"] for definition in schema["$defs"].values())


def test_the_schema_accepts_the_article_s_suite() -> None:
    SCHEMA.validate(json.loads(article_suite()))


@pytest.mark.parametrize("change", CHANGES)
def test_the_schema_accepts_what_the_loader_accepts(change: Change) -> None:
    data = with_changes({**change.around, change.field: change.value})
    parsed(data)
    SCHEMA.validate(data)


@given(st.dictionaries(st.sampled_from(PATHS), JSON_VALUES, min_size=1, max_size=2))
def test_the_schema_refuses_nothing_that_the_loader_accepts(changes: dict[str, Any]) -> None:
    data = with_changes(changes)
    try:
        parsed(data)
    except SuiteProblems:
        return
    SCHEMA.validate(data)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_config.model_version": "latest"},
        {"scoring_config.significance_alpha": 5},
        {"dataset_config.sample_size": "500"},
        {"dataset_config.hub_id": "a/b"},
        {"dataset_config.sampel_size": 1},
        {"metric_config.name": "f1"},
    ],
    ids=str,
)
def test_the_schema_refuses_what_the_loader_refuses_in_a_single_field(changes: dict[str, Any]) -> None:
    assert list(SCHEMA.iter_errors(with_changes(changes)))


def test_the_fingerprint_stands_alone_on_the_first_line(tmp_path: Path) -> None:
    file = tmp_path / "suite.json"
    file.write_text(json.dumps(with_changes({"dataset_config.path": "items.jsonl"})))
    (tmp_path / "items.jsonl").write_bytes(b"{}\n")
    table = CliRunner().invoke(command, ["fingerprint", str(file)])
    document = json.loads(CliRunner().invoke(command, ["fingerprint", str(file), "--format", "json"]).stdout)
    assert table.stdout.splitlines()[0] == document["fingerprint"]
    assert set(document) == {"fingerprint", "protocol_digest"}
    assert "abbreviated" in table.stderr
    assert "digest of the items" not in table.stderr


def test_a_fingerprint_without_the_data_warns(tmp_path: Path) -> None:
    file = tmp_path / "suite.json"
    file.write_text(json.dumps(with_changes({"dataset_config.path": "nowhere.jsonl"})))
    result = CliRunner().invoke(command, ["fingerprint", str(file)])
    assert result.exit_code == 0
    assert f'{file}: warning: dataset_config.path "nowhere.jsonl" cannot be read' in result.stderr


def test_content_digests_are_those_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(b"items\n")
    (tmp_path / "rewordings.jsonl").write_bytes(b"rewordings\n")
    data = with_changes(
        {"dataset_config.path": "items.jsonl", "perturbation_config.rewordings_path": "rewordings.jsonl"}
    )
    assert content_digests(parsed(data), tmp_path, tmp_path) == ContentDigests(
        dataset=bytes_digest(b"items\n"), rewordings=bytes_digest(b"rewordings\n")
    )


def test_the_packaged_benchmark_s_digest_covers_items_and_wordings(tmp_path: Path) -> None:
    suite = parsed(with_changes({"dataset_config.benchmark_name": "proctor-facts"}))
    assert content_digests(suite, tmp_path, tmp_path).dataset is None
    folder = tmp_path / "proctor-facts"
    folder.mkdir()
    (folder / "items.jsonl").write_bytes(b"1")
    (folder / "wordings.json").write_bytes(b"1")
    first = content_digests(suite, tmp_path, tmp_path).dataset
    (folder / "wordings.json").write_bytes(b"2")
    second = content_digests(suite, tmp_path, tmp_path).dataset
    assert first is not None
    assert second is not None
    assert first != second


def test_init_writes_an_example_and_does_not_overwrite(tmp_path: Path) -> None:
    file = tmp_path / "suite.json"
    assert CliRunner().invoke(command, ["init", str(file)]).exit_code == 0
    load_suite(file)
    file.write_text("mine")
    refused = CliRunner().invoke(command, ["init", str(file)])
    assert isinstance(refused.exception, BadInputError)
    assert "--force" in str(refused.exception)
    assert file.read_text() == "mine"
    assert CliRunner().invoke(command, ["init", "--force", str(file)]).exit_code == 0
    load_suite(file)


def test_init_says_for_which_benchmarks_wording_alone_is_blind_and_what_to_require(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["init", str(file := tmp_path / "suite.json")])
    assert "short facts that are answered by recall, require fresh or exposure evidence" in result.stderr
    advice = " ".join(json.loads(file.read_text())["scoring_config"]["$comment"])
    assert "does not rule out memory of short facts" in advice
    assert "require fresh or exposure evidence in scoring_config.required_channels" in advice
    assert "Measured: " in advice


def test_init_writes_a_strict_suite_of_which_validate_says_that_it_always_ends_in_a_review(tmp_path: Path) -> None:
    file = tmp_path / "suite.json"
    assert CliRunner().invoke(command, ["init", str(file), "--profile", "strict"]).exit_code == 0
    assert load_suite(file).governance.profile == "strict"
    (note,) = [line for line in validated(file) if "ends in a review" in line]
    assert note.startswith("note: governance.profile strict requires fresh, a channel that needs fresh_config")
    assert not any("ends in a review" in line for line in validated(written(tmp_path, SMALL)))


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"question": "Who rules Kelmar?", "answer": "Queen Ilse"}, "facts"),
        ({"question": "Who rules Kelmar?", "choices": ["Ilse", "Otto"], "answer": "Ilse"}, "letters"),
        ({"question": "What is 3 and 4?", "answer": "7"}, "worked"),
    ],
)
def test_init_lays_a_suite_out_for_what_its_items_are(tmp_path: Path, row: dict[str, Any], kind: str) -> None:
    (tmp_path / "data").mkdir()
    items = tmp_path / "data" / "mine.jsonl"
    items.write_text("".join(json.dumps({**row, "id": str(n)}) + "\n" for n in range(3)))
    by_items, by_name = tmp_path / "suite.json", tmp_path / "named.json"
    told = CliRunner().invoke(command, ["init", str(by_items), "--items", str(items)])
    assert told.exit_code == 0
    assert "docs/study.md" in told.stderr
    assert CliRunner().invoke(command, ["init", str(by_name), "--kind", kind]).exit_code == 0
    suite, named = load_suite(by_items), load_suite(by_name)
    assert suite.dataset.path == "data/mine.jsonl"
    assert suite.scoring == named.scoring
    assert suite.fresh == named.fresh
    assert ("fresh" in suite.required_channels) is (suite.fresh is not None) is (kind == "facts")
    assert not any("ends in a review" in line for line in validated(by_items))
    advice = " ".join(json.loads(by_items.read_text())["scoring_config"]["$comment"])
    assert "docs/study.md" in advice


def test_init_takes_a_kind_against_the_form_of_the_items_and_says_what_is_wrong_with_them(tmp_path: Path) -> None:
    items, file = tmp_path / "items.jsonl", tmp_path / "suite.json"
    items.write_text('{"question": "Who rules Kelmar?", "answer": "Queen Ilse"}\n')
    assert CliRunner().invoke(command, ["init", str(file), "--items", str(items), "--kind", "worked"]).exit_code == 0
    assert load_suite(file).fresh is None
    items.write_text('{"prompt": "Who rules Kelmar?"}\n')
    refused = CliRunner().invoke(command, ["init", str(tmp_path / "other.json"), "--items", str(items)])
    assert isinstance(refused.exception, BadInputError)
    assert "question" in str(refused.exception)
    assert not (tmp_path / "other.json").exists()


def test_init_to_standard_output_is_the_suite_alone() -> None:
    result = CliRunner().invoke(command, ["init", "-"])
    parse_suite(result.stdout)
    assert result.stderr == ""


def test_the_schema_command_prints_the_schema() -> None:
    assert json.loads(CliRunner().invoke(command, ["schema"]).stdout) == suite_schema()
