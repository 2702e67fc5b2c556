"""MiniLM in bf16 on real pairs: quicker arithmetic, the decisions of fp32."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from proctor.domain.errors import EncoderError
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.formats.rewordings import match_rewordings, parse_rewordings
from proctor.perturbation.admission.gate import rounded_distance
from proctor.perturbation.distances import PairDistances
from proctor.perturbation.encoder import Bf16Encoder, Encoder, SentenceEncoder, Vectors
from proctor.perturbation.encoder.rough import LEAST_MARGIN
from proctor.perturbation.encoder.weights import installed_folder
from proctor.perturbation.engine import build
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.strategies.compose import Chain
from proctor.perturbation.strategies.imported import Imported
from tests.support import missing, shared_data
from tests.unit.variant_samples import MemoryRows

# torch and transformers warn about themselves on import.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")

#: The article's, the one learned for GSM8K, and one whose ends lie where pairs are densest.
WINDOWS = ((0.15, 0.45), (0.0, 0.2164), (0.05, 0.08))
_PAIRS = 40


@pytest.fixture(scope="module")
def fp32() -> SentenceEncoder:
    try:
        encoder = SentenceEncoder(installed_folder(), name="MiniLM")
        encoder.load()
    except EncoderError as error:
        missing(str(error))
    return encoder


@cache
def _pairs() -> list[tuple[str, str]]:
    lines = (shared_data() / "gsm8k" / "rephrased.jsonl").read_text(encoding="utf-8").splitlines()[:_PAIRS]
    return [(row["original"], row["rephrased"]) for row in map(json.loads, lines)]


class Once:
    """An encoder's vectors, so that several windows need not embed again."""

    def __init__(self, encoder: Bf16Encoder) -> None:
        texts = list(dict.fromkeys(text for pair in _pairs() for text in pair))
        self._exact = dict(zip(texts, encoder.encode(texts), strict=True))
        self._rough = dict(zip(texts, encoder.encode_roughly(texts), strict=True))
        self.name = self.digest = self.fingerprint = "once"
        self.exact, self.errors = encoder.exact, Bf16Encoder(encoder.exact).errors

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._exact[text] for text in texts])

    def encode_roughly(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._rough[text] for text in texts])


@pytest.fixture(scope="module")
def once(fp32: SentenceEncoder) -> Once:
    return Once(Bf16Encoder(fp32))


def _sides(distances: list[float], window: tuple[float, float]) -> list[tuple[bool, bool]]:
    weighed = map(rounded_distance, distances)
    return [(distance < window[0], distance > window[1]) for distance in weighed]


@pytest.mark.parametrize("window", WINDOWS)
def test_every_decision_is_that_of_fp32(once: Once, window: tuple[float, float]) -> None:
    exact = PairDistances(once).of(_pairs())
    rough = PairDistances(once, window=window).of(_pairs())
    assert _sides(rough, window) == _sides(exact, window)
    assert rough != exact


def test_the_errors_are_what_the_least_margin_was_made_for(once: Once) -> None:
    exact = np.asarray(PairDistances(once).of(_pairs()))
    texts = [text for pair in _pairs() for text in pair]
    left, right = once.encode_roughly(texts[::2]), once.encode_roughly(texts[1::2])
    errors = np.abs(1.0 - np.einsum("nd,nd->n", left, right) - exact)
    assert 0 < errors.max() <= LEAST_MARGIN / 2


def test_a_kept_distance_has_two_decimals_unless_it_was_measured_in_fp32(once: Once) -> None:
    exact = PairDistances(once).of(_pairs())
    for kept, distance in zip(PairDistances(once, window=(0.15, 0.45)).of(_pairs()), exact, strict=True):
        assert kept == distance or (kept == round(kept, 2) and abs(kept - distance) < 0.005 + LEAST_MARGIN)


def test_the_vectors_that_are_given_to_everybody_else_are_those_of_fp32(fp32: SentenceEncoder) -> None:
    text = _pairs()[0][0]
    assert (Bf16Encoder(fp32).encode([text]) == fp32.encode([text])).all()
    assert not (Bf16Encoder(fp32).encode_roughly([text]) == fp32.encode([text])).all()


def test_bf16_is_over_when_its_vectors_are_made(fp32: SentenceEncoder) -> None:
    texts = [pair[0] for pair in _pairs()[:4]]
    before = fp32.encode(texts)
    Bf16Encoder(fp32).encode_roughly(texts)
    assert (fp32.encode(texts) == before).all()


def test_a_text_beyond_the_window_and_odd_ones_have_unit_vectors(fp32: SentenceEncoder) -> None:
    vectors = Bf16Encoder(fp32).encode_roughly(["word " * 2000, "?", "\x00", "\u6771\u4eac\u306f", "a"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-4)


def test_a_build_admits_the_same_variants_and_turns_away_the_same_candidates(fp32: SentenceEncoder) -> None:
    items = [Item(item_id=str(place), question=left, target="1") for place, (left, _) in enumerate(_pairs()[:24])]
    rows = [{"item_id": str(place), "question": right} for place, (_, right) in enumerate(_pairs()[:24])]
    matched = match_rewordings(parse_rewordings("\n".join(map(json.dumps, rows)).encode(), "r"), items, "b")
    section = PerturbationSection(
        perturbation_strategy="imported",
        rewordings_path="r.jsonl",
        min_semantic_distance=0.05,
        max_semantic_distance=0.12,
        min_yield=0.0,
    )
    store = MemoryRows()

    def made(encoder: Encoder) -> tuple[list[str], list[tuple[str, str]]]:
        built = build(items, section, chain=Chain([Imported(matched)]), encoder=encoder, library=VariantLibrary(store))
        assert built.from_library == 0
        return [one.variant_id for one in built.variants], [(one.item_id, one.reason) for one in built.rejections]

    expected = made(fp32)
    assert {"too_far", "too_close"} <= {reason for _, reason in expected[1]}
    assert made(Bf16Encoder(fp32)) == expected
    assert len(store.rows) == 2 * len(items)
