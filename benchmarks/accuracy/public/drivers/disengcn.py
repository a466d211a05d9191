"""Train a small network on a random graph for some steps."""

import pickle
import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from substitutes import here, without

here()
without("fire")
np.random.seed(0)
place = Path("datasets/Cora/raw")
place.mkdir(parents=True, exist_ok=True)
words = (np.random.rand(60, 12) < 0.3).astype(np.float32)
classes = np.eye(3)[np.random.randint(0, 3, 60)]
parts = {"x": csr_matrix(words[:20]), "y": classes[:20], "allx": csr_matrix(words[:40]), "ally": classes[:40]}
parts |= {"tx": csr_matrix(words[40:]), "ty": classes[40:]}
parts["graph"] = {node: list(np.random.randint(0, 60, 4)) for node in range(60)}
for name, part in parts.items():
    (place / f"ind.cora.{name}").write_bytes(pickle.dumps(part))
(place / "ind.cora.test.index").write_text("\n".join(map(str, range(40, 60))))
sys.argv = ["main.py"]
import main

main.main(nepoch=12, num_layers=2, init_k=2, hid_dim=8, routit=3)
