"""How large prompts may be, alone and together: checked before anything is made of what a suite asks for. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proctor.domain.answer_bounds import CHARACTER_BYTES
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.labels import LabelScheme
from proctor.domain.suite import PromptSection, Suite
from proctor.text.prompt import prompt_bytes, render_prompt, utf8_bytes

#: One prompt: a quarter of a million tokens of prose, which is what models with long contexts take.
MAX_PROMPT_BYTES: Final = 1 << 20
#: Items with the rewordings that the suite asks of them. The perturbation service has them in memory all at once; a
#: million trials of a benchmark of short problems come to a quarter of it.
MAX_WORDINGS_BYTES: Final = 1 << 29
#: All prompts of an audit, which lie in the artifact store until they are cleared away.
MAX_PROMPTS_BYTES: Final = 1 << 36
#: Characters of a question with its options that no template makes more of than a process has room for, were it shown
#: 2,000 times: such a prompt is made first and measured then, because measuring costs as much as making.
_SHORT: Final = 4096


def check_sizes(items: Sequence[Item], suite: Suite, fresh: Sequence[Item] = (), control: Sequence[Item] = ()) -> None:
    """Refuse a suite whose prompts would be too large, each by itself or all together.

    Rewordings are counted as long as what they reword; each is measured again when its prompt is planned.

    Raises:
        BadInputError: with the item, what it comes to, and what to change.
    """
    wordings = 1 + suite.perturbation.num_variants_per_item
    texts = prompts = 0
    for item in (*items, *control):
        prompts += wordings * _checked(suite.prompt, item.item_id, item.question, item.choices, None)
        texts += wordings * (utf8_bytes(item.question) + sum(map(utf8_bytes, item.choices)))
    prompts *= suite.decoding.replicates
    if (check := suite.perturbation.answering_check) is not None:
        prompts *= 1 + check.samples * len(check.solvers)
    for item in fresh:
        prompts += _checked(suite.prompt, item.item_id, item.question, item.choices, None)
    _check_sum(texts, MAX_WORDINGS_BYTES, "items and the rewordings of them", len(items), suite)
    _check_sum(prompts, MAX_PROMPTS_BYTES, "prompts of the items and of the rewordings", len(items), suite)


def bounded_prompt(
    section: PromptSection, item_id: str, question: str, choices: Sequence[str], labels: LabelScheme | None = None
) -> str:
    """The prompt of one question, unless it would be too large.

    Raises:
        BadInputError: it would have more than MAX_PROMPT_BYTES, or as `render_prompt`.
    """
    if len(question) + sum(map(len, choices)) > _SHORT:
        _checked(section, item_id, question, choices, labels)
    prompt = render_prompt(section, question, choices, labels)
    if len(prompt) > MAX_PROMPT_BYTES // CHARACTER_BYTES:
        _checked(section, item_id, question, choices, labels)
    return prompt


def check_asked(item_id: str, prompt: str, stage: str) -> None:
    """Refuse a prompt of a plug-in's stage that is too large.

    Raises:
        BadInputError: it has more than MAX_PROMPT_BYTES.
    """
    if (size := utf8_bytes(prompt)) > MAX_PROMPT_BYTES:
        raise BadInputError(
            f"item {item_id!r}: the prompt of the stage {stage!r} has {size:,} bytes, and {MAX_PROMPT_BYTES:,} are the "
            "most; leave the stage out of protocol_config.stages, or have its plug-in ask less"
        )


def check_written(item_id: str, prompt: str, writers: str) -> str:
    """A prompt that was put together from what models wrote, unless it is too large.

    Args:
        item_id: whose item it asks.
        prompt: the prompt.
        writers: what wrote parts of it, in words.

    Raises:
        BadInputError: it has more than MAX_PROMPT_BYTES.
    """
    if (size := utf8_bytes(prompt)) > MAX_PROMPT_BYTES:
        raise BadInputError(
            f"item {item_id!r}: the prompt that {writers} wrote for it has {size:,} bytes, and {MAX_PROMPT_BYTES:,} "
            "are the most; lower protocol_config.router.decoding.max_tokens"
        )
    return prompt


def _checked(
    section: PromptSection, item_id: str, question: str, choices: Sequence[str], labels: LabelScheme | None
) -> int:
    size = prompt_bytes(section, question, choices, labels)
    if size > MAX_PROMPT_BYTES:
        raise BadInputError(
            f"item {item_id!r}: its prompt would have {size:,} bytes, and {MAX_PROMPT_BYTES:,} are the most; leave the "
            "item out, or have prompt_config show the question less often and shorter examples"
        )
    return size


def _check_sum(size: int, most: int, what: str, n_items: int, suite: Suite) -> None:
    if size > most:
        raise BadInputError(
            f"the {what} would come to {size:,} bytes ({n_items:,} items, "
            f"{suite.perturbation.num_variants_per_item} rewordings each), and {most:,} are the most; lower "
            "dataset_config.sample_size or perturbation_config.num_variants_per_item"
        )
