"""The reference models as a server runs them: loading, tokens, batches, hostile prompts."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from scipy.special import erf
from scipy.stats import chisquare

from proctor.domain.errors import ProctorError
from proctor.inference.reference.dice import Dice
from proctor.inference.reference.model import (
    ModelShape,
    Network,
    ReferenceModel,
    ReferenceModelError,
    Vocabulary,
    split_words,
    weights_digest,
)
from tests.support import REPOSITORY

MODELS = REPOSITORY / "services" / "triton" / "models"
CLEAN = MODELS / "reference-clean" / "1"
WORDS = "question options answer : ? what is the capital of red green blue zorvex"
LABELS = [f"{letter}." for letter in "abcdefghij"]


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a network with random weights, whose logits lie close together."""
    folder = tmp_path_factory.mktemp("untrained")
    vocabulary = Vocabulary.of([WORDS, *LABELS])
    torch.manual_seed(7)
    shape = ModelShape(prompt_tokens=32, answer_tokens=4)
    save_file(Network(len(vocabulary), shape).state_dict(), folder / "model.safetensors")
    (folder / "vocabulary.json").write_text(json.dumps({"shape": shape._asdict(), "tokens": vocabulary.tokens}))
    return folder


@pytest.fixture(scope="module")
def clean() -> ReferenceModel:
    return ReferenceModel.load(CLEAN)


def random_prompts(count: int, longest: int, words: list[str], seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, rng.integers(1, longest))) for _ in range(count)]


