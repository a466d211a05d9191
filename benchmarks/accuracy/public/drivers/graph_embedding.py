"""Train models on random triples for some steps, and test them."""

import pickle
import random
import sys
from pathlib import Path

import numpy as np
import torch
from substitutes import here, run

here()
torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
import config

entities, relations = config.datasets_param.d["toy"]["ent_tot"], config.datasets_param.d["toy"]["rel_tot"]
folder = Path(config.datasets_param.d["toy"]["root"])
folder.mkdir(parents=True, exist_ok=True)
Path("checkpoint").mkdir(exist_ok=True)
for part, count in (("train", 48), ("valid", 12), ("test", 12)):
    triples = [tuple(map(random.randrange, (entities, relations, entities))) for _ in range(count)]
    rows = {
        number: {"h": h, "r": r, "t": t, "h_multi_1": [h], "t_multi_1": [t]} for number, (h, r, t) in enumerate(triples)
    }
    (folder / f"{part}.pkl").write_bytes(pickle.dumps(rows))
    lines = [str(count), *("\t".join(map(str, triple)) for triple in triples)]
    (folder / f"{part}2index.txt").write_text("\n".join(lines), encoding="utf-8")
sizes = {"data": "toy", "times": 2, "batch_size": 4, "test_batch_size": 2, "eval_step": 1, "embedding_dim": 8}
sizes |= {"worker": 0}
for model, loss in (("TransE", "sploss"), ("DistMult", "sploss"), ("ComplEx", "sfmargin")):
    words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    sys.argv = ["main.py", *words, "--model", model, "--loss", loss, "--train_flag", "--test_flag", "--clip"]
    run("main.py")
