"""`proctor audit plan` as a person runs it."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from proctor.domain.item import Item, Measurements, Variant
from proctor.evidence.planning.families import FAMILIES
from proctor.formats.items import load_items, select_items
from proctor.formats.suites import load_suite
from proctor.router.plan import plan_trials
from proctor.studies import plan
from tests.support import shared_data

Write = Callable[..., Path]
Plan = Callable[..., dict[str, Any]]

KEYS = {
    "suite", "items", "items_available", "family", "family_title", "family_reason", "rows", "families",
    "approval_chance", "items_for_90", "sequential", "budget", "warning", "conclusion", "notes", "scope", "scope_hint",
    "item_kinds", "known_exposure", "channels_warning", "benchmark_kind",
}  # fmt: skip
ROW_KEYS = {
    "variants", "own", "trials", "prompt_tokens", "output_tokens_at_most", "cost", "detectable_share",
    "approval_chance",
}  # fmt: skip
WORDINGS = {"perturbation_strategy": "wordings"}


@pytest.fixture
def suite_file(tmp_path: Path) -> Write:
    """Writes a suite whose dataset is `items` open questions, or what the sections say."""

    def write(*, items: int = 0, options: int = 0, **sections: Any) -> Path:
        if items:
            rows = [
                {"question": f"What is {i} and {i}?", "answer": f"{2 * i}"}
                | ({"choices": [f"{2 * i + k}" for k in range(options)]} if options else {})
                for i in range(items)
            ]
            (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        dataset = {"benchmark_name": "sums", "path": "items.jsonl"} | sections.pop("dataset_config", {})
        document = {
            "audit_suite_id": "sums-suite",
            "model_config": {"model_id": "m", "model_version": "sha256:a1b2c3d4e5f6", "endpoint": "local-triton"},
            "dataset_config": {key: value for key, value in dataset.items() if value is not None},
            **sections,
        }
        path = tmp_path / "suite.json"
        path.write_text(json.dumps(document))
        return path

    return write


@pytest.fixture
def planned(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Plans with few simulated audits, for tests that ask for no figure of theirs."""
    monkeypatch.setattr(plan, "plan_audit", functools.partial(plan.plan_audit, audits=400))
    return _planned(capsys)


@pytest.fixture
def planned_in_full(capsys: pytest.CaptureFixture[str]) -> Plan:
    return _planned(capsys)


def _planned(capsys: pytest.CaptureFixture[str]) -> Plan:
    def run(path: Path, *arguments: object) -> dict[str, Any]:
        assert main(["audit", "plan", str(path), *map(str, arguments), "--format", "json"]) == 0
        captured = capsys.readouterr()
        document: dict[str, Any] = json.loads(captured.out)
        assert set(document) == KEYS
        assert all(set(row) == ROW_KEYS for row in document["rows"])
        for caution in ("warning", "channels_warning"):
            assert (f"warning: {document[caution]}" in captured.err) is (document[caution] is not None)
        return document

    return run


def variant_like(item: Item) -> Variant:
    """A rewording as long as its item."""
    return Variant(
        item_id=item.item_id,
        item_hash=item.content_hash,
        strategy="imported",
        question=item.question,
        choices=item.choices,
        measurements=Measurements(semantic_distance=0.2, token_overlap=0.5, edit_distance=0.5),
    )


def test_trials_are_items_times_wordings_for_the_articles_volumes(suite_file: Write, planned: Plan) -> None:
    document = planned(suite_file(items=1000, dataset_config={"sample_size": 1000}))
    assert [row["variants"] for row in document["rows"]] == [2, 3, 4, 9]
    assert [row["trials"] for row in document["rows"]] == [3000, 4000, 5000, 10_000]
    assert [row["variants"] for row in document["rows"] if row["own"]] == [3]


