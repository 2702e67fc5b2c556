"""The noise channel on a table: definitions, tests, and the reader of the table."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from proctor.domain.errors import BadInputError
from proctor.domain.noise import RouterSetting
from proctor.evidence.noise.gains import EXACT_TREND_SETTINGS, heterogeneity_p, one_sided_mcnemar, page_trend
from proctor.evidence.noise.sensitivity import contamination_sensitivity, score_confidence
from proctor.evidence.noise.summary import noise_summary
from proctor.formats.router_table import read_router_table

HEADER = "model,router_count,n,clean_accuracy,noisy_accuracy,gain,improve,degrade"
GOOD = "m,1,100,0.50,0.60,0.10,15,5"


def setting(
    model: str,
    router_count: int,
    improve: int,
    degrade: int,
    *,
    n: int = 100,
    clean: int = 50,
    invalid: int | None = None,
) -> RouterSetting:
    return RouterSetting(
        model=model,
        router_count=router_count,
        n=n,
        clean_accuracy=clean / n,
        noisy_accuracy=(clean + improve - degrade) / n,
        improve=improve,
        degrade=degrade,
        invalid_answers=invalid,
    )


@st.composite
def tables(draw: st.DrawFn) -> list[RouterSetting]:
    keys = draw(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 12)), min_size=1, max_size=20, unique=True))
    return [
        setting(
            model,
            count,
            draw(st.integers(0, 50)),
            draw(st.integers(0, 50)),
            invalid=draw(st.sampled_from([None, 0, 50, 51, 100])),
        )
        for model, count in keys
    ]


def assert_mean(found: float | None, values: list[float]) -> None:
    """The mean of so many values; undefined, and not 0, of none."""
    assert found == (pytest.approx(sum(values) / len(values), abs=1e-12) if values else None)


@given(tables())
def test_every_definition_agrees_with_the_naive_one(table: list[RouterSetting]) -> None:
    summary = noise_summary(table)
    for model in summary.models:
        rows = [row for row in table if row.model == model.model]
        valid = [row for row in rows if (row.invalid_answers or 0) <= row.n / 2]
        gains = [row.noisy_accuracy - row.clean_accuracy for row in valid]
        assert model.settings == len(rows)
        assert model.invalid_settings == len(rows) - len(valid)
        assert model.violations == sum(row.improve > row.degrade for row in valid)
        assert_mean(
            model.mean_positive_excess,
            [r.noisy_accuracy - r.clean_accuracy for r in valid if r.improve > r.degrade],
        )
        if valid:
            assert model.mean_gain == pytest.approx(sum(gains) / len(valid), abs=1e-12)
            over_all = sum(max(g, 0) for g in gains) / len(valid)
            assert model.mean_excess_over_all_settings == pytest.approx(over_all, abs=1e-12)
            assert model.max_positive_excess == pytest.approx(max(0, *gains, 0), abs=1e-12)
    for count in summary.router_counts:
        rows = [r for r in table if r.router_count == count.router_count and (r.invalid_answers or 0) <= r.n / 2]
        assert count.violating_models == sum(row.improve > row.degrade for row in rows)
        above = [r.noisy_accuracy - r.clean_accuracy for r in rows if r.improve > r.degrade]
        assert_mean(count.mean_positive_excess, above)
        assert_mean(count.mean_excess_over_all_settings, above + [0.0] * (len(rows) - len(above)))
        assert count.net_improve == sum(row.improve for row in rows) - sum(row.degrade for row in rows)


def test_a_model_that_noise_never_helps_has_no_mean_positive_excess_and_one_that_it_helps_once_has_that_one() -> None:
    """The paper's tables take the mean over the settings that exceed the baseline, not over all."""
    summary = noise_summary([setting("helped", 1, 12, 4), setting("helped", 2, 3, 9), setting("hurt", 1, 2, 6)])
    helped, hurt = summary.models
    assert helped.mean_positive_excess == helped.max_positive_excess == pytest.approx(0.08)
    assert helped.mean_excess_over_all_settings == pytest.approx(0.04)
    assert hurt.mean_positive_excess is None
    assert hurt.mean_excess_over_all_settings == hurt.max_positive_excess == 0
    first, second = summary.router_counts
    assert first.mean_positive_excess == pytest.approx(0.08)
    assert first.mean_excess_over_all_settings == pytest.approx(0.04)
    assert second.mean_positive_excess is None
    assert second.mean_excess_over_all_settings == 0


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(table: list[RouterSetting], random: Random) -> None:
    shuffled = list(table)
    random.shuffle(shuffled)
    assert noise_summary(shuffled) == noise_summary(table)


