"""Files of other tools and of people: benchmarks, logs, rewordings, variants, tables, calibrations."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from proctor.domain.errors import BadInputError
from proctor.domain.record.attestation import CHECKPOINT_PAYLOAD, checkpoint_bytes, envelope
from proctor.domain.shared_context import SHARED_CONTEXT
from proctor.domain.suite import DatasetSection
from proctor.formats.chat_templates import parse_chat_template
from proctor.formats.gate_calibration import gate_calibration_bytes, parse_gate_calibration
from proctor.formats.hub_tree import files_of_split, listed_file
from proctor.formats.items import load_items
from proctor.formats.logs.reading import read_log
from proctor.formats.record_export import entry_line, head_line, read_export
from proctor.formats.rewordings import parse_rewordings
from proctor.formats.router_table import read_router_table
from proctor.formats.variants_file import parse_variants
from proctor.studies.record.checks import attestation_of, check_export, trust_in
from tests.fuzz.target import Target, as_file
from tests.record_samples import a_key, a_log

_ROWS = (
    {"id": "a", "question": "How many apples are 3 and 4?", "choices": ["7", "8"], "answer": 0, "subject": "sums"},
    {"id": "b", "question": "Ünïcode? 👩‍💻", "choices": ["yes", "no"], "answer": "B", "subject": None},
)
_LM_EVAL = {
    "doc_id": 0, "doc": {"question": "Q", "answer": "#### 18"}, "target": "#### 18", "filter": "strict-match",
    "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {"max_gen_toks": 256, "until": ["Q:"]}}},
    "resps": [["It is 18"]], "filtered_resps": ["18"], "metrics": ["exact_match"], "exact_match": 1.0,
    "doc_hash": "0" * 64,
}  # fmt: skip
_EVAL_TRUST = {
    "meta": {"max_new_tokens": 768},
    "results": [{"id": "gsm8k-0", "correct": True, "gen_text": "#### 18", "expected": 18, "tokens": 20}],
}
_RESULTS = {
    "results": {"gsm8k": {}}, "configs": {"gsm8k": {"dataset_path": "a", "dataset_kwargs": {"revision": "r"}}},
    "versions": {"gsm8k": 3.0}, "n-shot": {"gsm8k": 5}, "lm_eval_version": "0.4.9", "chat_template": None,
    "config": {"model": "hf", "model_args": "pretrained=m,dtype=auto", "fewshot_seed": 1234},
}  # fmt: skip
_DETAILS = {
    "doc": {"query": "Q", "choices": ["18"], "gold_index": [0], "id": "1", "task_name": "gsm8k|0"},
    "model_response": {"input": "p", "text": ["18"], "output_tokens": [[1]], "truncated_tokens_count": 0},
    "metric": {"extractive_match": 1},
}  # fmt: skip


def _jsonl(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _parquet(*rows: dict[str, object]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), stream)
    return stream.getvalue()


def _feed_items(suffix: str) -> Callable[[bytes], None]:
    section = DatasetSection(
        benchmark_name="fuzzed", path=f"input{suffix}", id_field="id", cluster_field=SHARED_CONTEXT
    )
    named = section.model_copy(update={"cluster_field": "answer"})

    def feed(data: bytes) -> None:
        with as_file(data, suffix) as path:
            loaded = load_items(section, path.parent, path.parent)
            for item in load_items(named, path.parent, path.parent).items:
                assert item.cluster is None or (len(item.cluster) <= 64 and item.cluster.isprintable())
        assert len({item.item_id for item in loaded.items}) == len(loaded.items), "two items of one id"

    return feed


def _feed_log(data: bytes) -> None:
    with as_file(data, ".log") as path:
        for run in read_log(path):
            assert run.answers, "a run without an answer"
            assert run.card.fingerprint != run.card.protocol_digest, "a card without its digests"


def _feed_results(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "samples_gsm8k_2026-11-21T12-00-00.1.jsonl"
        samples.write_bytes(_jsonl(_LM_EVAL))
        samples.with_name("results_2026-11-21T12-00-00.1.json").write_bytes(data)
        for run in read_log(samples):
            assert run.card.fingerprint != run.card.protocol_digest, "a card without its digests"


@cache
def _reports() -> list[bytes]:
    from proctor.scorer.report.document import to_json
    from tests.report_samples import SampleAudit

    return [to_json(SampleAudit(n_items=8).report())]


@cache
def _inspect_logs() -> list[bytes]:
    """Logs as inspect_ai writes them."""
    from tests.unit.test_inspect_log import sample, written

    with tempfile.TemporaryDirectory() as folder:
        return [
            written(Path(folder), sample(1, {"match": "C"}), sample(2, {"match": "I"}), kind=kind).read_bytes()
            for kind in ("eval", "json")
        ]


def _feed_table(data: bytes) -> None:
    with as_file(data, ".csv") as path:
        assert read_router_table(path)


def _feed_variants(data: bytes) -> None:
    parsed = parse_variants(data, "fuzz")
    assert all(entry.item.item_id for entry in parsed.entries)


@cache
def _variants() -> list[bytes]:
    from tests.unit.variant_samples import exported

    return [exported()]


def _feed_record(data: bytes) -> None:
    """An export of the decision log, and every check of it: only the samples' own entries have a right signature."""
    with as_file(data, ".jsonl") as path:
        checked = check_export(path, trust_in([a_key().signer]))
        assert checked.signed <= len(list(read_export(path)[1]))


