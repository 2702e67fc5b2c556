"""`proctor variants` as a person runs it, with the real encoder and record store."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from proctor.cli.variants import building as variants_building
from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import EncoderError
from proctor.perturbation.encoder import ResolvedEncoder, SentenceEncoder, resolve_encoder
from proctor.perturbation.library.fidelity import CleanModel, measure_fidelity, record_fidelity
from proctor.runtime.records.store import Records
from tests.support import REPOSITORY, missing
from tests.unit.samples import paired
from tests.unit.variant_samples import lines_of, resealed

# torch and transformers warn about themselves on import.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")

Proctor = Callable[..., "Answer"]

QUESTIONS = {
    "How many apples does Mia have if she buys 3 and then 4 more?": (
        "Mia buys 3 apples and later 4 more apples. What is the total number of her apples?",
        "If Mia gets 3 apples and then another 4, how many apples does she have?",
    ),
    "A train goes 60 miles in 2 hours. How many miles per hour is that?": (
        "In 2 hours a train covers 60 miles. What is its speed in miles per hour?",
        "A train goes 80 miles in 2 hours. How many miles per hour is that now?",
    ),
    "Tom reads 10 pages a day. How many pages does he read in 5 days?": (
        "Every day Tom reads 10 pages. What number of pages does he read within 5 days?",
    ),
    "\x1b[h A hostile \u202equestion: what is 5 plus 6?": (
        "\x1b]l;title\x07 please add 5 and 6. What is the\x9bm sum?",
    ),
}


class Answer:
    """What a command came to."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document


@pytest.fixture(scope="module", autouse=True)
def encoder() -> ResolvedEncoder:
    """Every command makes an encoder of its own; loading one tells whether it can."""
    try:
        found = resolve_encoder(None)
        found.encode(["warm up"])
    except EncoderError as error:
        missing(str(error))
    return found


