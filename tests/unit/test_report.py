"""The report: one document with the same bytes each time, and a page that hostile text cannot change."""

from __future__ import annotations

import hashlib
import json
import random
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.canonical import canonical_json
from proctor.domain.decision import Decision, DecisionOutcome
from proctor.domain.evidence import Evidence, ProtocolEvidence, Verdict
from proctor.domain.manifest import ItemSet, VariantSet
from proctor.domain.trial import Arm
from proctor.scorer.page.html import render
from proctor.scorer.page.visible import visible
from proctor.scorer.report import document
from proctor.scorer.report.document import Report, RunFacts, excerpt, report_digest, to_json
from tests.report_samples import SampleAudit, approved, blocked, in_review, poisoned
from tests.scored_audits import AskedTrial, assemble, score

HOSTILE = {
    "script": "<script>window.ran = 1</script>",
    "closing script": "</script></style></title><script>window.ran = 1</script>",
    "attribute": '"><img src=x onerror="window.ran=1">',
    "single quote": "' onmouseover='window.ran=1' x='",
    "javascript url": "javascript:window.ran=1",
    "template": "{{ 7 * 7 }}{% raw %}${7*7}",
    "comment": "<!--",
    "cdata": "]]><svg onload=window.ran=1>",
    "entity": "&lt;script&gt;&#x3c;",
    "bidi": "\u202egnp.exe\u2066\u200f",
    "ansi": "\x1b[31m\x1b]8;;http://evil\x07",
    "zero width": "a\u200bb\ufeff\u2028\u2029\x00",
    "surrogate": "\ud83d",
}


def _small(**changes: Any) -> SampleAudit:
    return blocked(n_items=60, leaked=0.3, knows=0.5, **changes)


@pytest.fixture(scope="module")
def small() -> Report:
    return _small().report()


class _Tag(NamedTuple):
    name: str
    attributes: tuple[tuple[str, str], ...] = ()


class _Markup(HTMLParser):
    """The skeleton of a page: every tag with its attributes' names, and the values of those that can act."""

    ACTING = frozenset({"href", "src", "action", "style", "http-equiv", "content", "class", "srcdoc", "data"})

    def __init__(self) -> None:
        super().__init__()
        self.skeleton: list[_Tag] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = tuple((name, (value or "") if name in self.ACTING else "") for name, value in attrs)
        self.skeleton.append(_Tag(tag, kept))

    def handle_endtag(self, tag: str) -> None:
        self.skeleton.append(_Tag(f"/{tag}"))


def _skeleton(page: str) -> list[_Tag]:
    parser = _Markup()
    parser.feed(page)
    parser.close()
    return parser.skeleton


def test_the_same_audit_gives_the_same_bytes() -> None:
    assert to_json(_small().report()) == to_json(_small().report())
    assert render(_small().report()) == render(_small().report())


def test_neither_order_nor_latency_nor_audit_id_nor_a_warm_library_changes_a_byte(small: Report) -> None:
    audit = _small()
    shuffle = random.Random(3).shuffle
    shuffle(audit.asked)
    shuffle(audit.variants)
    shuffle(audit.rejections)
    asked = [
        AskedTrial(trial, completion and completion.model_copy(update={"latency_ms": 99.0, "endpoint": "grpc://b:1"}))
        for trial, completion in audit.asked
    ]
    result = score(audit.suite, audit.items, asked)
    other = assemble(
        audit.manifest.model_copy(update={"audit_id": "another-run"}),
        ItemSet(items=tuple(audit.items)),
        VariantSet(
            variants=tuple(audit.variants),
            rejections=tuple(audit.rejections),
            encoder=small.variants.encoder,
            from_library=len(audit.variants),
        ),
        [*result.answers, *result.answers[:20]],
        result.evidence,
        result.decision,
        versions={"proctor": "0.1.0"},
    )
    assert to_json(other) == to_json(small)


def test_the_document_is_canonical_json_and_its_digest_is_that_of_the_file(small: Report) -> None:
    data = to_json(small)
    assert canonical_json(json.loads(data)) == data
    assert report_digest(small) == "sha256:" + hashlib.sha256(data).hexdigest()
    assert report_digest(small) in render(small)


def test_the_document_can_be_read_back(small: Report) -> None:
    read = Report.model_validate_json(to_json(small))
    assert read == small
    assert to_json(read) == to_json(small)
    assert render(read) == render(small)