@cache
def _records() -> list[bytes]:
    checkpoint = checkpoint_bytes(1, a_log(1)[0].digest, "2026")
    head = head_line(envelope(CHECKPOINT_PAYLOAD, checkpoint, None), [])
    return [
        head + b"".join(entry_line(one, attestation_of(one), b"{}") for one in a_log(n, unsigned=[2])) for n in (1, 3)
    ]


def _feed_calibration(data: bytes) -> None:
    calibration = parse_gate_calibration(data, "fuzz")
    assert parse_gate_calibration(gate_calibration_bytes(calibration), "fuzz") == calibration


@cache
def _calibrations() -> list[bytes]:
    from tests.unit.test_gate_calibration import _calibrate, _pairs

    return [gate_calibration_bytes(_calibrate(_pairs()))]


def _feed_listing(data: bytes) -> None:
    """A page of the hub's listing: of what it names only plain paths are fetched, and under names of our own."""
    entries = json.loads(data)
    if not isinstance(entries, list):
        raise ValueError("no listing")
    files = [file for file in map(listed_file, entries) if file is not None]
    for file in files_of_split(files, DatasetSection(benchmark_name="b", hub_id="o/n", hub_revision="0" * 40)):
        assert file.path in {known.path for known in files}
        assert ".." not in file.path.split("/")
        assert not file.path.startswith("/")


def _listings() -> list[bytes]:
    entry = {"type": "file", "oid": "a" * 40, "size": 12, "path": "data/test-00000-of-00001.parquet"}
    large = {**entry, "path": "test.jsonl", "lfs": {"oid": "b" * 64, "size": 99, "pointerSize": 130}}
    return [json.dumps([entry, large, {"type": "directory", "oid": "c" * 40, "path": "data"}]).encode()]