@given(tables())
def test_every_p_value_lies_between_0_and_1_and_correction_only_raises_it(table: list[RouterSetting]) -> None:
    summary = noise_summary(table)
    for one in summary.settings:
        if one.invalid:
            assert one.p_value is one.holm_p_model is one.holm_p_table is None
            assert not one.violation
        else:
            assert one.p_value is not None
            assert one.holm_p_model is not None
            assert one.holm_p_table is not None
            assert 0 <= one.p_value <= one.holm_p_model <= one.holm_p_table <= 1
    tests = [part for test in summary.hypotheses for part in (test, *test.parts)]
    assert all(test.p_value is None or 0 <= test.p_value <= 1 for test in tests)


@settings(max_examples=20)
@given(tables())
def test_holm_agrees_with_statsmodels(table: list[RouterSetting]) -> None:
    valid = [one for one in noise_summary(table).settings if not one.invalid]
    if valid:
        expected = multipletests([one.p_value for one in valid], method="holm")[1]
        assert [one.holm_p_table for one in valid] == pytest.approx(list(expected), abs=1e-12)


@given(st.integers(0, 80), st.integers(0, 80))
def test_the_exact_test_of_a_setting_is_the_binomial_one(improve: int, degrade: int) -> None:
    total = improve + degrade
    expected = stats.binomtest(improve, total, alternative="greater").pvalue if total else 1.0
    assert one_sided_mcnemar(improve, degrade) == pytest.approx(expected, rel=1e-9)


def test_closed_cases_of_the_exact_test() -> None:
    assert one_sided_mcnemar(0, 0) == one_sided_mcnemar(0, 7) == 1.0
    assert one_sided_mcnemar(5, 0) == pytest.approx(2**-5)
    assert 2 * one_sided_mcnemar(9, 2) == pytest.approx(0.065430, abs=1e-6)
    assert 2 * one_sided_mcnemar(41, 21) == pytest.approx(0.015134, abs=1e-6)


def test_the_trend_test_agrees_with_scipys_page_test() -> None:
    rng = np.random.default_rng(4)
    for models, counts in ((2, 5), (3, 6), (5, 4)):
        values = np.stack([rng.permutation(counts) for _ in range(models)])
        ours = page_trend([{r: float(value) for r, value in enumerate(row, 1)} for row in values])
        reference = stats.page_trend_test(values, method="exact")
        assert ours.statistic == reference.statistic
        assert ours.p_value == pytest.approx(reference.pvalue, rel=1e-9)


def test_a_long_trend_is_approximated_as_scipy_does() -> None:
    rng = np.random.default_rng(5)
    values = np.stack([rng.permutation(EXACT_TREND_SETTINGS + 2) for _ in range(4)])
    ours = page_trend([{r: float(value) for r, value in enumerate(row, 1)} for row in values])
    assert ours.method.startswith("normal")
    assert ours.p_value == pytest.approx(stats.page_trend_test(values, method="asymptotic").pvalue, rel=1e-9)


def test_many_models_are_approximated_close_to_the_exact_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    blocks = [{r: float(value) for r, value in enumerate(rng.poisson(8 + np.arange(6) / 8), 1)} for _ in range(60)]
    approximate = page_trend(blocks)
    monkeypatch.setattr("proctor.evidence.noise.gains.EXACT_TREND_MODELS", 60)
    exact = page_trend(blocks)
    assert approximate.method.startswith("normal")
    assert exact.method.startswith("exact")
    assert approximate.p_value == pytest.approx(exact.p_value, rel=0.05)


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=2))
def test_ties_and_missing_router_counts_agree_with_all_permutations(blocks: list[list[int]]) -> None:
    ours = page_trend([{3 * r: float(value) for r, value in enumerate(block, 1)} for block in blocks])
    ranked = [stats.rankdata(block) for block in blocks if len(block) > 1]
    if not ranked:
        assert ours.p_value is None
        return

    def page(arrangement: tuple[tuple[float, ...], ...]) -> float:
        return sum((i + 1) * rank for block in arrangement for i, rank in enumerate(block))

    observed = page(tuple(tuple(block) for block in ranked))
    every = [page(choice) for choice in itertools.product(*(itertools.permutations(block) for block in ranked))]
    assert ours.p_value == pytest.approx(np.mean([value >= observed - 1e-9 for value in every]), rel=1e-9)