def test_the_suites_own_number_of_variants_is_added_and_marked(suite_file: Write, planned: Plan) -> None:
    document = planned(suite_file(items=20, perturbation_config={"num_variants_per_item": 6}))
    assert [row["variants"] for row in document["rows"]] == [2, 3, 4, 6, 9]
    (own,) = (row for row in document["rows"] if row["own"])
    assert own["variants"] == 6
    assert own["approval_chance"] == document["approval_chance"]


def test_design_figures_hold_for_the_default_suite(suite_file: Write, planned_in_full: Plan) -> None:
    document = planned_in_full(suite_file(items=1000))
    assert document["family"] == "beta_1_1"
    assert document["approval_chance"] == pytest.approx(0.66, abs=0.01)
    assert document["items_for_90"] == pytest.approx(930, rel=0.05)
    (own,) = (row for row in document["rows"] if row["own"])
    assert own["detectable_share"] == pytest.approx(0.114, rel=0.04)
    assert "66 %" in document["warning"]
    assert "raise dataset_config.sample_size" in document["warning"]
    assert "below 80 % expect a review" in document["conclusion"]


def test_a_dataset_that_is_smaller_than_the_sample_counts_as_it_is(suite_file: Write, planned: Plan) -> None:
    document = planned(suite_file(items=40))
    assert (document["items"], document["items_available"]) == (40, 40)
    assert any("sample_size is 500" in note for note in document["notes"])
    assert "of which the benchmark has 40" in document["warning"]


def test_options_mean_guessers_with_their_chance(suite_file: Write, planned: Plan) -> None:
    document = planned(suite_file(items=600, options=5, dataset_config={"sample_size": 600}))
    assert document["family"] == "guessers"
    assert "0.2" in document["family_title"]
    assert document["warning"] is None
    assert document["approval_chance"] > 0.95
    by_suite = planned(suite_file(items=600, options=5, scoring_config={"guess_chance": 0.5}))
    assert "0.5" in by_suite["family_title"]
    assert by_suite["approval_chance"] < document["approval_chance"]


def test_a_family_can_be_named_and_every_family_has_its_chance(suite_file: Write, planned: Plan) -> None:
    document = planned(suite_file(items=500), "--family", "consistent")
    assert document["family"] == "consistent"
    assert document["warning"] is None
    assert [one["name"] for one in document["families"]] == list(FAMILIES)
    chances = {one["name"]: one["approval_chance"] for one in document["families"]}
    assert chances["consistent"] == document["approval_chance"]
    assert chances["together"] < chances["beta_1_1"] < chances["guessers"]


def test_tokens_are_those_of_the_prompts_that_are_sent_and_cost_follows(suite_file: Write, planned: Plan) -> None:
    path = suite_file(
        items=30,
        options=4,
        prompt_config={"few_shot": [{"question": "1 + 1?", "answer": "2"}]},
        decoding_config={"max_tokens": 7},
    )
    document = planned(path, "--price-per-million-input", 2, "--price-per-million-output", 10)
    suite = load_suite(path)
    items = select_items(load_items(suite.dataset, path.parent, path.parent).items, suite.dataset)
    variants = [variant_like(item) for item in items]
    sent = sum(len(trial.prompt.encode()) for trial in plan_trials(items, variants, suite.prompt)) / 2
    for row in document["rows"]:
        assert row["prompt_tokens"] == pytest.approx(sent * (1 + row["variants"]) / 4, abs=1)
        assert row["output_tokens_at_most"] == 7 * row["trials"]
        assert row["cost"] == pytest.approx((2 * row["prompt_tokens"] + 10 * row["output_tokens_at_most"]) / 1e6)
    assert "at a cost of" in document["conclusion"]


def test_without_prices_there_is_no_cost(suite_file: Write, planned: Plan) -> None:
    document = planned(suite_file(items=30))
    assert {row["cost"] for row in document["rows"]} == {None}
    assert "cost" not in document["conclusion"]


