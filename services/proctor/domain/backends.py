"""The kinds of backend that an endpoint may need: how a model is spoken to."""

from __future__ import annotations

from typing import Literal

Backend = Literal["triton", "openai", "infer", "in_process"]