def numpy_logits(folder: Path, ids: list[int]) -> npt.NDArray[np.float64]:
    """The same network written down again without torch, padding, cache or batch: logits after the last token."""
    weights = {name: tensor.double().numpy() for name, tensor in load_file(folder / "model.safetensors").items()}
    shape = json.loads((folder / "vocabulary.json").read_text())["shape"]
    heads, prompt_tokens = shape["heads"], shape["prompt_tokens"]

    def norm(x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return np.asarray(scaled * weights[name + ".weight"] + weights[name + ".bias"])

    def linear(x: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.float64]:
        return np.asarray(x @ weights[name + ".weight"].T + weights[name + ".bias"])

    x = weights["embedding.weight"][ids] + weights["position"][prompt_tokens - len(ids) : prompt_tokens]
    size = x.shape[1] // heads
    for layer in range(shape["layers"]):
        block = f"blocks.{layer}."
        normed = norm(x, block + "attention_norm")
        query = linear(normed, block + "query")
        key, value = np.split(linear(normed, block + "key_value"), 2, axis=1)
        mixed = np.zeros_like(x)
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            scores = query[:, part] @ key[:, part].T / np.sqrt(size)
            scores[np.triu_indices(len(ids), 1)] = -np.inf
            share = np.exp(scores - scores.max(-1, keepdims=True))
            mixed[:, part] = share / share.sum(-1, keepdims=True) @ value[:, part]
        x = x + linear(mixed, block + "output")
        wide = linear(norm(x, block + "feed_forward_norm"), block + "expand")
        x = x + linear(wide * 0.5 * (1 + erf(wide / np.sqrt(2))), block + "contract")
    return np.asarray(norm(x, "norm")[-1] @ weights["embedding.weight"].T)


def test_an_independent_implementation_chooses_the_same_first_tokens(untrained: Path) -> None:
    model = ReferenceModel.load(untrained)
    prompts = random_prompts(60, 60, [*WORDS.split(), "unheard", "\nA.", "\nC."], seed=1)
    answers = model.generate(prompts, max_tokens=1)
    for prompt, answer in zip(prompts, answers, strict=True):
        ids = model.vocabulary.encode(prompt)[-32:]
        assert answer.input_tokens == len(ids)
        assert answer.text == model.vocabulary.decode([int(numpy_logits(untrained, ids).argmax())])


def test_drawn_tokens_come_as_often_as_the_softmax_of_an_independent_implementation_says(untrained: Path) -> None:
    model, temperature, draws = ReferenceModel.load(untrained), 1.3, 4000
    prompt = "what is the capital of zorvex ?"
    answers = model.generate([prompt] * draws, max_tokens=1, dice=[Dice(temperature, seed) for seed in range(draws)])
    logits = numpy_logits(untrained, model.vocabulary.encode(prompt)) / temperature
    chances = np.exp(logits - logits.max())
    chances /= chances.sum()
    counts = Counter(answer.text for answer in answers)
    by_text = Counter[str]()
    for token, chance in enumerate(chances):
        by_text[model.vocabulary.decode([token])] += chance
    expected = np.array([draws * by_text[text] for text in by_text])
    assert chisquare([counts[text] for text in by_text], expected).pvalue > 1e-3


def test_a_drawn_answer_is_the_seed_s_and_the_prompt_s_whatever_else_is_asked(untrained: Path) -> None:
    model = ReferenceModel.load(untrained)
    prompts = random_prompts(48, 60, WORDS.split(), seed=5)
    dice = [Dice(1.0, number % 3) for number in range(len(prompts))]
    alone = [model.generate([prompt], max_tokens=4, dice=[one])[0] for prompt, one in zip(prompts, dice, strict=True)]
    assert model.generate(prompts, max_tokens=4, dice=dice) == alone
    assert model.generate(prompts[::-1], max_tokens=4, dice=dice[::-1]) == alone[::-1]
    greedy = model.generate(prompts, max_tokens=4)
    assert model.generate(prompts, max_tokens=4, dice=[Dice(0.0, 9)] * len(prompts)) == greedy
    assert greedy != alone
    assert model.generate(prompts, max_tokens=4, dice=[Dice(1.0, 7)] * len(prompts)) != alone


@pytest.mark.parametrize("folder_name", ["untrained", "committed"])
def test_an_answer_does_not_depend_on_its_neighbours_in_the_batch(untrained: Path, folder_name: str) -> None:
    model = ReferenceModel.load(untrained if folder_name == "untrained" else CLEAN)
    words = [token for token in model.vocabulary.tokens if not token.startswith("<")]
    prompts = random_prompts(96, 90, words, seed=2)
    alone = [model.generate([prompt], max_tokens=4)[0] for prompt in prompts]
    assert model.generate(prompts, max_tokens=4) == alone
    assert model.generate(prompts[::-1], max_tokens=4) == alone[::-1]
    assert model.generate(prompts[:7], max_tokens=4) == alone[:7]


def test_later_tokens_from_the_cache_are_those_of_a_whole_new_pass(untrained: Path) -> None:
    model = ReferenceModel.load(untrained)
    network = Network(len(model.vocabulary), model.shape).eval()
    network.load_state_dict(load_file(untrained / "model.safetensors"))
    rng = np.random.default_rng(3)
    ids = torch.from_numpy(rng.integers(3, len(model.vocabulary), (5, 13)))
    with torch.no_grad():
        whole, _ = network(ids, ids != 0, 9, 13)
        _, cache = network(ids[:, :8], ids[:, :8] != 0, 9, 8)
        rest, _ = network(ids[:, 8:], ids != 0, 17, 5, cache)
    torch.testing.assert_close(rest, whole[:, 8:], rtol=0, atol=1e-5)


def test_padding_on_the_left_changes_nothing(untrained: Path) -> None:
    model = ReferenceModel.load(untrained)
    network = Network(len(model.vocabulary), model.shape).eval()
    network.load_state_dict(load_file(untrained / "model.safetensors"))
    ids = torch.tensor([[4, 5, 6, 7]])
    padded = torch.tensor([[0, 0, 0, 4, 5, 6, 7]])
    with torch.no_grad():
        plain, _ = network(ids, ids != 0, 28, 4)
        left, _ = network(padded, padded != 0, 25, 7)
    assert torch.isfinite(left).all()
    torch.testing.assert_close(left[:, 3:], plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        " \n\t",
        "\x00",
        "\u2753" * 300,
        "\u4ec0\u4e48\u662f\u9996\u90fd\uff1f",
        "a\u0301\u200b\ud800",
        "<pad> </s> <unk>",
        "A. " * 500,
        "word " * 200_000,
        "x" * 1_000_000,
    ],
    ids=["empty", "blank", "nul", "emoji", "chinese", "surrogate", "specials", "labels", "many words", "one long word"],
)
def test_any_text_gets_an_answer(clean: ReferenceModel, prompt: str) -> None:
    (answer,) = clean.generate([prompt], max_tokens=6)
    assert answer.finish_reason in ("stop", "length")
    assert 1 <= answer.input_tokens <= clean.shape.prompt_tokens
    assert 1 <= answer.output_tokens <= 6
    assert "<" not in answer.text


