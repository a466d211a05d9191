"""Train three small models on random ratings for some steps, and evaluate them."""

import pickle
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import torch
from substitutes import here, run

here()
sys.path.insert(0, str(Path("src").resolve()))
matplotlib.use("Agg")
torch.manual_seed(0)
np.random.seed(0)
USERS, MOVIES = 12, 20
pairs = np.random.permutation(USERS * MOVIES)
ratings = pd.DataFrame({"userIdx": pairs // MOVIES, "movieIdx": pairs % MOVIES})
ratings = ratings.assign(userId=ratings.userIdx + 1, movieId=ratings.movieIdx + 1, timestamp=0)
ratings["rating"] = np.random.randint(1, 6, len(ratings))
ratings["rating_norm"] = (ratings.rating - 1) / 4
folder = Path("data/processed")
folder.mkdir(parents=True, exist_ok=True)
for name, first, last in (("train", 0, 160), ("validation", 160, 200), ("test", 200, 240)):
    ratings[first:last].to_csv(folder / f"{name}.csv", index=False)
movies = pd.DataFrame({"movieId": range(1, MOVIES + 1), "title": "film", "genres": "all"})
movies.to_csv(folder / "movies.csv", index=False)
users = {number + 1: number for number in range(USERS)}
films = {number + 1: number for number in range(MOVIES)}
names = {"user_to_idx": users, "idx_to_user": {row: name for name, row in users.items()}}
names |= {"movie_to_idx": films, "idx_to_movie": {row: name for name, row in films.items()}}
(folder / "mappings.pkl").write_bytes(pickle.dumps(names | {"rating_min": 1, "rating_max": 5}))
for model in ("ncf", "gat", "ensemble"):
    sizes = {"model": model, "epochs": 2, "batch_size": 16, "embedding_dim": 8, "gat_heads": 2, "gat_layers": 2}
    words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    sys.argv = ["train.py", *words, "--output_dir", "out", "--use_cuda", "--layer_sizes", "16", "8"]
    run("src/train.py")