def test_heterogeneity_is_cochrans_q_of_the_padded_gains() -> None:
    improve, degrade, n = [8, 6, 20], [16, 3, 5], [100, 100, 120]
    gains, variances = [], []
    for better, worse, size in zip(improve, degrade, n, strict=True):
        outcomes = np.array([1] * (better + 1) + [-1] * (worse + 1) + [0] * (size - better - worse + 2))
        gains.append(outcomes.mean())
        variances.append(outcomes.var() / len(outcomes))
    weights = 1 / np.array(variances)
    centre = np.average(gains, weights=weights)
    q = float((weights * (np.array(gains) - centre) ** 2).sum())
    assert heterogeneity_p(improve, degrade, n) == pytest.approx(stats.chi2.sf(q, 2), rel=1e-9)


def test_equal_models_are_told_apart_no_more_often_than_the_level() -> None:
    rng = np.random.default_rng(6)
    counts = rng.multinomial(100, [0.15, 0.15, 0.7], size=(800, 12))
    rejected = sum((heterogeneity_p(c[:, 0], c[:, 1], [100] * 12) or 0) < 0.05 for c in counts)
    assert stats.binomtest(rejected, 800, 0.06, alternative="greater").pvalue > 0.001


def test_the_slope_and_its_interval_agree_with_scipy() -> None:
    r, y = [1, 2, 3, 5, 9], [0.4, 0.5, 0.45, 0.6, 0.62]
    reference = stats.linregress(r, y)
    half = stats.t.ppf(0.975, 3) * reference.stderr
    ours = contamination_sensitivity(r, y, 0.95)
    assert (ours.value, ours.low, ours.high) == pytest.approx(
        (reference.slope, reference.slope - half, reference.slope + half), rel=1e-9
    )


def test_confidence_falls_with_the_change_over_the_router_counts() -> None:
    flat = contamination_sensitivity([1, 2, 3], [0.5, 0.5, 0.5], 0.95)
    assert score_confidence(flat, [1, 2, 3]).value == 1.0
    steep = contamination_sensitivity([1, 5], [0.2, 0.6], 0.95)
    confidence = score_confidence(steep, [1, 5])
    assert confidence.value == pytest.approx(0.6)
    assert confidence.low is confidence.high is None
    noisy = score_confidence(contamination_sensitivity([1, 2, 3], [0.5, 0.7, 0.5], 0.95), [1, 2, 3])
    assert noisy.high == 1.0
    assert noisy.low == 0.0


def test_one_model_with_one_router_count_is_described_and_what_needs_more_is_not_tested() -> None:
    summary = noise_summary([setting("m", 1, 15, 5)])
    gains, models, turn = summary.hypotheses
    assert gains.p_value == pytest.approx(one_sided_mcnemar(15, 5))
    assert models.p_value is None
    assert turn.p_value is None
    assert summary.models[0].sensitivity.value is None
    assert "not testable" in summary.conclusion


def test_a_table_without_a_changed_question_shows_nothing() -> None:
    summary = noise_summary([setting(model, r, 0, 0) for model in "ab" for r in (1, 2, 3)])
    assert summary.positive_gains == 0
    assert not summary.significant
    assert [test.p_value for test in summary.hypotheses] == pytest.approx([1.0, 1.0, 1.0])


def test_an_invalid_setting_is_no_violation_and_in_no_mean_and_no_family() -> None:
    clear = noise_summary([setting("m", 1, 10, 9), setting("m", 2, 40, 0, invalid=51)])
    (model,) = clear.models
    assert (model.violations, model.settings, model.invalid_settings) == (1, 2, 1)
    assert model.mean_gain == pytest.approx(0.01)
    assert clear.tested_settings == 1
    assert not clear.significant
    assert noise_summary([setting("m", 2, 40, 0, invalid=50)]).significant
    assert "Nothing is shown" in noise_summary([setting("m", 2, 40, 0, invalid=100)]).conclusion


