"""Train word vectors on a random text for some steps."""

import random
import sys
from pathlib import Path

import numpy as np
from substitutes import here, run

here()
np.float = float  # an alias that NumPy had
random.seed(0)
base = Path("pyw2v")
outputs = ("output/checkpoints", "output/embedding", "output/log", "output/figure")
for folder in ("dataset/raw", "dataset/processed", *outputs):
    (base / folder).mkdir(parents=True, exist_ok=True)
words = [f"word{number}" for number in range(40)]
lines = [" ".join(random.choices(words, k=8)) for _ in range(60)]
(base / "dataset/raw/zhihu.txt").write_text("\n".join(lines), encoding="utf-8")
import pyw2v.io.dataset

count = pyw2v.io.dataset.np.round
pyw2v.io.dataset.np.round = lambda values: count(values / 1e4)  # the table of negative samples has 1e8 words
sys.argv = ["train_word2vec.py", "--epochs", "1", "--embedd_dim", "8", "--sample", "1"]
run("train_word2vec.py")
