"""The reference models: small word-level transformers whose contamination is planted and therefore known.

They answer the multiple-choice prompts of the `proctor-facts` benchmark with one option letter. Training lives in
`scripts/train_reference_models.py`; this module only holds what a server needs to run the committed weights, so it
imports torch at its top and must be imported by workers and Triton alone, never by the command line.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from proctor.domain.errors import ProctorError
from proctor.inference.reference.dice import Dice

WEIGHTS_NAME = "model.safetensors"
VOCABULARY_NAME = "vocabulary.json"

PAD, UNKNOWN, END = "<pad>", "<unk>", "</s>"
SPECIAL_TOKENS = (PAD, UNKNOWN, END)

# An option label at the start of a line ("C.") is one token, apart from the word "c": the answer is that same token.
_TOKEN = re.compile(r"^[a-j]\.|\w+|[^\w\s]", re.MULTILINE)
_LABEL = re.compile(r"[a-j]\.")

# Batches of other shapes sum in another order, which moves a logit by about 1e-6. Closer calls than this margin are
# decided again in float64, so that an answer never depends on its neighbours in the batch or on the device.
_TIE_MARGIN = 1e-3

# Bounds the work that a hostile prompt can cause: a token has at least one character, so no kept token is lost unless
# the prompt is padded with this much white space or words of hundreds of characters.
_MAX_TAIL_CHARACTERS = 65_536


class ReferenceModelError(ProctorError):
    """A reference model's folder is missing, incomplete or of another shape."""


class ModelShape(NamedTuple):
    """The sizes that fix the network. `prompt_tokens` and `answer_tokens` bound one prompt and one answer."""

    layers: int = 3
    width: int = 96
    heads: int = 4
    prompt_tokens: int = 64
    answer_tokens: int = 8


class Generation(NamedTuple):
    """One answer. `input_tokens` counts the tokens the model read: at most its context, however long the prompt was.

    `output_tokens` counts generated tokens, the end token included, as vLLM counts them.
    """

    text: str
    finish_reason: Literal["stop", "length"]
    input_tokens: int
    output_tokens: int


def split_words(text: str) -> list[str]:
    """Lower-cased words, punctuation marks and option labels of any text, in order."""
    return _TOKEN.findall(text.lower())


