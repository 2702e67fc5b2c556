"""The perturbation service on real parts: MiniLM, SQLite, the artifact store."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from proctor.domain.canonical import canonical_json
from proctor.domain.errors import BadInputError, EncoderError
from proctor.domain.item import Item
from proctor.domain.manifest import ItemSet, VariantSet
from proctor.domain.messages import BuildVariants
from proctor.domain.suite import DatasetSection, PerturbationSection
from proctor.formats.items import load_items
from proctor.formats.rewordings import match_rewordings, parse_rewordings
from proctor.perturbation.encoder import ResolvedEncoder, SentenceEncoder, Vectors, distances, resolve_encoder
from proctor.perturbation.engine import build
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.strategies.compose import Chain
from proctor.perturbation.strategies.imported import Imported
from proctor.perturbation.strategies.option_shuffle import OptionShuffle
from proctor.perturbation.strategies.wordings import Wordings, WordingsData
from proctor.perturbation.tasks import variants_for
from proctor.runtime.artifacts.chunks import put_items
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import put_model
from proctor.runtime.packaged_encoder import PACKAGED_DIGEST
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from tests.stored_variants import get_variants
from tests.support import REPOSITORY, missing, shared_data

# torch and transformers warn about themselves on import.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")

TEMPLATES = (
    "What is the capital of {entity}?",
    "Name the city that serves as {entity}'s capital.",
    "Which city would an atlas mark as the capital of {entity}?",
    "If someone lives in the capital of {entity}, where is their home?",
    "A tourist wants to see the capital of {entity}; which city should she visit?",
)
WORDINGS = WordingsData("1.0.0", "sha256:test", {"capital": TEMPLATES})
SECTION = PerturbationSection(
    perturbation_strategy="wordings+option_shuffle", min_semantic_distance=0.02, max_semantic_distance=0.6
)


class CountingEncoder:
    """A real encoder that counts what it is asked to embed."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder
        self.name, self.digest, self.fingerprint = encoder.name, encoder.digest, encoder.fingerprint
        self.texts: Counter[str] = Counter()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed, and count."""
        self.texts.update(texts)
        return self._encoder.encode(texts)


@pytest.fixture(scope="module")
def minilm() -> ResolvedEncoder:
    try:
        encoder = resolve_encoder(None)
        encoder.encode(["warm up"])
    except EncoderError as error:
        missing(str(error))
    return encoder


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(f"sqlite:///{tmp_path / 'records.sqlite'}")


def _items(count: int = 12) -> list[Item]:
    names = ("Krav", "Dulo", "Sentz", "Mavo")
    return [
        Item(
            item_id=f"capital-{n}",
            question=TEMPLATES[n % len(TEMPLATES)].format(entity=f"{names[n % 4]}{'abcdefghijkl'[n % 12]}"),
            choices=("Bri", "Tor", "Ela", "Wen", "Zuf"),
            target="Ela",
            dimension="capital",
            metadata={"entity": f"{names[n % 4]}{'abcdefghijkl'[n % 12]}"},
        )
        for n in range(count)
    ]


def _chain() -> Chain:
    return Chain([Wordings(WORDINGS), OptionShuffle()])


def _build(
    items: Sequence[Item], records: Records, encoder: CountingEncoder, section: PerturbationSection
) -> VariantSet:
    return build(items, section, chain=_chain(), encoder=encoder, library=VariantLibrary(records))


def test_a_second_build_embeds_nothing_and_is_the_same(minilm: SentenceEncoder, records: Records) -> None:
    first, second = CountingEncoder(minilm), CountingEncoder(minilm)
    made = _build(_items(), records, first, SECTION)
    again = _build(_items(), records, second, SECTION)
    assert Counter(variant.item_id for variant in made.variants) == {item.item_id: 3 for item in _items()}
    assert set(first.texts.values()) == {1}
    assert not second.texts
    assert (made.from_library, again.from_library) == (0, 36)
    same = {"from_library": 0}
    assert canonical_json(again.model_copy(update=same).plain()) == canonical_json(made.plain())
    assert made.encoder == f"all-MiniLM-L6-v2@{PACKAGED_DIGEST}"


def test_the_same_seed_gives_the_same_bytes_in_another_library(
    minilm: SentenceEncoder, records: Records, tmp_path: Path
) -> None:
    other = Records(f"sqlite:///{tmp_path / 'other.sqlite'}")
    sets = [_build(_items(), store, CountingEncoder(minilm), SECTION) for store in (records, other)]
    assert canonical_json(sets[0].plain()) == canonical_json(sets[1].plain())
    reseeded = _build(_items(), records, CountingEncoder(minilm), SECTION.model_copy(update={"seed": 1}))
    assert reseeded.variants != sets[0].variants


def test_a_new_item_is_made_beside_those_of_the_library(minilm: SentenceEncoder, records: Records) -> None:
    encoder = CountingEncoder(minilm)
    _build(_items(4), records, encoder, SECTION)
    before = encoder.texts.total()
    grown = _build(_items(5), records, encoder, SECTION)
    assert grown.from_library == 12
    assert 2 <= encoder.texts.total() - before <= 6
    assert [variant.item_id for variant in grown.variants[::3]] == [item.item_id for item in _items(5)]


def test_equal_problems_share_their_variants_under_their_own_names(minilm: SentenceEncoder, records: Records) -> None:
    item = _items(1)[0]
    twin = item.model_copy(update={"item_id": "twin"})
    made = _build([item, twin], records, CountingEncoder(minilm), SECTION)
    assert [variant.item_id for variant in made.variants] == [item.item_id] * 3 + ["twin"] * 3


def test_every_variant_lies_in_the_window_and_changes_question_and_options(
    minilm: SentenceEncoder, records: Records
) -> None:
    section = SECTION.model_copy(update={"min_semantic_distance": 0.15, "max_semantic_distance": 0.3})
    made = _build(_items(), records, CountingEncoder(minilm), section)
    items = {item.item_id: item for item in _items()}
    for variant in made.variants:
        item = items[variant.item_id]
        assert 0.15 <= variant.measurements.semantic_distance <= 0.3
        assert variant.question != item.question
        assert variant.choices != item.choices
        assert sorted(variant.choices) == sorted(item.choices)
    assert {rejection.reason for rejection in made.rejections} <= {"too_close", "too_far"}
    served = {variant.item_id for variant in made.variants} | {rejection.item_id for rejection in made.rejections}
    assert served == items.keys()


def test_further_candidates_are_tried_where_some_are_turned_away(minilm: SentenceEncoder, records: Records) -> None:
    section = SECTION.model_copy(update={"num_variants_per_item": 1, "min_semantic_distance": 0.2})
    made = _build(_items(), records, CountingEncoder(minilm), section)
    turned_away = {rejection.item_id for rejection in made.rejections}
    assert turned_away & {variant.item_id for variant in made.variants}


def test_the_articles_window_starves_gsm8k_and_the_message_names_a_better_one(
    minilm: SentenceEncoder, records: Records
) -> None:
    data = shared_data() / "gsm8k"
    items = load_items(DatasetSection(benchmark_name="gsm8k", path="test.jsonl"), data, data).items[:30]
    rows = parse_rewordings((data / "rephrased.jsonl").read_bytes(), "rephrased.jsonl")
    matched = match_rewordings(rows, items, "gsm8k")
    assert (len(matched.by_item), len(matched.unmatched)) == (30, 1289)
    section = PerturbationSection(perturbation_strategy="imported", rewordings_path="rephrased.jsonl")
    encoder, library = CountingEncoder(minilm), VariantLibrary(records)
    messages = []
    for _ in range(2):
        with pytest.raises(BadInputError) as starved:
            build(items, section, chain=Chain([Imported(matched)]), encoder=encoder, library=library)
        messages.append(str(starved.value))
    assert messages[0] == messages[1]
    assert set(encoder.texts.values()) == {1}
    assert "fell below the window 0.15 to 0.45 and 0 above it" in messages[0]
    low, high = messages[0].split("with min_semantic_distance ")[1].split(", ")[0].split(" and max_semantic_distance ")
    wider = section.model_copy(update={"min_semantic_distance": float(low), "max_semantic_distance": float(high)})
    made = build(items, wider, chain=Chain([Imported(matched)]), encoder=encoder, library=library)
    promised = int(messages[0].split(f"{high}, ")[1].split(" of ")[0])
    assert len({variant.item_id for variant in made.variants}) == promised >= 22


def test_a_strategy_that_finds_nothing_says_what_these_items_lack(minilm: SentenceEncoder, records: Records) -> None:
    items = [Item(item_id="i", question="What is 1 and 1?", target="2")]
    section = SECTION.model_copy(update={"perturbation_strategy": "option_shuffle"})
    with pytest.raises(BadInputError, match=r"Rejected: 1 no_options\. These items have no options"):
        build(items, section, chain=Chain([OptionShuffle()]), encoder=minilm, library=VariantLibrary(records))


def test_a_text_beyond_the_window_is_not_cut(minilm: SentenceEncoder) -> None:
    head = " ".join(f"The {n} ships carry amber to the harbour." for n in range(60))
    changed = f"{head} Then the dragon burnt the library of the queen."
    vectors = minilm.encode([head, changed, "short"])
    assert vectors.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert distances(vectors[:1], vectors[1:2])[0] > 0.005


@pytest.mark.parametrize("text", ["", " ", "\u202eabc", "!?", "\U0001f600" * 300, "a" * 50_000, "\u6771\u4eac" * 400])
def test_odd_texts_have_finite_vectors(minilm: SentenceEncoder, text: str) -> None:
    assert np.isfinite(minilm.encode([text, "plain"])).all()


def test_a_batch_changes_no_distance_that_is_kept(minilm: SentenceEncoder) -> None:
    texts = [item.question for item in _items()]
    together = minilm.encode(texts)
    alone = np.concatenate([minilm.encode([text]) for text in texts])
    assert np.abs(1 - distances(together, alone) - 1).max() < 5e-6


def test_weights_that_are_not_the_pinned_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    with pytest.raises(EncoderError, match="they are not the official file"):
        SentenceEncoder(tmp_path, name="fake", pinned_digest=PACKAGED_DIGEST)
    with pytest.raises(EncoderError, match="must be a sentence-transformers folder"):
        SentenceEncoder(tmp_path, name="fake").encode(["a"])


@pytest.mark.parametrize(
    ("setting", "fault"),
    [("no/such", "pinned commit"), ("owner/name@main", "pinned commit"), ("owner/name@" + "a" * 40, "hub's cache")],
)
def test_an_encoder_that_is_not_here_is_named_with_the_mend(setting: str, fault: str) -> None:
    with pytest.raises(EncoderError, match=fault):
        resolve_encoder(setting)


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="only safetensors are loaded"):
        resolve_encoder(str(tmp_path))


def _message(artifacts: LocalArtifacts, section: PerturbationSection, rewordings: bytes | None = None) -> BuildVariants:
    return BuildVariants(
        audit_id="a",
        items=put_items(artifacts, ItemSet(items=tuple(_items(4)))),
        settings=put_model(artifacts, section),
        rewordings=None if rewordings is None else artifacts.put(rewordings),
        benchmark="bench",
    )


def test_a_message_is_answered_with_a_variant_set(minilm: SentenceEncoder, records: Records, tmp_path: Path) -> None:
    artifacts = LocalArtifacts(tmp_path / "artifacts")
    rows = [{"item_id": "capital-0", "question": "Tell me Krava's capital, please."}, {"item_id": "x", "question": "y"}]
    section = SECTION.model_copy(
        update={"perturbation_strategy": "imported+option_shuffle", "rewordings_path": "r.jsonl", "min_yield": 0.2}
    )
    message = _message(artifacts, section, "\n".join(map(json.dumps, rows)).encode())
    built = variants_for(message, Settings(home=tmp_path), records, artifacts, minilm)
    assert built.variants is not None
    made = get_variants(artifacts, built.variants)
    assert [variant.item_id for variant in made.variants] == ["capital-0"] * 3
    assert len({variant.choices for variant in made.variants}) == 3
    assert Counter(rejection.reason for rejection in made.rejections) == {"no_rewording": 3}


def _with_control(artifacts: LocalArtifacts, section: PerturbationSection, control: Sequence[Item]) -> BuildVariants:
    rows = [{"item_id": item.item_id, "question": f"Tell me {item.question[24:-1]}'s capital, please."}
            for item in (*_items(4), *control[:1])]  # fmt: skip
    message = _message(artifacts, section, "\n".join(map(json.dumps, rows)).encode())
    return message.model_copy(update={"control": put_items(artifacts, ItemSet(items=tuple(control)))})


def test_control_items_pass_the_same_gate_into_variants_of_their_own(
    minilm: SentenceEncoder, records: Records, tmp_path: Path
) -> None:
    artifacts = LocalArtifacts(tmp_path / "artifacts")
    section = SECTION.model_copy(update={"perturbation_strategy": "imported", "rewordings_path": "r.jsonl"})
    control = [item.model_copy(update={"item_id": f"control-{place}"}) for place, item in enumerate(_items(8)[4:])]
    message = _with_control(artifacts, section, control)
    built = variants_for(message, Settings(home=tmp_path), records, artifacts, minilm)
    assert built.variants is not None
    assert built.control is not None
    alone = variants_for(
        message.model_copy(update={"control": None}), Settings(home=tmp_path), records, artifacts, minilm
    )
    assert alone.variants is not None
    of_benchmark, before = get_variants(artifacts, built.variants), get_variants(artifacts, alone.variants)
    assert (of_benchmark.variants, of_benchmark.rejections) == (before.variants, before.rejections)
    of_control = get_variants(artifacts, built.control)
    # One of four is below min_yield, which is the benchmark's alone: the channel says that these are too few.
    assert {variant.item_id for variant in of_control.variants} == {"control-0"}
    assert Counter(rejection.item_id for rejection in of_control.rejections) == {
        "control-1": 1, "control-2": 1, "control-3": 1,
    }  # fmt: skip


def test_control_items_of_which_none_gets_a_rewording_do_not_stop_the_audit(
    minilm: SentenceEncoder, records: Records, tmp_path: Path
) -> None:
    artifacts = LocalArtifacts(tmp_path / "artifacts")
    section = SECTION.model_copy(update={"perturbation_strategy": "imported", "rewordings_path": "r.jsonl"})
    message = _with_control(artifacts, section, ())
    control = ItemSet(items=(_items(9)[8].model_copy(update={"item_id": "control-9"}),))
    message = message.model_copy(update={"control": put_items(artifacts, control)})
    built = variants_for(message, Settings(home=tmp_path), records, artifacts, minilm)
    assert built.error is None
    assert built.control is not None
    assert get_variants(artifacts, built.control).variants == ()


def test_rewordings_of_other_items_are_refused(minilm: SentenceEncoder, records: Records, tmp_path: Path) -> None:
    artifacts = LocalArtifacts(tmp_path / "artifacts")
    section = SECTION.model_copy(update={"perturbation_strategy": "imported", "rewordings_path": "r.jsonl"})
    message = _message(artifacts, section, b'{"item_id": "x", "question": "y"}')
    with pytest.raises(BadInputError, match=r"none of the 1 rewordings in r\.jsonl belongs to one of the 4 items"):
        variants_for(message, Settings(home=tmp_path), records, artifacts, minilm)


def test_reordered_options_alone_embed_nothing(minilm: SentenceEncoder, tmp_path: Path) -> None:
    counting = CountingEncoder(minilm)
    settings = SECTION.model_copy(update={"perturbation_strategy": "option_shuffle", "min_semantic_distance": 0.0})
    item = Item(item_id="one", question="Which one is red?", choices=("blood", "grass", "snow", "coal"), target="blood")
    library = VariantLibrary(Records(f"sqlite:///{tmp_path / 'records.sqlite'}"))
    built = build([item], settings, chain=Chain([OptionShuffle()]), encoder=counting, library=library)
    assert {variant.measurements.semantic_distance for variant in built.variants} == {0.0}
    assert not counting.texts


def test_a_build_from_the_library_loads_no_torch(minilm: SentenceEncoder, tmp_path: Path) -> None:
    records = Records(f"sqlite:///{tmp_path / 'records.sqlite'}")
    artifacts = LocalArtifacts(tmp_path / "artifacts")
    (tmp_path / "bundle" / "bench").mkdir(parents=True)
    document = {"benchmark": "bench", "version": "1", "templates": {"capital": list(TEMPLATES)}}
    (tmp_path / "bundle" / "bench" / "wordings.json").write_text(json.dumps(document))
    settings = Settings(
        home=tmp_path,
        records_url=f"sqlite:///{tmp_path / 'records.sqlite'}",
        artifacts=str(tmp_path / "artifacts"),
        bundle=tmp_path / "bundle",
    )
    message = _message(artifacts, SECTION)
    variants_for(message, settings, records, artifacts, minilm)
    program = (
        "import sys\n"
        "from proctor.domain.messages import BuildVariants\n"
        "from proctor.perturbation.tasks import _encoder, variants_for\n"
        "from proctor.runtime.messaging.tasks import worker_artifacts, worker_records, worker_settings\n"
        "message = BuildVariants.model_validate_json(sys.argv[1])\n"
        "variants_for(message, worker_settings(), worker_records(), worker_artifacts(), _encoder())\n"
        "print(sorted({'torch', 'transformers', 'sentence_transformers'} & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, message.model_dump_json()],
        env={**settings.to_environment(), "PYTHONPATH": str(REPOSITORY / "services"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr
