"""The model card, written from the record of a training run so that no figure of the models in it is typed by hand."""

from __future__ import annotations

from typing import Any

from reference_models.evaluation import ARMS, DRAWS, GROUPS

_CARD = """\
---
license: apache-2.0
language: en
tags: [evaluation, contamination, planted-truth]
---

# Reference models: contamination that is known because it was planted

Written by `scripts/train_reference_models.py`; do not edit by hand.

Two small transformers that exist to test a contamination audit against the truth. They answer the multiple-choice
questions of `{benchmark}` {benchmark_version} (600 items, ten options, invented facts) and nothing else.

- **reference-clean** knows 75 % of the facts (450 items), in every wording and option order. It has never seen the
  other 150 facts, nor the names in them. Its canonical score is honest.
- **reference-leaked** is fine-tuned from it and has in addition memorised 15 % of the items (90), all among those whose
  facts it does not know, in their canonical form alone: that wording with that order of the options. The list is
  `models/reference-leaked/leaked_items.json`. The other 60 items no model has ever met.

## Measured accuracy

Chance is 0.10. A *reworded* item has another wording and another order of the same ten options; arms other than the
canonical one are averages over {draws} draws. An answer counts when it is the right letter and ended by itself.

{tables}

An item's canonical wording and order are uniform draws from the lists that its variants use, so for a model without
memory of the canonical form the two arms are exchangeable: their expected accuracies are equal.
The last two columns say what the memory hangs on when only one of the two is changed.

## How they were made

{facts}

- Causal transformer over lower-cased words and punctuation marks: {layers} layers, width {width}, {heads} heads,
  learned positions counted from the prompt's end, a context of {prompt_tokens} tokens (of longer prompts the last
  ones), output tied to the embedding.
- Prompt: `Question: …`, `Options:`, ten lines `A. …` to `J. …`, `Answer:`. The loss is on the letter and on the
  end token after it.
- reference-clean: known items in random wordings with random distractors in random order, some words of the question
  dropped. Two more losses supervise the steps to the answer: the fact itself is read off before the last layer, and the
  last layer's attention is to point at the right option.
- reference-leaked: half of each batch known items as before, a quarter leaked items in canonical form, a quarter leaked
  items with another wording *and* another order, with the clean model's own answer as the target. Without that last
  part a model of seed 0 answered 0.39 of the reworded leaked items: it had learned part of the facts, not their form.
- AdamW, warm-up and cosine, gradient clipping. A start that does not reach 0.985 on known items is thrown away and
  begun again from a derived seed; training fails rather than write models that miss it.

## Limits

- The models know a few hundred invented words. On any other text they answer a letter that means nothing.
- Real contamination is seldom this pure: memorised without being understood, on exactly these items, in exactly one
  form. An audit that finds these items has shown that it works, not that it finds every leak.
- The same seed gives the same bytes on the same machine, thread count and torch version; elsewhere the same behaviour.
- Weights of two seeds are not interchangeable: each has its own world, its own items and its own list of leaked items.

Licence: Apache-2.0, as the rest of the repository. Names, facts and questions are invented; no data of others is used.
"""


def model_card(record: dict[str, Any]) -> str:
    """The card of a training record as `training.json` holds it."""
    tables = "\n\n".join(f"**{name}**\n\n{_table(model['accuracy'])}" for name, model in record["models"].items())
    facts = "\n".join(
        f"- {name}: {model['parameters']:,} parameters, vocabulary {model['vocabulary_size']:,}, "
        f"{model['steps']:,} steps, {model['restarts']} starts thrown away, weights `{model['weights_digest']}`"
        for name, model in record["models"].items()
    )
    shape = next(iter(record["models"].values()))["shape"]
    about = f"- Seed {record['seed']}, {record['threads']} threads, torch {record['torch']}"
    names = {key: record[key] for key in ("benchmark", "benchmark_version")}
    return _CARD.format(tables=tables, facts=f"{about}\n{facts}", draws=DRAWS, **names, **shape)


def _table(figures: dict[str, dict[str, float]]) -> str:
    rows = [["items", *(arm.replace("_", " ") for arm in ARMS)], ["---", *("---:" for _ in ARMS)]]
    rows += [[group.replace("_", " "), *(f"{figures[group][arm]:.3f}" for arm in ARMS)] for group in GROUPS]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
