"""Train a small model on random words for some steps, and generate a text."""

import builtins
import random
import typing
from pathlib import Path

from substitutes import here, run, without

here()
without("sentencepiece", "mlflow", "wandb", "flask")
random.seed(0)
Path("data").mkdir(exist_ok=True)
Path("models").mkdir(exist_ok=True)
words = "the game began development in an old town near the river with few people".split()
Path("data/tiny.txt").write_text(
    "\n".join(" ".join(random.choices(words, k=8)) + "." for _ in range(120)), encoding="utf-8"
)
builtins.input = lambda *arguments: ""
# An annotation of the project is wrong: Python 3.14 would not evaluate it.
typing.Optional = typing.Union
import arclm

LARGE = arclm.Config


def small(**options: object) -> arclm.Config:
    """The configuration of the script, with small sizes."""
    sizes = {"embed_dim": 16, "num_blocks": 2, "block_size": 12, "batch_size": 16, "num_epochs": 2}
    files = {"data_path": "data/tiny.txt", "tokenizer_type": "word", "tokenizer_path": "models/tokenizer.json"}
    return LARGE(**(options | sizes | files | {"training_log_interval": 2, "checkpoint_batch_interval": 10}))


arclm.Config = small
run("train.py")