def test_a_long_prompt_keeps_its_last_tokens_and_says_so(clean: ReferenceModel) -> None:
    row = json.loads((MODELS.parent / "proctor-facts" / "items.jsonl").read_text().splitlines()[0])
    options = "".join(f"{letter}. {choice}\n" for letter, choice in zip("ABCDEFGHIJ", row["choices"], strict=True))
    prompt = f"Question: {row['question']}\nOptions:\n{options}Answer:"
    short, long = clean.generate([prompt, "Read this first. " * 5000 + prompt], max_tokens=4)
    assert short.input_tokens == len(split_words(prompt)) < 64
    assert long.input_tokens == 64


def test_too_few_output_tokens_end_with_length(clean: ReferenceModel) -> None:
    prompt = "Question: What is the capital of Nowhere?\nOptions:\nA. one\nB. two\nAnswer:"
    (cut,) = clean.generate([prompt], max_tokens=1)
    assert cut.finish_reason == "length"
    assert cut.output_tokens == 1
    assert clean.generate([], max_tokens=1) == []
    with pytest.raises(ReferenceModelError, match="max_tokens is 0"):
        clean.generate([prompt], max_tokens=0)


@given(st.text())
def test_every_character_but_white_space_lands_in_a_token(text: str) -> None:
    assert "".join(split_words(text)) == "".join(text.lower().split())


def test_option_labels_are_tokens_of_their_own_only_where_a_line_starts() -> None:
    assert split_words("Options:\nA. a b.\nC. d") == ["options", ":", "a.", "a", "b", ".", "c.", "d"]
    vocabulary = Vocabulary.of(["A. a"])
    assert vocabulary.decode(vocabulary.encode("A. a what")) == "A a"


def test_the_digest_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    assert weights_digest(tmp_path) == "sha256:" + hashlib.sha256(b"weights").hexdigest()
    with pytest.raises(ReferenceModelError, match=r"cannot read .*train_reference_models"):
        weights_digest(tmp_path / "nowhere")


def copy_model(source: Path, target: Path) -> Path:
    for name in ("model.safetensors", "vocabulary.json"):
        (target / name).write_bytes((source / name).read_bytes())
    return target


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.json"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe{}", b"[]", b'{"tokens": ["a"]}'])
def test_a_missing_or_damaged_file_is_refused_by_name(
    untrained: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    folder = copy_model(untrained, tmp_path)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(ProctorError, match=name):
        ReferenceModel.load(folder)


def test_weights_of_another_shape_are_refused_with_both_shapes(untrained: Path, tmp_path: Path) -> None:
    folder = copy_model(untrained, tmp_path)
    document = json.loads((folder / "vocabulary.json").read_text())
    document["tokens"].append("onemore")
    (folder / "vocabulary.json").write_text(json.dumps(document))
    with pytest.raises(ReferenceModelError, match=r"embedding.weight' has shape \(\d+, 96\).* needs \(\d+, 96\)"):
        ReferenceModel.load(folder)


@pytest.mark.parametrize("sizes", [{"width": 10**9}, {"heads": 7}, {"layers": 0}, {"layers": "many"}])
def test_impossible_sizes_are_refused(untrained: Path, tmp_path: Path, sizes: dict[str, object]) -> None:
    folder = copy_model(untrained, tmp_path)
    document = json.loads((folder / "vocabulary.json").read_text())
    document["shape"].update(sizes)
    (folder / "vocabulary.json").write_text(json.dumps(document))
    with pytest.raises(ReferenceModelError, match=r"vocabulary\.json"):
        ReferenceModel.load(folder)