TARGETS = (
    Target(
        "hub_listing",
        ("proctor.formats.hub_tree",),
        _feed_listing,
        _listings,
        (BadInputError, ValueError, RecursionError),
        words=(b'"path"', b'"lfs"', b'"size"', b"../", b"test/", b".parquet", b"\\u0000", b"-of-"),
    ),
    Target(
        "items_jsonl",
        ("proctor.formats.rows", "proctor.formats.items", "proctor.formats.fields"),
        _feed_items(".jsonl"),
        lambda: [_jsonl(*_ROWS), b'{"id": 1, "question": "Q", "answer": "1/2"}\n\n{"id": 2}\n'],
        (BadInputError,),
        words=(b'"id"', b'"question"', b'"choices"', b'"answer"', b'"metadata"'),
    ),
    Target(
        "items_csv",
        ("proctor.formats.rows", "proctor.formats.items", "proctor.formats.fields"),
        _feed_items(".csv"),
        lambda: [
            b'id,question,choices,answer\na,"How many, 3 or 4?","[""7"", ""8""]",A\n',
            b"\xef\xbb\xbfid,question,answer\r\n1,\"two\nlines\",18\r\n",
        ],
        (BadInputError,),
        words=(b'""', b"\r\n", b",,", b"id,", b"question", b"answer"),
    ),
    Target(
        "items_parquet",
        ("proctor.formats.rows", "proctor.formats.items", "proctor.formats.fields"),
        _feed_items(".parquet"),
        lambda: [_parquet(*_ROWS[:1])],
        (BadInputError,),
        words=(b"PAR1", b"SNAPPY"),
    ),
    Target(
        "logs_of_text",
        (
            "proctor.formats.logs.reading", "proctor.formats.logs.checks", "proctor.formats.logs.lm_eval",
            "proctor.formats.logs.eval_trust", "proctor.formats.logs.plain_csv",
        ),
        _feed_log,
        lambda: [
            _jsonl(_LM_EVAL, {**_LM_EVAL, "doc_id": 1}), json.dumps(_EVAL_TRUST, indent=1).encode(),
            b"id,correct,text,finish_reason,tokens,question\na,1,It is 7.,stop,12,What?\nb,0,,length,768,Why?\n",
        ],
        (BadInputError,),
        words=(b'"results"', b'"filter"', b'"resps"', b'"correct"', b"finish_reason", b'"exact_match"', b"NaN"),
    ),
    Target(
        "results_of_lm_eval",
        ("proctor.formats.logs.lm_eval_results", "proctor.formats.logs.recorded", "proctor.domain.recorded_card"),
        _feed_results,
        lambda: [json.dumps(_RESULTS, indent=2).encode()],
        (BadInputError,),
        words=(b'"lm_eval_version"', b'"configs"', b'"n-shot"', b'"versions"', b'"config"', b'"model_args"', b"null"),
    ),
    Target(
        "reports_as_logs",
        ("proctor.formats.logs.proctor_report", "proctor.domain.recorded_card"),
        _feed_log,
        _reports,
        (BadInputError,),
        words=(b'"card"', b'"fingerprint"', b'"perturbation"', b'"canonical_correct"', b"proctor-report/1"),
    ),
    Target(
        "logs_of_inspect",
        ("proctor.formats.logs.inspect_log",),
        _feed_log,
        _inspect_logs,
        (BadInputError,),
        words=(b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"header.json", b'"samples"', b'"scores"', b'"eval"'),
    ),
    Target(
        "logs_of_lighteval",
        ("proctor.formats.logs.lighteval_details",),
        _feed_log,
        lambda: [_parquet(_DETAILS)],
        (BadInputError,),
        words=(b"PAR1", b"metric", b"doc"),
    ),
    Target(
        "record_export",
        ("proctor.formats.record_export", "proctor.domain.record.chain", "proctor.studies.record.checks"),
        _feed_record,
        _records,
        (BadInputError,),
        words=(b'"entry"', b'"digest"', b'"signature"', b'"envelope"', b'"payload"', b'"keyid"', b"sha256:", b"null"),
    ),
    Target(
        "rewordings",
        ("proctor.formats.rewordings", "proctor.formats.rows"),
        lambda data: parse_rewordings(data, "fuzz"),
        lambda: [
            _jsonl({"item_id": "a", "question": "How many is 3 plus 4?"}, {"original": "Q", "rephrased": "Q?"}),
            _jsonl({"item_id": "a", "question": "Which?", "choices": ["8", "7"]}),
        ],
        (BadInputError,),
        words=(b'"item_id"', b'"question"', b'"choices"', b'"rephrased"'),
    ),
    Target(
        "variants",
        ("proctor.formats.variants_file", "proctor.formats.variant_lines"),
        _feed_variants,
        _variants,
        (BadInputError,),
        words=(b'"kind"', b'"variant"', b'"lines_digest"', b'"measurements"'),
    ),
    Target(
        "router_table",
        ("proctor.formats.router_table",),
        _feed_table,
        lambda: [
            b"model,router_count,n,clean_accuracy,noisy_accuracy,gain,improve,degrade\n"
            b"m,1,100,0.71,0.63,-0.08,8,16\nm,2,100,0.71,0.65,-0.06,6,12\n",
            b"model,router_count,n,clean_accuracy,noisy_accuracy,gain,improve,degrade,invalid\nm,1,10,70,80,10,1,0,0\n",
        ],
        (BadInputError,),
        words=(b"router_count", b"1e-3", b"100", b"0.710", b"NaN"),
    ),
    Target(
        "chat_template",
        ("proctor.formats.chat_templates",),
        lambda data: parse_chat_template(data, "fuzz"),
        lambda: [
            b'{"chat_template": "{{ messages[0].content }}", "eos_token": {"content": "</s>"}}',
            b'{"chat_template": [{"name": "default", "template": "{{ bos_token }}"}], "eos_token": "</s>"}',
            b"{% for message in messages %}{{ message['content'] }}{% endfor %}",
        ],
        (BadInputError,),
        words=(b'"chat_template"', b'"default"', b'"template"', b'"eos_token"', b'"content"'),
    ),
    Target(
        "gate_calibration",
        ("proctor.formats.gate_calibration",),
        _feed_calibration,
        _calibrations,
        (BadInputError,),
        words=(b'"max_semantic_distance"', b'"schema_version"', b"1e309"),
    ),
)  # fmt: skip