def written(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "routers.csv"
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path


def test_a_table_in_percent_reads_as_one_in_fractions(tmp_path: Path) -> None:
    fractions = read_router_table(written(tmp_path, GOOD, "m,2,100,0.50,0.00,-0.50,0,50"))
    percent = read_router_table(written(tmp_path, "m,1,100,50,60,10,15,5", "m,2,100,50,0,-50,0,50"))
    assert fractions == percent


def test_rounded_accuracies_are_no_contradiction(tmp_path: Path) -> None:
    (row,) = read_router_table(written(tmp_path, "m,1,300,0.71,0.72,0.01,7,5"))
    assert row.improve - row.degrade == 2


def test_the_invalid_column_takes_counts_and_words(tmp_path: Path) -> None:
    rows = [f"m,{r},100,0.50,0.60,0.10,15,5,{text}" for r, text in enumerate(["60", "true", "false", ""], 1)]
    table = read_router_table(written(tmp_path, *rows, header=f"{HEADER},invalid"))
    assert [row.invalid_answers for row in table] == [60, 100, 0, None]


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ("m,1,100,0.50,0.60,0.10,15,5", "stands on line 2 already"),
        ("m,2,100,,0.60,0.10,15,5", "no clean arm"),
        ("m,2,100,50,60,10,15,5", "use one unit"),
        ("m,2,100,0.5,60,59.5,15,5", "mix percent and fractions"),
        ("m,2,100,0.50,nan,0.10,15,5", "noisy_accuracy is 'nan'"),
        ("m,2,100,0.50,0.60,0.20,15,5", "gain is 0.20"),
        ("m,2,100,0.50,0.60,0.10,15,6", "improve − degrade is 9"),
        ("m,2,100,0.50,0.503,0.003,5,5", "no whole number of 100 questions"),
        ("m,2,100,0.50,0.50,0.00,60,60", "do not fit clean_accuracy"),
        ("m,2,100,0.51,0.61,0.10,15,5", "one clean arm"),
        ("m,2.5,100,0.50,0.60,0.10,15,5", "a whole number is needed"),
        ("m,0,100,0.50,0.60,0.10,15,5", "router_count is '0'"),
        ("m,2,100,0.50,1e-999999999,0.10,15,5", "decimals"),
        ("m,2,100,0.50,1e999999999999999999999,0.10,15,5", "noisy_accuracy"),
        ("m\u202e,2,100,0.50,0.60,0.10,15,5", "printable name"),
        ("m,2,100,0.50,0.60,0.10,-5,5", "improve is '-5'"),
        (",2,100,0.50,0.60,0.10,15,5", "model is ''"),
        ("m,2,100,0.50", "cells where the header has"),
    ],
)
def test_a_faulty_row_is_one_line_with_its_place(tmp_path: Path, row: str, part: str) -> None:
    path = written(tmp_path, GOOD, row)
    with pytest.raises(BadInputError) as raised:
        read_router_table(path)
    message = str(raised.value)
    assert message.startswith(f"{path}:3: ")
    assert part in message
    assert "\n" not in message


def test_every_faulty_row_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD, "m,2,x,0.50,0.60,0.10,15,5", "m,3,100,0.50,inf,0.10,15,5")
    with pytest.raises(BadInputError) as raised:
        read_router_table(path)
    assert f"{path}:3: " in str(raised.value)
    assert f"{path}:4: " in str(raised.value)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "no rows"),
        (HEADER.encode(), "no rows"),
        (b"model,n\nm,1\n", "the column 'router_count' is missing"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\n", "missing"),
        (HEADER.encode() + b"\n\xff\xfe,1,100,0.50,0.60,0.10,15,5\n", "model is"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: bytes, part: str) -> None:
    path = tmp_path / "routers.csv"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match=part):
        read_router_table(path)


@pytest.mark.parametrize("alpha", [0.0, 1.0, float("nan")])
def test_an_alpha_that_is_no_level_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        noise_summary([setting("m", 1, 1, 0)], alpha=alpha)
