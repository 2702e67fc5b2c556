"""A router without a model, for tests: a clean one passes the problem on word for word, a noisy one edits it by rule.

It is no language model, and what it writes says nothing of one. It makes the protocol's messages reproducible: the
same number and problem give the same message. Triton serves it from a copy of this very file.
"""

from __future__ import annotations

import re
from pathlib import Path

from proctor.domain.item import Item
from proctor.domain.labels import labelled
from proctor.perturbation.strategies.delete import Delete
from proctor.perturbation.strategies.distractor import Distractor
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.typo import Typo

SCRIPTED_ROUTER = "scripted-router"
_ASKED = re.compile(r"\AYou are (?P<noisy>noisy )?router (?P<number>\d+)\.")
_PROBLEM = re.compile(r"\nQuestion: (?P<stem>.*?)\nOptions:\n(?P<options>.*?)\n</", re.DOTALL)
_RULES = (Delete(share=0.15), Typo(), Distractor())


def message(prompt: str) -> str:
    """What the router writes to a prompt of `proctor.text.router_prompts`."""
    asked, problem = _ASKED.match(prompt), _PROBLEM.search(prompt)
    assert asked is not None
    assert problem is not None
    options = tuple(line.split(" ", 1)[1] for line in problem["options"].split("\n"))
    stem = problem["stem"]
    if asked["noisy"]:
        item = Item(item_id="asked", question=stem, choices=options, target=options[0])
        for rule in _RULES:
            make = rule.maker(stem, item)
            made = make(Draws(rule.name, asked["number"], stem)) if make is not None else None
            stem = made.question if made is not None else stem
    return "\n".join([f"Question: {stem}", "Options:", *labelled(options, None)])


_MODEL_PY = '''"""Triton's entry to the scripted router."""

import sys
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        sys.path.insert(0, str(Path(args["model_repository"]) / args["model_version"]))
        from scripted_router import message

        self._message = message

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            prompt = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().ravel()[0].decode("utf-8")
            strings = {"text_output": self._message(prompt), "finish_reason": "stop"}
            tensors = [pb_utils.Tensor(name, np.array([said.encode()], dtype=object)) for name, said in strings.items()]
            tensors += [
                pb_utils.Tensor(name, np.array([1], dtype=np.uint32))
                for name in ("num_input_tokens", "num_output_tokens")
            ]
            response = pb_utils.InferenceResponse(output_tensors=tensors)
            sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
'''


def write_scripted_router(bundle: Path) -> None:
    """Lay the router down as `models/<SCRIPTED_ROUTER>` of a bundle, decoupled as vLLM is."""
    from proctor.inference.reference.triton_repository import model_config

    folder = bundle / "models" / SCRIPTED_ROUTER
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(model_config(SCRIPTED_ROUTER, "sha256:" + "7" * 64), "utf-8")
    (folder / "1" / "model.py").write_text(_MODEL_PY, "utf-8")
    (folder / "1" / "scripted_router.py").write_bytes(Path(__file__).read_bytes())