@pytest.fixture(autouse=True)
def shared_model(encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the model once for all commands of these tests."""
    load = SentenceEncoder.load

    def once(self: SentenceEncoder) -> Any:
        if self.fingerprint == encoder.fingerprint:
            self._model = encoder._model
        return load(self)

    monkeypatch.setattr(SentenceEncoder, "load", once)


@pytest.fixture
def proctor(capfd: pytest.CaptureFixture[str]) -> Proctor:
    """Runs `proctor variants` with these arguments."""

    def run(*arguments: object) -> Answer:
        code = main(["variants", *map(str, arguments)])
        captured = capfd.readouterr()
        return Answer(code, captured.out, captured.err)

    return run


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return _write_suite(tmp_path)


def _write_suite(folder: Path, **perturbation: Any) -> Path:
    answers = ("7", "30", "50", "11")
    items = [{"question": question, "answer": answer} for question, answer in zip(QUESTIONS, answers, strict=True)]
    rewordings = [
        {"index": index, "question": text} for index, texts in enumerate(QUESTIONS.values()) for text in texts
    ]
    for name, rows in (("items.jsonl", items), ("rewordings.jsonl", rewordings)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    document = {
        "audit_suite_id": "sums-suite",
        "model_config": {"model_id": "m", "model_version": "sha256:a1b2c3d4e5f6", "endpoint": "local-triton"},
        "dataset_config": {"benchmark_name": "sums", "path": "items.jsonl", "sample_size": 4, "selection": "first"},
        "perturbation_config": {
            "perturbation_strategy": "imported", "rewordings_path": "rewordings.jsonl", "num_variants_per_item": 2,
            "min_semantic_distance": 0.0, "max_semantic_distance": 0.9, **perturbation,
        },
    }  # fmt: skip
    path = folder / "suite.json"
    path.write_text(json.dumps(document))
    return path


def _home(folder: Path, name: str = "home") -> tuple[str, Path]:
    return "--home", folder / name


def test_a_second_build_comes_from_the_library_and_loads_no_encoder(
    proctor: Proctor, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = proctor("build", suite, *_home(tmp_path), "--format", "json").document
    assert (first["items"], first["items_with_variants"], first["variants"]) == (4, 4, 5)
    assert first["rejected"] == {"numerals": 1}
    assert first["short"] == ["sums-00001", "sums-00002", "sums-00003"]
    assert (first["encoder_loaded"], first["items_from_library"]) == (True, 0)

    def never(self: SentenceEncoder) -> None:
        raise AssertionError("the encoder was loaded")

    monkeypatch.setattr(SentenceEncoder, "load", never)
    second = proctor("build", suite, *_home(tmp_path), "--format", "json").document
    assert (second["encoder_loaded"], second["items_from_library"], second["variants_from_library"]) == (False, 4, 5)
    same = ("items", "variants", "rejected", "short", "without", "encoder")
    assert {key: second[key] for key in same} == {key: first[key] for key in same}
    assert second["conclusion"].endswith("all of it from the library, and no text was embedded.")


def test_the_table_gives_the_yield_by_reason(proctor: Proctor, suite: Path, tmp_path: Path) -> None:
    done = proctor("build", suite, *_home(tmp_path))
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert ["admitted", "5", "83.3", "%"] in lines
    assert ["rejected:", "numerals", "1", "16.7", "%"] in lines
    assert "4 of 4 items (100.0 %) have a variant, 5 variants in all" in done.out


def test_a_build_that_starves_ends_with_two_says_the_mend_and_keeps_what_it_made(
    proctor: Proctor, tmp_path: Path
) -> None:
    suite = _write_suite(tmp_path, min_semantic_distance=0.8)
    done = proctor("build", suite, *_home(tmp_path), "--format", "json")
    assert (done.code, done.out) == (2, "")
    assert "0 of 4 items got a variant from 'imported'" in done.err
    assert "too_close" in done.err
    shown = proctor("show", suite, *_home(tmp_path), "--format", "json").document
    assert (shown["items_in_library"], shown["variants"]) == (4, 0)
    assert shown["rejected"]["too_close"] == 5


def test_a_long_build_says_how_far_it_has_come_on_standard_error(
    proctor: Proctor, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variants_building, "_QUIET_S", -1.0)
    monkeypatch.setattr(variants_building, "_BATCH_ITEMS", 2)
    done = proctor("build", suite, *_home(tmp_path), "--format", "json")
    assert done.document["variants"] == 5
    assert done.err.splitlines() == [
        "2 of 4 items, 3 admitted, rejected: 1 numerals",
        "4 of 4 items, 5 admitted, rejected: 1 numerals",
    ]


def test_an_item_is_shown_with_its_variants_measurements_and_origin(
    proctor: Proctor, suite: Path, tmp_path: Path
) -> None:
    assert not proctor("show", suite, "sums-00001", *_home(tmp_path), "--format", "json").document["in_library"]
    proctor("build", suite, *_home(tmp_path))
    item = proctor("show", suite, "sums-00001", *_home(tmp_path), "--format", "json").document
    (variant,) = item["variants"]
    assert variant["question"].startswith("In 2 hours")
    assert 0 < variant["measurements"]["semantic_distance"] < 0.9
    assert variant["provenance"] == {"imported": {"line": 3}}
    assert [one["reason"] for one in item["rejections"]] == ["numerals"]
    assert item["origin"]["source"] == "build"
    table = proctor("show", suite, "sums-00001", *_home(tmp_path)).out
    for text in (variant["question"], variant["variant_id"], "semantic distance 0.", item["key"], "Built by Proctor"):
        assert text in table


def test_hostile_questions_do_not_act_on_the_terminal(proctor: Proctor, suite: Path, tmp_path: Path) -> None:
    proctor("build", suite, *_home(tmp_path))
    shown = proctor("show", suite, "sums-00003", *_home(tmp_path))
    assert "A hostile question: what is 5 plus 6?" in shown.out
    assert "please add 5 and 6." in shown.out
    assert not set("\x1b\x07\x9b\u202e") & set(shown.out)
    assert proctor("show", suite, "sums-00003", *_home(tmp_path), "--format", "json").out.isascii()


def test_an_item_that_is_not_asked_is_refused_with_those_called_alike(
    proctor: Proctor, suite: Path, tmp_path: Path
) -> None:
    done = proctor("show", suite, "sum-00001\x1b[2J", *_home(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert "is none of the 4 items that this suite asks; did you mean 'sums-0000" in done.err
    assert "\x1b" not in done.err


def test_a_suite_is_shown_with_its_counts_spreads_and_fidelity(proctor: Proctor, suite: Path, tmp_path: Path) -> None:
    before = proctor("show", suite, *_home(tmp_path), "--format", "json").document
    assert (before["items_in_library"], before["origins"], before["fidelity"]) == (0, [], [])
    assert "4 were never built: run `proctor variants build`" in before["conclusion"]
    proctor("build", suite, *_home(tmp_path))
    clean = CleanModel("clean-model", "sha256:" + "c" * 64, "made for this test")
    answers = paired([1, 1, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1])
    cost = measure_fidelity(answers, strategy="imported", benchmark="sums", variants="sha256:v", model=clean)
    with closing(Records(f"sqlite:///{tmp_path / 'home' / 'records.sqlite'}")) as records:
        assert record_fidelity(records, cost)
        assert not record_fidelity(records, cost)
    after = proctor("show", suite, *_home(tmp_path), "--format", "json").document
    assert (after["items_in_library"], after["variants"], after["rejected"]) == (4, 5, {"numerals": 1})
    assert after["fidelity"][0]["cost"]["value"] == 25.0
    assert [(origin["source"], origin["items"]) for origin in after["origins"]] == [("build", 4)]
    spread = after["measurements"]["semantic_distance"]
    assert 0 <= spread["low"] <= spread["median"] <= spread["high"] <= 0.9
    table = proctor("show", suite, *_home(tmp_path)).out
    assert "rewording cost the clean model clean-model +25.0 [" in table


def test_an_export_is_the_same_bytes_from_another_library_and_says_its_digest(
    proctor: Proctor, suite: Path, tmp_path: Path
) -> None:
    files = []
    for name in ("one", "two"):
        proctor("build", suite, *_home(tmp_path, name))
        file = tmp_path / f"{name}.jsonl"
        done = proctor("export", suite, file, *_home(tmp_path, name), "--format", "json").document
        assert (done["items"], done["variants"], done["rejections"], done["items_missing"]) == (4, 5, None, 0)
        assert done["digest"] == bytes_digest(file.read_bytes())
        files.append(file.read_bytes())
    assert files[0] == files[1]
    header = lines_of(files[0])[0]
    assert (header["schema"], header["suite"], header["benchmark"]) == ("proctor-variants/1", "sums-suite", "sums")


def test_an_import_makes_another_homes_build_unnecessary(
    proctor: Proctor, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proctor("build", suite, *_home(tmp_path))
    file = tmp_path / "v.jsonl"
    digest = proctor("export", suite, file, *_home(tmp_path), "--with-rejections", "--format", "json").document[
        "digest"
    ]
    monkeypatch.setattr(SentenceEncoder, "load", None)
    done = proctor("import", file, *_home(tmp_path, "other"), "--pin", digest[:19], "--format", "json").document
    assert (done["items"], done["new"], done["variants"], done["rejected"]) == (4, 4, 5, {})
    assert proctor("import", file, *_home(tmp_path, "other"), "--format", "json").document["new"] == 0
    built = proctor("build", suite, *_home(tmp_path, "other"), "--format", "json").document
    assert (built["items_from_library"], built["encoder_loaded"]) == (4, False)
    shown = proctor("show", suite, *_home(tmp_path, "other"))
    assert f"Imported from {digest[:19]} by Proctor" in shown.out
    compared = proctor("diff", file, suite, *_home(tmp_path, "other"), "--format", "json")
    assert (compared.code, compared.document["equal"], compared.document["variants_same"]) == (0, True, 5)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--pin", "sha256:" + "0" * 64), "it is not the file that was pinned"),
        (("--pin", "latest"), "--pin 'latest' is no digest"),
    ],
)
def test_a_file_that_is_not_the_pinned_one_is_refused(
    proctor: Proctor, suite: Path, tmp_path: Path, arguments: tuple[str, str], fault: str
) -> None:
    proctor("build", suite, *_home(tmp_path))
    proctor("export", suite, tmp_path / "v.jsonl", *_home(tmp_path))
    done = proctor("import", tmp_path / "v.jsonl", *_home(tmp_path, "other"), *arguments)
    assert (done.code, done.out) == (2, "")
    assert fault in done.err


def test_distances_of_another_encoder_are_refused_unless_they_are_measured_again(
    proctor: Proctor, suite: Path, tmp_path: Path
) -> None:
    proctor("build", suite, *_home(tmp_path))
    file = tmp_path / "v.jsonl"
    proctor("export", suite, file, *_home(tmp_path))
    file.write_bytes(resealed(lines_of(file.read_bytes()), encoder_fingerprint="sha256:" + "9" * 64, encoder="theirs"))
    refused = proctor("import", file, *_home(tmp_path, "other"))
    assert (refused.code, refused.out) == (2, "")
    assert "the encoder 'theirs'" in refused.err
    assert "or give --remeasure" in refused.err
    done = proctor("import", file, *_home(tmp_path, "other"), "--remeasure", "--format", "json").document
    assert (done["items"], done["new"], done["variants"]) == (4, 4, 5)
    assert proctor("diff", file, suite, *_home(tmp_path, "other"), "--format", "json").document["equal"]


def test_a_comparison_names_what_differs_and_exits_with_zero(proctor: Proctor, suite: Path, tmp_path: Path) -> None:
    proctor("build", suite, *_home(tmp_path))
    ours, theirs = tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    proctor("export", suite, ours, *_home(tmp_path))
    suite = _write_suite(tmp_path, num_variants_per_item=1)
    proctor("build", suite, *_home(tmp_path))
    proctor("export", suite, theirs, *_home(tmp_path))
    done = proctor("diff", ours, theirs, *_home(tmp_path))
    assert done.code == 0
    assert "variants only in A             1       sums-00000" in done.out
    assert "num_variants_per_item  2" in done.out


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("export", "{suite}", "{tmp}/out.jsonl"), "run `proctor variants build"),
        (("diff", "{suite}", "{suite}"), "run `proctor variants build"),
        (("import", "{tmp}/absent.jsonl"), "cannot be read: No such file"),
        (("import", "{suite}"), "no export of variants"),
        (("diff", "{tmp}/items.jsonl", "{suite}"), "items.jsonl"),
        (("build", "{tmp}/absent.json"), "cannot be read"),
        (("export", "{suite}", "{tmp}/items.jsonl"), "exists already"),
        (("export", "{suite}", "{tmp}/items.jsonl/x.jsonl", "--force"), "run `proctor variants build"),
    ],
)
def test_a_mistake_is_one_clear_error(
    proctor: Proctor, suite: Path, tmp_path: Path, arguments: tuple[str, ...], fault: str
) -> None:
    done = proctor(*(one.format(suite=suite, tmp=tmp_path) for one in arguments), *_home(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert fault in done.err
    assert "Traceback" not in done.err


def test_help_teaches_every_command_and_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from proctor.cli.main import main\n"
        "for command in ([], ['build'], ['show'], ['diff'], ['export'], ['import']):\n"
        "    main(['variants', *command, '--help'])\n"
        "print(sorted({'torch', 'scipy', 'numpy', 'sqlalchemy', 'celery'} & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(REPOSITORY / "services"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
    assert done.stdout.count("proctor variants") >= 10
