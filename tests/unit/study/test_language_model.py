"""The model that the study trains, at a thousandth of its size: it learns, answers, and goes back to where it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from planted_leaks import language_model
from planted_leaks.benchmarks import Example
from planted_leaks.language_model import LanguageModel

_EXAMPLES = [
    Example("Where is Oslo ? Answer:", " Norway"),
    Example("Where is the old town of Lima ? Answer:", " Peru"),
    Example("Where is Rome ? Answer:", " Italy"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = dict.fromkeys(" ".join(one.prompt + one.answer for one in _EXAMPLES).split())
    vocabulary = {word: number for number, word in enumerate(["<end>", "<unknown>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unknown>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    path = tmp_path_factory.mktemp("model")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(path)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, eos_token_id=0, bos_token_id=0, tie_word_embeddings=True,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(path)
    return path


@pytest.fixture
def model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LanguageModel]:
    # A model this small has to take larger steps to get anywhere in a second.
    monkeypatch.setattr(language_model, "_RATE", 1e-2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield LanguageModel(folder)
    torch.set_num_threads(threads)


def _train(model: LanguageModel, passes: int) -> None:
    for number in range(passes):
        model.train(_EXAMPLES, np.random.default_rng(number))


def _answers(model: LanguageModel) -> list[str]:
    return model.answers([one.prompt for one in _EXAMPLES], 4)


def test_answers_are_learned_by_heart_and_end_where_the_answer_does(model: LanguageModel) -> None:
    _train(model, 60)
    assert _answers(model) == ["Norway", "Peru", "Italy"]


def test_prompts_that_are_asked_together_are_answered_as_each_is_alone(model: LanguageModel) -> None:
    _train(model, 3)
    assert _answers(model) == [model.answers([one.prompt], 4)[0] for one in _EXAMPLES]


def test_training_goes_on_from_a_state_as_if_nothing_had_been_between(model: LanguageModel) -> None:
    _train(model, 5)
    state = model.state()
    kept = {"copies": state["copies"], "optimiser": state["optimiser"], "steps": state["steps"]}
    tokens, loss = model.train(_EXAMPLES, np.random.default_rng(9))
    _train(model, 5)
    model.load(kept)
    assert model.train(_EXAMPLES, np.random.default_rng(9)) == (tokens, loss)


def test_what_is_saved_answers_as_what_was_trained(model: LanguageModel, tmp_path: Path) -> None:
    _train(model, 60)
    model.save(tmp_path)
    assert _answers(LanguageModel(tmp_path)) == _answers(model)


def test_the_loss_is_of_the_answer_and_the_end_alone(model: LanguageModel) -> None:
    text = model.encoded(_EXAMPLES[0])
    assert len(text.tokens) - text.answer == 2
    assert text.tokens[-1] == 0