def test_the_benchmark_that_proctor_ships_is_planned(suite_file: Write, planned: Plan) -> None:
    document = planned(suite_file(dataset_config={"benchmark_name": "proctor-facts", "path": None}))
    assert document["family"] == "guessers"
    assert all(row["prompt_tokens"] > 0 for row in document["rows"])


def test_a_benchmark_that_is_elsewhere_is_planned_for_its_sample_size(suite_file: Write, planned: Plan) -> None:
    document = planned(suite_file(dataset_config={"benchmark_name": "mmlu", "path": None, "sample_size": 200}))
    assert (document["items"], document["items_available"]) == (200, None)
    assert {row["prompt_tokens"] for row in document["rows"]} == {None}
    assert "the items are not read: the suite says not where the items of mmlu are" in document["notes"][0]


def test_a_dataset_of_a_hub_that_is_away_is_planned_for_its_sample_size(
    suite_file: Write, planned: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    dataset = {"path": None, "hub_id": "org/data", "hub_revision": "0" * 40, "sample_size": 100}
    document = planned(suite_file(dataset_config=dataset))
    assert document["items"] == 100
    assert "cannot be fetched from the hub" in document["notes"][0]


def test_a_file_with_too_few_rewordings_is_noted(suite_file: Write, planned: Plan, tmp_path: Path) -> None:
    rewordings = [{"original": f"What is {i} and {i}?", "rephrased": f"Add {i} to {i}."} for i in range(30)]
    (tmp_path / "rewordings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rewordings))
    imported = {"perturbation_strategy": "imported", "rewordings_path": "rewordings.jsonl"}
    document = planned(suite_file(items=40, perturbation_config={**imported, "num_variants_per_item": 1}))
    assert any("fewer than 1 rewordings for 10 of the 40 items" in note for note in document["notes"])
    beside = {**imported, "perturbation_strategy": "imported+typo"}
    document = planned(suite_file(items=40, perturbation_config=beside))
    assert not any("rewordings for" in note for note in document["notes"])


def test_what_the_plan_supposes_is_noted(suite_file: Write, planned: Plan) -> None:
    scoring = {"required_channels": ["perturbation", "protocol", "exposure"], "method": "per_item_t_test"}
    document = planned(
        suite_file(items=20, scoring_config=scoring, perturbation_config={"paraphrase_model": "org/rewriter"})
    )
    said = " ".join(document["notes"])
    for part in ("before admission", "estimated", "clean: exposure", "article's rule", "paraphrasing model"):
        assert part in said


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            {"governance": {"profile": "strict"}},
            "governance.profile strict requires fresh, a channel that needs fresh_config",
        ),
        (
            {"scoring_config": {"required_channels": ["exposure"]}, "governance": {"profile": "strict"}},
            "scoring_config.required_channels requires exposure, a channel that needs exposure_config and "
            "governance.profile strict requires fresh",
        ),
    ],
)
def test_a_suite_that_requires_what_no_audit_runs_is_said_to_end_in_a_review(
    suite_file: Write, planned: Plan, sections: dict[str, Any], said: str
) -> None:
    document = planned(suite_file(items=400, options=4, **sections))
    assert document["warning"].startswith(said)
    assert document["warning"].endswith("every audit by this suite ends in a review")
    assert f"and approves no model: {document['warning']}." in document["conclusion"]


