"""Train two small models on random windows for some steps, score windows and a random series."""

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from substitutes import here, without

here()
without("kagglehub", "seaborn")
mpl.use("Agg")
torch.manual_seed(0)
np.random.seed(0)
import src

windows = {name: np.random.randn(count, 12, 3).astype(np.float32) for name, count in (("train", 60), ("test", 24))}
labels = np.random.randint(0, 2, 24)
data = {"train_sequences": windows["train"], "test_sequences": windows["test"]}
np.savez("nasa.npz", **data, test_labels=labels)
np.savez("power.npz", **data)
for kind, load in (("lightweight", src.load_nasa_npz), ("full", src.load_power_npz)):
    path = "nasa.npz" if kind == "lightweight" else "power.npz"
    train_loader, val_loader, test_loader, meta = load(path, batch_size=4)
    model = src.build_model(kind, input_dim=meta["n_features"], preset="pico")
    trainer, history = src.train(model, train_loader, val_loader, epochs=2, checkpoint_dir=f"checkpoints/{kind}")
    history.display_table(last_n=10)
    history.plot_learning_curves()
    model = src.load_checkpoint(f"checkpoints/{kind}/best_model.pt", kind, input_dim=meta["n_features"], preset="pico")
    src.evaluate(model, test_loader)
    src.detect(model, np.concatenate([windows["test"]] * 20))
    src.extract_features(model, np.concatenate([windows["test"]] * 20), window_size=12)

series = np.sin(np.arange(240) / 7) + 0.1 * np.random.randn(240)
measured = {str(number): [float(value)] for number, value in enumerate(series)}
whole = {"data": {"oCurveData": {"oData": {"73": {"mResult": measured}}}}}
Path("series.json").write_text(json.dumps(whole), encoding="utf-8")
train_loader, val_loader, raw, loader = src.load_timeseries("series.json", window_size=12, batch_size=8)
model = src.build_model("lightweight", input_dim=1, preset="pico")
src.train(model, train_loader, val_loader, epochs=1, checkpoint_dir="checkpoints/series")
src.detect(model, raw, data_loader=loader, window_size=12)
src.extract_features(model, raw, data_loader=loader, window_size=12, pooling="last")