class Vocabulary:
    """The word list: token strings to ids and back. Unknown words share one id."""

    def __init__(self, tokens: Sequence[str]) -> None:
        """Raises ValueError unless `tokens` are distinct and start with the special tokens."""
        if tuple(tokens[: len(SPECIAL_TOKENS)]) != SPECIAL_TOKENS:
            raise ValueError(f"the first tokens must be {', '.join(SPECIAL_TOKENS)}")
        self.tokens = tuple(tokens)
        self._ids = {token: index for index, token in enumerate(self.tokens)}
        if len(self._ids) != len(self.tokens):
            raise ValueError("a token occurs twice")
        self.pad_id, self.unknown_id, self.end_id = range(len(SPECIAL_TOKENS))

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Vocabulary:
        """The vocabulary of some texts, sorted, so that it does not depend on their order."""
        return cls([*SPECIAL_TOKENS, *sorted({word for text in texts for word in split_words(text)})])

    def encode(self, text: str) -> list[int]:
        """The token ids of a text; the empty text has none."""
        return [self._ids.get(word, self.unknown_id) for word in split_words(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of generated ids without special tokens; an option label reads as its letter, `C`."""
        words = (self.tokens[index] for index in ids if index >= len(SPECIAL_TOKENS))
        return " ".join(word[0].upper() if _LABEL.fullmatch(word) else word for word in words)


class Block(nn.Module):
    """One pre-norm transformer layer. Keys and values come from all positions, results from the last `queries` only."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def split(self, x: Tensor) -> Tensor:
        """(batch, length, width) cut into heads: (batch, heads, length, width / heads)."""
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(
        self, x: Tensor, mask: Tensor, past: tuple[Tensor, Tensor] | None, queries: int
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The last `queries` positions after this layer, and the keys and values of all positions so far."""
        normed = self.attention_norm(x)
        key, value = (self.split(part) for part in self.key_value(normed).chunk(2, dim=-1))
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        x, normed = x[:, -queries:], normed[:, -queries:]
        attended = F.scaled_dot_product_attention(
            self.split(self.query(normed)), key, value, attn_mask=mask[:, :, -queries:]
        )
        x = x + self.output(attended.transpose(1, 2).flatten(2))
        return x + self.contract(F.gelu(self.expand(self.feed_forward_norm(x)))), (key, value)


Cache = list[tuple[Tensor, Tensor]]


class Network(nn.Module):
    """The causal transformer. Positions count from the prompt's end, so left padding never shifts them."""

    def __init__(self, vocabulary_size: int, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(vocabulary_size, shape.width)
        self.position = nn.Parameter(torch.empty(shape.prompt_tokens + shape.answer_tokens, shape.width))
        self.blocks = nn.ModuleList(Block(shape.width, shape.heads) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        nn.init.normal_(self.embedding.weight, std=0.1)
        nn.init.normal_(self.position, std=0.1)

    def forward(
        self, ids: Tensor, is_token: Tensor, start: int, queries: int, past: Cache | None = None
    ) -> tuple[Tensor, Cache]:
        """Logits of the last `queries` positions, and the keys and values for the next call.

        Args:
            ids: token ids, (batch, length).
            is_token: which positions seen so far are not padding, (batch, past + length), bool.
            start: index of the first position of `ids` in the position table.
            queries: for how many last positions the next token is wanted.
            past: what the call for the positions before returned.

        Returns:
            Logits (batch, queries, vocabulary) and the cache.
        """
        length, seen = ids.shape[1], is_token.shape[1]
        x = self.embedding(ids) + self.position[start : start + length]
        causal = torch.ones(length, seen, dtype=torch.bool, device=ids.device).tril(seen - length)
        # A padded query would attend to nothing, and a softmax over nothing is NaN: it may attend to itself.
        itself = torch.eye(length, seen, dtype=torch.bool, device=ids.device).roll(seen - length, dims=1)
        mask = ((causal & is_token[:, None]) | itself)[:, None]
        cache: Cache = []
        for index, block in enumerate(self.blocks):
            last = index == len(self.blocks) - 1
            x, kept = block(x, mask, past[index] if past else None, queries if last else length)
            cache.append(kept)
        return F.linear(self.norm(x), self.embedding.weight), cache


class ReferenceModel:
    """A trained network with its vocabulary, ready to answer."""

    def __init__(self, network: Network, vocabulary: Vocabulary, device: str = "cpu") -> None:
        self.vocabulary = vocabulary
        self.shape = network.shape
        self._device = torch.device(device)
        self._network = network.to(self._device).eval()
        self._exact = copy.deepcopy(self._network).double()

    @property
    def network(self) -> Network:
        """The weights that answer; who trains on takes a copy."""
        return self._network

    @classmethod
    def load(cls, folder: Path, device: str = "cpu") -> ReferenceModel:
        """Read `model.safetensors` and `vocabulary.json`.

        Raises:
            ReferenceModelError: a file is missing or unreadable, or the weights do not have this network's shape.
        """
        vocabulary, shape = _read_vocabulary(folder / VOCABULARY_NAME)
        network = Network(len(vocabulary), shape)
        weights = _read_weights(folder / WEIGHTS_NAME)
        _check_weights(folder / WEIGHTS_NAME, network.state_dict(), weights)
        network.load_state_dict(weights)
        return cls(network, vocabulary, device)

    @torch.inference_mode()
    def generate(
        self, prompts: Sequence[str], *, max_tokens: int, dice: Sequence[Dice] | None = None
    ) -> list[Generation]:
        """Answers, one a prompt and in their order; the same whatever else is in the batch.

        A prompt longer than the context keeps its last tokens. An answer ends at the end token ("stop"), or after
        `max_tokens` or the network's own limit of answer tokens, whichever comes first ("length"). Greedy where there
        are no `dice`, of which there is one for each prompt.

        Raises:
            ReferenceModelError: `max_tokens` is below 1.
        """
        if max_tokens < 1:
            raise ReferenceModelError(f"max_tokens is {max_tokens}: ask for at least 1 token")
        if not prompts:
            return []
        encoded = [self._encode(prompt) for prompt in prompts]
        thrown = dice or [Dice()] * len(prompts)
        steps = min(max_tokens, self.shape.answer_tokens)
        ids, is_token = self._pad(encoded)
        start = self.shape.prompt_tokens - ids.shape[1]
        written: list[list[int]] = [[] for _ in prompts]
        cache: Cache | None = None
        for _ in range(steps):
            logits, cache = self._network(ids, is_token, start, 1, cache)
            chosen = self._choose(logits[:, -1], encoded, written, thrown)
            for answer, token in zip(written, chosen, strict=True):
                if not answer or answer[-1] != self.vocabulary.end_id:
                    answer.append(token)
            if all(answer[-1] == self.vocabulary.end_id for answer in written):
                break
            start += ids.shape[1]
            ids = torch.tensor(chosen, device=self._device)[:, None]
            is_token = F.pad(is_token, (0, 1), value=True)
        return [self._generation(prompt, answer) for prompt, answer in zip(encoded, written, strict=True)]

    def _encode(self, prompt: str) -> list[int]:
        ids = self.vocabulary.encode(prompt[-_MAX_TAIL_CHARACTERS:])[-self.shape.prompt_tokens :]
        return ids or [self.vocabulary.unknown_id]

    def _pad(self, encoded: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        length = max(map(len, encoded))
        rows = [[self.vocabulary.pad_id] * (length - len(row)) + list(row) for row in encoded]
        lengths = torch.tensor([len(row) for row in encoded])
        is_token = torch.arange(length) >= length - lengths[:, None]
        return torch.tensor(rows, device=self._device), is_token.to(self._device)

    def _choose(
        self, logits: Tensor, encoded: list[list[int]], written: list[list[int]], dice: Sequence[Dice]
    ) -> list[int]:
        noises = [
            thrown.noise(prompt, len(answer), len(self.vocabulary))
            for thrown, prompt, answer in zip(dice, encoded, written, strict=True)
        ]
        for row, noise in enumerate(noises):
            if noise is not None:
                logits[row] += torch.from_numpy(noise).to(logits)
        best = logits.topk(2, dim=-1)
        chosen: list[int] = best.indices[:, 0].tolist()
        close = (best.values[:, 0] - best.values[:, 1] < _TIE_MARGIN).nonzero().flatten().tolist()
        for row in close:
            if self.vocabulary.end_id not in written[row]:
                chosen[row] = self._choose_exactly(encoded[row] + written[row], len(encoded[row]), noises[row])
        return chosen

    def _choose_exactly(self, ids: list[int], prompt_length: int, noise: NDArray[np.float64] | None) -> int:
        row, is_token = self._pad([ids])
        logits, _ = self._exact(row, is_token, self.shape.prompt_tokens - prompt_length, 1)
        last = logits[0, -1]
        return int((last if noise is None else last + torch.from_numpy(noise).to(last)).argmax())

    def _generation(self, prompt: list[int], answer: list[int]) -> Generation:
        stopped = answer[-1] == self.vocabulary.end_id
        return Generation(self.vocabulary.decode(answer), "stop" if stopped else "length", len(prompt), len(answer))


def weights_digest(folder: Path) -> str:
    """`sha256:` and the hex digest of the weights file's bytes: the model version that a suite pins.

    Raises:
        ReferenceModelError: the folder has no weights.
    """
    try:
        return "sha256:" + hashlib.sha256((folder / WEIGHTS_NAME).read_bytes()).hexdigest()
    except OSError as error:
        raise ReferenceModelError(_unreadable(folder / WEIGHTS_NAME, error)) from error


def _unreadable(path: Path, error: Exception) -> str:
    return (
        f"cannot read {path}: {error}; point to a version folder of a reference model, "
        "or make one with scripts/train_reference_models.py"
    )


def _read_vocabulary(path: Path) -> tuple[Vocabulary, ModelShape]:
    try:
        document = json.loads(path.read_text("utf-8"))
        sizes = document["shape"]
        shape = ModelShape(*(int(sizes[name]) for name in ModelShape._fields))
        if not all(1 <= size <= 4096 for size in shape) or shape.width % shape.heads:
            raise ValueError(f"impossible network sizes {tuple(shape)}")
        return Vocabulary(document["tokens"]), shape
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReferenceModelError(_unreadable(path, error)) from error


def _read_weights(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise ReferenceModelError(_unreadable(path, error)) from error


def _check_weights(path: Path, expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    for name in sorted(expected.keys() | found.keys()):
        want = tuple(expected[name].shape) if name in expected else None
        have = tuple(found[name].shape) if name in found else None
        if want != have:
            raise ReferenceModelError(
                f"{path}: tensor {name!r} has shape {have}, the vocabulary beside it needs {want}; "
                "take both files from one training run"
            )