def test_fresh_items_are_counted_among_the_trials_and_their_tokens(
    suite_file: Write, planned: Plan, tmp_path: Path
) -> None:
    without = planned(suite_file(items=30))
    rows = [{"id": f"f{n}", "question": f"How many are {n} and {n} and {n}?", "answer": str(3 * n)} for n in range(25)]
    (tmp_path / "fresh.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = planned(suite_file(items=30, fresh_config={"path": "fresh.jsonl", "sample_size": 20}))
    for row, before in zip(asked["rows"], without["rows"], strict=True):
        assert row["trials"] == before["trials"] + 20
        assert row["prompt_tokens"] > before["prompt_tokens"]
    assert "20 fresh items are asked beside the benchmark" in " ".join(asked["notes"])


def test_the_training_data_are_said_with_their_size_and_a_pattern_that_matches_nothing_is_no_plan(
    suite_file: Write, planned: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sft").mkdir()
    for name in "ab":
        (tmp_path / "sft" / f"{name}.jsonl").write_text("x" * 1_000_000)
    section = {"corpora": {"tune": ["sft/*.jsonl"]}}
    notes = " ".join(planned(suite_file(items=30, exposure_config=section))["notes"])
    assert "searched by article_8gram_80 while the model answers: tune 2.0 MB in 2 files" in notes
    assert "about 1 min" in notes
    path = suite_file(items=30, exposure_config={"corpora": {"tune": ["dpo/*.jsonl"]}})
    capsys.readouterr()
    assert main(["audit", "plan", str(path)]) == 2
    assert "exposure_config.corpora.tune: 'dpo/*.jsonl' matches no file" in capsys.readouterr().err


def _control(folder: Path, n: int) -> dict[str, Any]:
    rows = [{"id": f"c{n}", "question": f"How many are {n} and {n} and {n}?", "answer": str(3 * n)} for n in range(n)]
    (folder / "control.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"control_config": {"path": "control.jsonl"}}


def test_control_items_are_counted_in_every_wording_and_their_noise_in_the_chances(
    suite_file: Write, planned: Plan, tmp_path: Path
) -> None:
    without = planned(suite_file(items=300))
    asked = planned(suite_file(items=300, **_control(tmp_path, 100)))
    for row, before in zip(asked["rows"], without["rows"], strict=True):
        assert row["trials"] == before["trials"] + 100 * (1 + row["variants"])
        assert row["prompt_tokens"] > before["prompt_tokens"]
        assert row["approval_chance"] < before["approval_chance"]
        assert row["detectable_share"] > before["detectable_share"]
    assert "100 control items are reworded and asked in both wordings" in " ".join(asked["notes"])
    assert "(300 items and 100 control items, 3 variants each)" in asked["conclusion"]
    assert "control items give 90 %" in asked["conclusion"]


def test_a_plan_with_too_few_control_items_says_that_it_can_only_review(
    suite_file: Write, planned: Plan, tmp_path: Path
) -> None:
    asked = planned(suite_file(items=300, **_control(tmp_path, 19)))
    assert {row["approval_chance"] for row in asked["rows"]} == {0.0}
    assert "fewer than 20 control items" in " ".join(asked["notes"])


def test_replicates_multiply_trials_tokens_and_cost_and_leave_the_chances(
    suite_file: Write, planned: Plan, tmp_path: Path
) -> None:
    once = planned(suite_file(items=60, **_control(tmp_path, 30), decoding_config={"temperature": 0.7}))
    often = planned(
        suite_file(items=60, **_control(tmp_path, 30), decoding_config={"temperature": 0.7, "replicates": 4})
    )
    for row, before in zip(often["rows"], once["rows"], strict=True):
        assert row["trials"] == 4 * before["trials"]
        assert row["prompt_tokens"] == pytest.approx(4 * before["prompt_tokens"], abs=4)
        assert row["output_tokens_at_most"] == 4 * before["output_tokens_at_most"]
        assert row["approval_chance"] == before["approval_chance"]
    assert "is asked 4 times, which trials, tokens and cost count" in " ".join(often["notes"])


def test_the_plan_says_what_an_approval_would_rest_on_and_how_the_items_look(
    suite_file: Write, planned: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sums = planned(suite_file(items=30))
    assert (sums["scope"], sums["item_kinds"]["computed"]) == ("wording", 30)
    facts = [{"question": f"Who rules the island {i}?", "answer": f"Queen {i}"} for i in range(30)]
    (tmp_path / "facts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in facts))
    path = suite_file(dataset_config={"path": "facts.jsonl"})
    assert planned(path)["item_kinds"] == {"options": 0, "short_fact": 30, "computed": 0, "other": 0}
    assert main(["audit", "plan", str(path)]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("scope: ")]
    assert "an approval would rest on wordings alone; by their form all 30 items look like short facts" in line
    assert "require fresh or exposure evidence" in line
    unread = planned(suite_file(dataset_config={"path": None}))
    assert unread["item_kinds"] is None
    assert "require fresh or exposure evidence" in unread["scope_hint"]


def test_short_facts_by_wordings_alone_are_warned_of_and_fresh_items_or_training_data_end_that(
    suite_file: Write, planned: Plan, tmp_path: Path
) -> None:
    facts = [{"question": f"Who rules the island {i}?", "answer": f"Queen {i}"} for i in range(30)]
    (tmp_path / "facts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in facts))
    fresh = [{"id": f"f{i}", "question": f"Who rules the isle of {i}?", "answer": f"King {i}"} for i in range(30)]
    (tmp_path / "fresh.jsonl").write_text("".join(json.dumps(row) + "\n" for row in fresh))
    asked = {"dataset_config": {"path": "facts.jsonl"}, "fresh_config": {"path": "fresh.jsonl"}}
    alone = planned(suite_file(**asked))
    assert alone["benchmark_kind"] == "facts"
    assert "relies on perturbation alone" in alone["channels_warning"]
    assert "docs/study.md" in alone["channels_warning"]
    beside = planned(suite_file(**asked, scoring_config={"required_channels": ["fresh"]}))
    assert (beside["channels_warning"], beside["scope"]) == (None, "wording+fresh")
    assert beside["scope_hint"].endswith("The suite requires fresh, which reaches further")
    assert planned(suite_file(items=30, options=4))["channels_warning"] is None
    assert planned(suite_file(items=30))["channels_warning"] is None


def test_a_model_that_merely_guesses_is_not_reckoned_to_be_approved(suite_file: Write, planned: Plan) -> None:
    of_two = planned(suite_file(items=2_000, options=2, dataset_config={"sample_size": 2_000}))
    chances = {row["name"]: row["approval_chance"] for row in of_two["families"]}
    assert chances["beta_1_1"] < 0.05, "half of its answers are right, as a coin's are"
    assert chances["beta_2_1"] > 0.5


def test_limits_without_room_are_said_to_have_none(suite_file: Write, planned: Plan) -> None:
    document = planned(suite_file(items=20, scoring_config={"max_allowed_contaminated_items_pct": 0.0}))
    assert document["items_for_90"] is None
    assert "however many items are asked" in document["warning"]


def test_the_same_suite_has_the_same_plan(suite_file: Write, planned: Plan) -> None:
    path = suite_file(items=100)
    assert planned(path) == planned(path)


def test_gsm8k_is_planned_with_its_real_prompts(suite_file: Write, planned: Plan) -> None:
    test = shared_data() / "gsm8k" / "test.jsonl"
    document = planned(suite_file(dataset_config={"benchmark_name": "gsm8k", "path": str(test)}))
    assert (document["items"], document["items_available"]) == (500, 1319)
    (own,) = (row for row in document["rows"] if row["own"])
    # A GSM8K question is some 46 words, and its prompt some 60 tokens.
    assert 50 < own["prompt_tokens"] / own["trials"] < 75


def test_the_table_names_the_family_and_ends_with_the_conclusion(
    suite_file: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "plan", str(suite_file(items=100))]) == 0
    captured = capsys.readouterr()
    assert "Family assumed: beta_1_1, because" in captured.out
    meaning = "A family is a kind of simulated model"
    assert captured.out.index("amily") < captured.out.index(meaning) < captured.out.index("leaked share found")
    assert captured.out.count(meaning) == 1
    assert "3 *" in captured.out
    assert captured.out.rstrip().splitlines()[-1].startswith("With 400 trials (100 items, 3 variants each)")
    assert "warning: a clean model is approved with a chance of" in captured.err


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--family", "saints"], "there are: consistent, guessers"),
        (["--price-per-million-input", "1"], "needs both"),
        (["--price-per-million-input", "1", "--price-per-million-output", "nan"], "nan is no price"),
        (["--price-per-million-input", "-1", "--price-per-million-output", "1"], "-1 is no price"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(
    suite_file: Write, arguments: list[str], why: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = suite_file(items=10)
    assert main(["audit", "plan", str(path), *arguments, "--format", form]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.count("\n") == 1
    assert why in captured.err


@pytest.mark.parametrize(
    ("sections", "why"),
    [
        ({"scoring_config": {"significance_alpha": 3}}, "significance_alpha: 3 is out of range"),
        ({"dataset_config": {"path": "nowhere.jsonl"}}, "nowhere.jsonl cannot be read"),
        (
            {"perturbation_config": {"rewordings_path": "none.jsonl", "perturbation_strategy": "imported"}},
            "none.jsonl cannot be read",
        ),
    ],
)
def test_a_suite_or_file_that_cannot_be_used_exits_with_2(
    suite_file: Write, sections: dict[str, Any], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "plan", str(suite_file(items=5, **sections))]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert why in captured.err


def test_a_suite_that_is_not_there_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "plan", str(tmp_path / "none.json")]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert "none.json cannot be read" in captured.err


def test_help_names_every_family_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys; from proctor.cli.main import main; main(sys.argv[1:]); print('numpy' in sys.modules)"
    command = [sys.executable, "-c", code, "audit", "plan", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert f"The families: {', '.join(FAMILIES)}." in said
    assert done.stdout.rstrip().endswith("False")


def test_a_plan_within_its_budget_shows_the_ceilings_and_warns_of_none(
    suite_file: Write, planned: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = suite_file(items=20, budget_config={"max_trials": 200}, perturbation_config=WORDINGS)
    assert planned(suite)["budget"] == {"max_trials": 200, "max_tokens": None, "max_cost": None, "over": None}
    assert main(["audit", "plan", str(suite)]) == 0
    captured = capsys.readouterr()
    assert "Budget: at most 200 trials; the audit comes to 80 trials of all models." in captured.out
    assert "budget_config" not in captured.err


@pytest.mark.parametrize(
    ("budget", "over"),
    [
        ({"max_trials": 79}, "the audit comes to 80 trials, above max_trials 79"),
        ({"max_tokens": 100}, "tokens, above max_tokens 100"),
        ({"max_cost": 0.5}, "above max_cost 0.50"),
    ],
)
def test_a_plan_that_passes_its_budget_says_which_ceiling_and_the_mend(
    suite_file: Write, planned: Plan, budget: dict[str, Any], over: str
) -> None:
    prices = "--price-per-million-input", 100, "--price-per-million-output", 100
    document = planned(suite_file(items=20, budget_config=budget, perturbation_config=WORDINGS), *prices)
    assert over in document["budget"]["over"]
    assert "raise budget_config, or ask fewer items" in document["budget"]["over"]


def test_what_the_rewording_model_is_asked_counts_towards_the_budget(suite_file: Write, planned: Plan) -> None:
    asks = {"perturbation_strategy": "paraphrase_llm", "paraphrase_model": "org/rewriter"}
    document = planned(suite_file(items=20, budget_config={"max_trials": 80}, perturbation_config=asks))
    assert "the audit comes to 140 trials" in document["budget"]["over"]


def test_the_operator_s_prices_count_where_none_are_given(
    suite_file: Write, planned: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {"local-triton": {"url": "grpc://a", "input_price_per_million": 0, "output_price_per_million": 10}}
    monkeypatch.setenv("PROCTOR_ENDPOINTS", json.dumps(listed))
    (own,) = (row for row in planned(suite_file(items=20))["rows"] if row["own"])
    assert own["cost"] == pytest.approx(own["output_tokens_at_most"] * 10 / 1e6)
