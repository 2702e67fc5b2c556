"""Rough distances decide as the exact ones, however the errors fall as long as they are bounded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proctor.domain.errors import EncoderError
from proctor.perturbation.admission.gate import rounded_distance
from proctor.perturbation.distances import PairDistances
from proctor.perturbation.encoder import RoughEncoder, Vectors, exact
from proctor.perturbation.encoder.rough import LEAST_MARGIN, ObservedErrors
from proctor.perturbation.rechecks import kept
from proctor.perturbation.remembering import RememberingEncoder
from tests.unit.variant_samples import HashedEncoder

QUESTION = "the question"
WINDOW = (0.15, 0.45)
#: Half a unit of the gate's last digit is what rounding adds to an error.
MOST = LEAST_MARGIN - 1e-4


class AngleEncoder:
    """Puts each text at the distance from the question that a test asks for: exactly, and off by an error."""

    def __init__(self, texts: Mapping[str, float], errors: Mapping[str, float], *, rough: bool = False) -> None:
        self._texts, self._errors, self._rough = texts, errors, rough
        self.name = self.digest = self.fingerprint = "rough" if rough else "exact"
        self.asked: list[str] = []
        self.asked_roughly: list[str] = []
        if rough:
            self.exact = AngleEncoder(texts, errors)
            self.errors = ObservedErrors()
            self.encode_roughly = self._encode_roughly

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.stack([_at(self._texts.get(text, 0.0)) for text in texts])

    def _encode_roughly(self, texts: Sequence[str]) -> Vectors:
        self.asked_roughly += texts
        return np.stack([_at(self._texts.get(text, 0.0) + self._errors.get(text, 0.0)) for text in texts])


def _at(distance: float) -> Vectors:
    cosine = 1.0 - min(2.0, max(0.0, distance))
    return np.asarray([cosine, math.sqrt(max(0.0, 1.0 - cosine * cosine))], dtype=np.float32)


def _side(distance: float, window: tuple[float, float]) -> str:
    weighed = rounded_distance(distance)
    return "too_close" if weighed < window[0] else "too_far" if weighed > window[1] else "admitted"


def _encoder(distances: Sequence[float], errors: Sequence[float]) -> tuple[AngleEncoder, list[tuple[str, str]]]:
    names = [f"rewording {place}" for place in range(len(distances))]
    texts = dict(zip(names, distances, strict=True))
    encoder = AngleEncoder(texts, dict(zip(names, errors, strict=True)), rough=True)
    return encoder, [(QUESTION, name) for name in names]


def _decisions(encoder: AngleEncoder, pairs: Sequence[tuple[str, str]], window: tuple[float, float]) -> list[str]:
    return [_side(distance, window) for distance in PairDistances(encoder, window=window).of(pairs)]


def _exact_decisions(encoder: AngleEncoder, pairs: Sequence[tuple[str, str]], window: tuple[float, float]) -> list[str]:
    return [_side(distance, window) for distance in PairDistances(encoder.exact, window=window).of(pairs)]


_WINDOWS = st.tuples(st.floats(0, 0.5), st.floats(0.01, 1.2)).map(lambda ends: (ends[0], round(ends[0] + ends[1], 4)))


@st.composite
def _near_an_end(draw: st.DrawFn) -> tuple[tuple[float, float], list[float]]:
    """A window, and distances most of which lie where an error could carry them across an end."""
    low, high = draw(_WINDOWS)
    near = st.builds(lambda end, off: max(0.0, end + off), st.sampled_from([low, high]), st.floats(-0.03, 0.03))
    return (low, high), draw(st.lists(st.one_of(near, st.floats(0, 1.9)), min_size=1, max_size=60))


@given(_near_an_end(), st.randoms(use_true_random=False), st.sampled_from(["worst", "any"]))
def test_errors_within_the_margin_change_no_decision(
    case: tuple[tuple[float, float], list[float]], random: Random, kind: str
) -> None:
    window, distances = case
    middle = sum(window) / 2

    def error(distance: float) -> float:
        if kind == "any":
            return random.uniform(-MOST, MOST)
        # Towards the nearer end and across it.
        end = window[0] if distance < middle else window[1]
        return math.copysign(MOST, end - distance)

    encoder, pairs = _encoder(distances, [error(distance) for distance in distances])
    assert _decisions(encoder, pairs, window) == _exact_decisions(encoder, pairs, window)


@given(_near_an_end(), st.floats(0.003, 0.2), st.data())
def test_larger_errors_change_no_decision_once_one_of_half_their_size_was_observed(
    case: tuple[tuple[float, float], list[float]], largest: float, data: st.DataObject
) -> None:
    window, distances = case
    size = st.floats(largest / 2 + 1e-4, largest)
    errors = [data.draw(size) * data.draw(st.sampled_from([-1, 1])) for _ in distances]
    # Vectors cannot be nearer than 0: an error that would take a distance there is a smaller one.
    assume(all(distance + error >= 0 for distance, error in zip(distances, errors, strict=True)))
    encoder, pairs = _encoder(distances, errors)
    assert _decisions(encoder, pairs, window) == _exact_decisions(encoder, pairs, window)


@given(_near_an_end(), st.integers(1, 7), st.floats(0.003, 0.2), st.randoms(use_true_random=False))
def test_pairs_that_come_in_several_calls_are_decided_alike_or_the_encoder_is_refused(
    case: tuple[tuple[float, float], list[float]], calls: int, largest: float, random: Random
) -> None:
    window, distances = case
    errors = [random.uniform(largest / 2 + 1e-4, largest) for _ in distances]
    encoder, pairs = _encoder(distances, errors)
    measured = PairDistances(encoder, window=window)
    decisions: list[str] = []
    try:
        for call in range(calls):
            decisions += [_side(distance, window) for distance in measured.of(pairs[call::calls])]
    except EncoderError:
        return
    assert decisions == [one for call in range(calls) for one in _exact_decisions(encoder, pairs[call::calls], window)]


def test_an_earlier_answer_that_proves_wrong_is_an_error_and_not_a_silent_difference() -> None:
    # Many pairs without an error are all that is observed until one shows how far off this encoder may be.
    encoder, pairs = _encoder([0.46, 0.46, 0.4505], [-0.02, -0.02, 0.004])
    encoder.errors.pairs = 100
    measured = PairDistances(encoder, window=WINDOW)
    assert [_side(distance, WINDOW) for distance in measured.of(pairs[:2])] == ["admitted", "admitted"]
    encoder.errors.observe(0.02)
    with pytest.raises(EncoderError, match=r"off by up to 0\.0200.*PROCTOR_ENCODER_PRECISION=fp32"):
        measured.of(pairs[2:])


def test_a_margin_that_widens_is_told_with_the_one_that_earlier_batches_went_by(
    caplog: pytest.LogCaptureFixture,
) -> None:
    encoder, pairs = _encoder([0.3] * 20, [0.001] * 20)
    PairDistances(encoder, window=WINDOW).of(pairs)
    assert caplog.messages == []
    other, pairs = _encoder([0.3] * 20, [0.02] * 20)
    PairDistances(other, window=WINDOW).of(pairs)
    (message,) = caplog.messages
    assert "off by up to 0.0200" in message
    assert "nearer than 0.0400" in message
    assert message.endswith("went by 0.0060")


def test_distances_far_from_the_ends_are_kept_with_two_decimals_and_near_ones_with_all() -> None:
    encoder, pairs = _encoder([0.0812, 0.3077, 0.4512], [0.0011, -0.0011, 0.0011])
    encoder.errors.pairs = 100
    far, middle, near = PairDistances(encoder, window=WINDOW).of(pairs)
    assert (far, middle) == (0.08, 0.31)
    assert near == pytest.approx(0.4512, abs=1e-6)


@given(st.floats(-1e-7, 2.0), st.floats(0.0, 2.0))
def test_rounding_what_is_kept_moves_no_distance_beyond_the_margin_across_an_end(distance: float, end: float) -> None:
    if abs(distance - end) > LEAST_MARGIN:
        assert (kept(distance) > end) == (distance > end)


def test_each_text_is_embedded_once_each_way_and_only_what_is_near_an_end_exactly() -> None:
    encoder, pairs = _encoder([0.3, 0.31, 0.1501], [0.0, 0.0, 0.0])
    encoder.errors.pairs = 100
    PairDistances(encoder, window=WINDOW).of([*pairs, *pairs])
    assert sorted(encoder.asked_roughly) == sorted([QUESTION, *(name for _, name in pairs)])
    assert sorted(encoder.asked) == sorted([QUESTION, pairs[2][1]])


def test_a_few_pairs_are_observed_wherever_they_lie_and_the_same_ones_in_any_order() -> None:
    encoder, pairs = _encoder([0.3] * 40, [0.001] * 40)
    PairDistances(encoder, window=WINDOW).of(pairs)
    other, _ = _encoder([0.3] * 40, [0.001] * 40)
    PairDistances(other, window=WINDOW).of(pairs[::-1])
    assert encoder.errors.pairs >= 8
    assert encoder.errors.largest == pytest.approx(0.001, abs=1e-6)
    assert set(encoder.asked) == set(other.asked)


def test_a_window_without_ends_needs_no_exact_distance() -> None:
    encoder, pairs = _encoder([0.0, 0.3, 1.9], [0.001] * 3)
    PairDistances(encoder, window=(0.0, 2.0)).of(pairs)
    assert encoder.asked == []


def test_without_a_window_every_distance_is_exact() -> None:
    encoder, pairs = _encoder([0.3], [0.5])
    assert PairDistances(encoder).of(pairs) == pytest.approx([0.3], abs=1e-6)
    assert encoder.asked_roughly == []


def test_equal_texts_are_at_zero_and_embed_nothing() -> None:
    encoder, _ = _encoder([], [])
    assert PairDistances(encoder, window=WINDOW).of([("same", "same")]) == [0.0]
    assert encoder.asked == encoder.asked_roughly == []


def test_the_margin_is_twice_the_largest_error_observed_and_never_less_than_the_least() -> None:
    errors = ObservedErrors()
    assert errors.margin == LEAST_MARGIN
    errors.observe(-0.001)
    assert errors.margin == LEAST_MARGIN
    errors.observe(-0.01)
    errors.observe(0.002)
    assert (errors.pairs, errors.largest, errors.margin) == (3, 0.01, 0.02)


def test_what_remembers_a_rough_encoders_vectors_is_the_exact_one() -> None:
    encoder, pairs = _encoder([0.3], [0.1])
    remembering = RememberingEncoder(encoder)
    assert remembering.fingerprint == "exact"
    assert remembering.encode([pairs[0][1]])[0] == pytest.approx(_at(0.3))


def test_an_encoder_without_rough_vectors_is_its_own_exact_one() -> None:
    plain, (rough, _) = HashedEncoder(), _encoder([], [])
    assert exact(plain) is plain
    assert isinstance(rough, RoughEncoder)
    assert exact(rough) is rough.exact
