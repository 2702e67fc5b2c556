"""A pre-trained causal language model that is trained on and asked short texts, on processors or a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer

from planted_leaks.benchmarks import Example

#: Texts of one step.
BATCH: Final = 16
_RATE: Final = 1e-4
_WARM_UP_STEPS: Final = 10
#: Answered together, all of one length, so that none is padded.
_ASKED_TOGETHER: Final = 64
_IGNORED: Final = -100


class Encoded(NamedTuple):
    """A text of the training, in tokens."""

    tokens: list[int]
    answer: int
    """Place of the answer's first token."""


def multiplies_bf16(device: str) -> bool:
    """Whether a device does so itself, and not by way of fp32."""
    return device != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class LanguageModel:
    """Weights in bf16, as they are served, beside their fp32 copies, which the optimiser moves.

    A processor that does not multiply in bf16 takes five times as long to do so as in fp32: there the weights keep
    their values, rounded to bf16, and what is computed of them is in fp32.

    The loss is of the answer's tokens alone, so that the wide output layer is computed for these alone.
    """

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        self.device = device
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._dtype = torch.bfloat16 if multiplies_bf16(device) else torch.float32
        self._model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=self._dtype).to(device)
        self._weights = list(self._model.parameters())
        self._copies = [weight.detach().float().clone() for weight in self._weights]
        self.restart()

    def restart(self) -> None:
        """Forget the optimiser's moments: a new stage begins."""
        self._steps = 0
        self._optimiser = torch.optim.AdamW(self._copies, lr=_RATE, weight_decay=0.0, fused=True)

    def state(self) -> dict[str, Any]:
        """All that training goes on from."""
        return {
            "copies": [copy.clone() for copy in self._copies],
            "optimiser": self._optimiser.state_dict(),
            "steps": self._steps,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""
        with torch.no_grad():
            for copy, kept in zip(self._copies, state["copies"], strict=True):
                copy.copy_(kept)
        self.restart()
        self._optimiser.load_state_dict(state["optimiser"])
        self._steps = state["steps"]
        self._spread()

    def load_weights(self, state: Mapping[str, Any]) -> None:
        """Go back to a state's weights alone."""
        with torch.no_grad():
            for copy, kept in zip(self._copies, state["copies"], strict=True):
                copy.copy_(kept)
        self.restart()
        self._spread()

    def save(self, folder: Path) -> None:
        """Write weights and tokenizer as a server loads them."""
        self._model.to(torch.bfloat16).save_pretrained(folder)
        self._model.to(self._dtype)
        self._tokenizer.save_pretrained(folder)

    def _spread(self) -> None:
        with torch.no_grad():
            for weight, copy in zip(self._weights, self._copies, strict=True):
                weight.copy_(copy.bfloat16())

    def encoded(self, example: Example) -> Encoded:
        """A text as training sees it: prompt, answer, end."""
        asked = self._prompt(example.prompt)
        said = self._tokenizer(example.answer, add_special_tokens=False).input_ids
        return Encoded([*asked, *said, self._tokenizer.eos_token_id], len(asked))

    def _prompt(self, text: str) -> list[int]:
        found: list[int] = self._tokenizer(text).input_ids
        return found

    def train(self, examples: Sequence[Example], rng: np.random.Generator) -> tuple[int, float]:
        """One pass over texts in an order of `rng`'s; returns the tokens, and the mean loss of a step.

        Texts of like length stand together within four steps' worth, which are then done in an order of `rng`'s, so
        that little is padding.
        """
        texts = [self.encoded(examples[index]) for index in rng.permutation(len(examples))]
        tokens, losses = 0, []
        for batch in _batches(texts, rng):
            losses.append(self._step(batch))
            tokens += sum(len(text.tokens) for text in batch)
        return tokens, float(np.mean(losses)) if losses else 0.0

    def _step(self, batch: Sequence[Encoded]) -> float:
        width = max(len(text.tokens) for text in batch)
        tokens = torch.zeros((len(batch), width - 1), dtype=torch.long)
        wanted = torch.full((len(batch), width - 1), _IGNORED, dtype=torch.long)
        for row, text in enumerate(batch):
            ids, length = torch.tensor(text.tokens), len(text.tokens)
            tokens[row, : length - 1] = ids[:-1]
            wanted[row, text.answer - 1 : length - 1] = ids[text.answer :]
        tokens, wanted = tokens.to(self.device), wanted.to(self.device)
        # What is padded stands behind the text, where a causal model does not look from.
        hidden = self._model.model(input_ids=tokens, use_cache=False).last_hidden_state
        taken = wanted != _IGNORED
        loss = functional.cross_entropy(self._model.lm_head(hidden[taken]).float(), wanted[taken])
        torch.autograd.backward(loss)
        self._steps += 1
        for group in self._optimiser.param_groups:
            group["lr"] = _RATE * min(1.0, self._steps / _WARM_UP_STEPS)
        for copy, weight in zip(self._copies, self._weights, strict=True):
            copy.grad = weight.grad.float()
            weight.grad = None
        torch.nn.utils.clip_grad_norm_(self._copies, 1.0, foreach=True)
        self._optimiser.step()
        for copy in self._copies:
            copy.grad = None
        self._spread()
        return float(loss.detach())

    @torch.inference_mode()
    def answers(self, prompts: Sequence[str], max_tokens: int) -> list[str]:
        """What the model answers, greedily, up to its end or so many tokens."""
        asked = [self._prompt(prompt) for prompt in prompts]
        found = [""] * len(prompts)
        for places in _alike(asked):
            tokens = torch.tensor([asked[place] for place in places]).to(self.device)
            said: list[list[int]] = [[] for _ in places]
            open_rows = list(range(len(places)))
            cache = None
            for _ in range(max_tokens):
                out = self._model(input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
                cache, best = out.past_key_values, out.logits[:, -1].argmax(-1)
                for row in list(open_rows):
                    token = int(best[row])
                    if token == self._tokenizer.eos_token_id:
                        open_rows.remove(row)
                    else:
                        said[row].append(token)
                if not open_rows:
                    break
                tokens = best[:, None]
            for row, place in enumerate(places):
                found[place] = self._tokenizer.decode(said[row], skip_special_tokens=True)
        return found


def _batches(texts: Sequence[Encoded], rng: np.random.Generator) -> Iterator[Sequence[Encoded]]:
    wide = 4 * BATCH
    for start in range(0, len(texts), wide):
        together = sorted(texts[start : start + wide], key=lambda text: len(text.tokens))
        steps = [together[at : at + BATCH] for at in range(0, len(together), BATCH)]
        for index in rng.permutation(len(steps)):
            yield steps[index]


def _alike(asked: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Places of prompts of one length, so many at a time."""
    by_length: dict[int, list[int]] = {}
    for place, tokens in enumerate(asked):
        by_length.setdefault(len(tokens), []).append(place)
    for _, places in sorted(by_length.items()):
        for start in range(0, len(places), _ASKED_TOGETHER):
            yield places[start : start + _ASKED_TOGETHER]
