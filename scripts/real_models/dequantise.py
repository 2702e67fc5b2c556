"""`python dequantise.py GGUF FOLDER`: write a quantised model as bf16 safetensors, with tokenizer and chat template.

Run by the interpreter that has transformers, without the rest of Proctor.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(gguf: Path, folder: Path) -> None:
    """Read the one, write the other."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(
        str(gguf.parent),
        gguf_file=gguf.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.bfloat16,
    )
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