def test_the_run_is_shown_on_the_page_but_is_not_in_the_document(small: Report) -> None:
    run = RunFacts(audit_id="audit-8d1f0a", notes=("a shard was given up: <b>connection refused</b>",))
    page = render(small, run=run)
    assert "audit-8d1f0a" in page
    assert "&lt;b&gt;connection refused" in page
    assert b"audit-8d1f0a" not in to_json(small)
    assert b"latency" not in to_json(small)
    assert b"127.0.0.1" not in to_json(small)


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_in_every_field_changes_no_markup(small: Report, payload: str) -> None:
    run = RunFacts(audit_id="a", notes=("n",))
    hostile, harmless = (
        render(poisoned(small, text), run=poisoned(run, text)) for text in (payload, "~" * len(payload))
    )
    assert _skeleton(hostile) == _skeleton(harmless)
    assert not {c for c in hostile if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")} - {"\n", "\t"}
    hostile.encode("utf-8")


def test_the_page_holds_no_script_no_outside_reference_and_a_closed_policy(small: Report) -> None:
    skeleton = _skeleton(render(small))
    banned = {"script", "iframe", "object", "embed", "form", "img", "base", "audio", "video", "foreignobject"}
    assert not {tag.name for tag in skeleton} & banned
    attributes = [(tag.name, *attribute) for tag in skeleton for attribute in tag.attributes]
    assert not [attribute for _, attribute, _ in attributes if attribute.startswith("on")]
    assert {(tag, value) for tag, name, value in attributes if name in ("href", "src")} == {
        ("a", "#accuracy-by-arm"),
        ("link", "data:,"),
    }
    policy = next(value for _, name, value in attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_visible_text_has_no_hidden_character_and_keeps_the_others(text: str) -> None:
    shown = visible(text)
    hidden = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert not [c for c in shown if unicodedata.category(c) in hidden and c not in "\n\t"]
    assert visible(shown) == shown


def test_a_bidirectional_override_is_spelled_out() -> None:
    assert visible("abc\u202edef\x1b[0m") == "abc⟦U+202E⟧def⟦U+001B⟧[0m"
    assert visible("Größe 数 ✓\n\tline") == "Größe 数 ✓\n\tline"


def test_lone_surrogates_become_replacement_characters_in_the_document(small: Report) -> None:
    data = to_json(poisoned(small, "\ud83d"))
    assert "\N{REPLACEMENT CHARACTER}" in data.decode("utf-8")


def test_long_texts_are_cut_with_a_visible_mark() -> None:
    audit = _small()
    long = "y" * (document.MAX_TEXT_CHARACTERS + 1234)
    audit.asked = [
        AskedTrial(trial.model_copy(update={"prompt": long}), completion) for trial, completion in audit.asked
    ]
    report = audit.report()
    prompt = report.items[0].canonical.prompt
    assert len(prompt.text) == document.MAX_TEXT_CHARACTERS
    assert prompt.cut_characters == 1234
    assert "cut here: 1,234 more characters" in render(report)


@given(st.text(max_size=60), st.integers(min_value=0, max_value=40))
def test_an_excerpt_and_its_cut_make_up_the_text(text: str, limit: int) -> None:
    cut = excerpt(text, max_characters=limit)
    assert text.startswith(cut.text)
    assert len(cut.text) + cut.cut_characters == len(text)
    assert len(cut.text) <= limit


def test_at_most_fifty_items_and_ten_rewordings_an_item_are_shown_in_full() -> None:
    report = blocked(n_items=300, knows=0.2, leaked=0.5, n_variants=13).report()
    assert len(report.items) == document.MAX_ITEMS
    assert {len(item.rewordings) for item in report.items} == {document.MAX_REWORDINGS_PER_ITEM}
    assert {item.rewordings_not_shown for item in report.items} == {3}
    assert report.evidence.perturbation is not None
    assert len(report.evidence.perturbation.items) == 297
    page = render(report)
    assert "3 more rewordings not shown" in page
    assert len(to_json(report)) < 3_000_000


def test_items_are_in_the_order_of_the_evidence_with_their_own_answers(small: Report) -> None:
    found = small.evidence.perturbation
    assert found is not None
    assert [item.item_id for item in small.items] == [item.item_id for item in found.items[: len(small.items)]]
    for item in small.items:
        assert item.canonical_correct == (item.canonical.outcome == "correct")
        assert item.perturbed_correct == sum(rewording.outcome == "correct" for rewording in item.rewordings)


def test_every_trial_is_counted_once_by_what_became_of_it() -> None:
    audit = _small()
    broken = [trial for trial, _ in audit.asked if trial.arm is Arm.PERTURBED][:7]
    ids = {trial.trial_id: index for index, trial in enumerate(broken)}

    def broken_answer(row: AskedTrial) -> AskedTrial:
        index = ids.get(row.trial.trial_id)
        if index is None or row.completion is None:
            return row
        if index < 3:
            return AskedTrial(row.trial, None)
        return AskedTrial(row.trial, row.completion.model_copy(update={"error": "refused at 10:31", "text": ""}))

    audit.asked = [broken_answer(row) for row in audit.asked]
    report = audit.report()
    counts = report.counts
    assert (counts.dead_lettered, counts.failed) == (3, 4)
    assert counts.trials == counts.graded + counts.failed + counts.dead_lettered == len(audit.asked)
    assert counts.graded == counts.correct + counts.incorrect + counts.invalid
    assert b"refused at 10:31" not in to_json(report)
    assert "answers_missing" in {limit.code for limit in report.limits}


def test_items_left_out_are_listed_with_the_reason(small: Report) -> None:
    left = {item.item_id: item.reason for item in small.variants.items_left_out}
    assert set(left) == {"facts-0057", "facts-0058", "facts-0059"}
    assert left["facts-0058"] == "no rewording was admitted (answer_invariant)"
    assert small.counts.items_selected == small.counts.items_audited + len(left)


def test_what_the_audit_cannot_say_follows_its_conditions() -> None:
    clean = {limit.code for limit in approved().report().limits}
    doubtful = {limit.code for limit in in_review(changes={"decoding_config": {"temperature": 0.7}}).report().limits}
    always = {"clean_under_this_policy", "harder_rewording", "rewordings_known_too", "silent_memory"}
    assert always | {"exposure_not_audited", "noise_not_audited", "fresh_not_audited"} <= clean
    assert not clean & {"weights_not_proven", "too_few_items", "answers_drawn_at_random", "answers_missing"}
    assert {"weights_not_proven", "too_few_items", "answers_drawn_at_random"} | always <= doubtful


def test_an_endpoint_that_takes_no_decoding_settings_is_among_what_the_audit_cannot_say() -> None:
    case = approved()
    assert "decoding_not_sent" not in {limit.code for limit in case.report().limits}
    case.manifest = case.manifest.model_copy(update={"backend": "infer"})
    assert "decoding_not_sent" in {limit.code for limit in case.report().limits}


@pytest.mark.parametrize(
    ("make", "outcome", "word"),
    [
        (blocked, DecisionOutcome.BLOCK, "Blocked"),
        (approved, DecisionOutcome.APPROVE, "Approved"),
        (in_review, DecisionOutcome.REVIEW, "Needs review"),
    ],
)
def test_the_page_says_the_decision_in_a_word(
    make: Callable[[], SampleAudit], outcome: DecisionOutcome, word: str
) -> None:
    report = make().report()
    assert report.decision.outcome is outcome
    page = render(report)
    assert f"<span>{word}</span></h1>" in page
    assert f'<body class="{outcome}">' in page


def test_an_audit_without_perturbation_evidence_has_a_page_that_says_so(small: Report) -> None:
    evidence = Evidence(
        perturbation=None,
        protocol=ProtocolEvidence(verdict=Verdict.INVALID, reasons=("no answer came back",), arms=()),
        not_audited={"perturbation": "no rewording was admitted", "unheard_of": "it is new"},
    )
    report = small.model_copy(
        update={
            "evidence": evidence,
            "items": (),
            "decision": Decision(outcome=DecisionOutcome.REVIEW, reasons=()),
            "variants": small.variants.model_copy(
                update={"semantic_distance": None, "token_overlap": None, "edit_distance": None, "rejected": {}}
            ),
        }
    )
    page = render(report)
    assert "The wording of the benchmark was not audited" in page
    assert "No rewording was admitted." in page
    assert "unheard_of" in page
    assert "came without a reason" in page


def test_an_audit_in_which_nothing_could_be_paired_has_a_report() -> None:
    audit = _small()
    audit.asked = [AskedTrial(trial, None) for trial, _ in audit.asked]
    report = audit.report()
    assert report.decision.outcome is DecisionOutcome.REVIEW
    assert report.items == ()
    assert report.counts.dead_lettered == report.counts.trials == len(audit.asked)
    assert "Undefined for these answers" in render(report)


def test_the_articles_rule_is_labelled_by_whether_it_was_used() -> None:
    assert "not used in this decision" in render(_small().report())
    used = render(_small(changes={"scoring_config": {"method": "per_item_t_test"}}).report())
    assert "not used in this decision" not in used
    assert "it took part in the decision" in used


def test_plug_ins_stand_on_the_card_of_the_page_where_there_are_some(small: Report) -> None:
    card = small.card.model_copy(update={"plugins": {"strategy shout": "toy 1.2"}})
    assert "Plug-ins" not in render(small)
    page = render(small.model_copy(update={"card": card}))
    assert all(text in page for text in ("Plug-ins", "strategy shout", "toy 1.2"))
