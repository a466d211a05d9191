"""Train two models on random sounds for some steps, evaluate them on pairs, and write the scores of a test."""

import sys
from pathlib import Path

import numpy as np
import torch
import yaml
from substitutes import here, run, without

here()
without("soundfile", "librosa")
torch.manual_seed(0)
np.random.seed(0)
np.float = float  # an alias that NumPy had
import librosa
import soundfile

librosa.load = lambda file, sr, mono: (np.random.randn(400), 16000)
soundfile.read = lambda file: (np.random.randn(20000), 16000)
for folder in (Path("musan/all/noise/some"), Path("musan/all/music/some"), Path("rooms/all/some")):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "one.wav").touch()
sounds = [f"sound{number}.wav" for number in range(48)]
Path("train.txt").write_text("".join(f"speaker{n % 8}\t{name}\n" for n, name in enumerate(sounds)), encoding="utf-8")
pairs = [(a, b) for a, b in zip(sounds[:6], sounds[6:12], strict=True)]
Path("pairs.txt").write_text("".join(f"{n % 2} {a} {b}\n" for n, (a, b) in enumerate(pairs)), encoding="utf-8")
Path("test.txt").write_text("".join(f"{a} {b}\n" for a, b in pairs), encoding="utf-8")
for model in ("VGG_M_40_AAM", "SEResNet34_AP"):
    sizes = yaml.safe_load(Path("learning/configs", f"{model}.yaml").read_text(encoding="utf-8"))
    sizes |= {"max_epoch": 2, "batch_size": 4, "nDataLoaderThread": 0, "max_frames": 100, "test_interval": 1}
    sizes |= {"n_classes": 8, "n_out": 32, "n_mels": 40, "train_list": "train.txt", "test_list": "pairs.txt"}
    sizes |= {"train_path": ".", "test_path": ".", "musan_path": "musan", "rir_path": "rooms"}
    sizes |= {"save_path": f"out/{model}", "output_path": f"out/{model}"}
    Path("small.yaml").write_text(yaml.safe_dump(sizes), encoding="utf-8")
    sys.argv = ["learn.py", "--config", "small.yaml", "--train"]
    run("learn.py")
    Path("small.yaml").write_text(yaml.safe_dump(sizes | {"test_list": "test.txt"}), encoding="utf-8")
    sys.argv = ["learn.py", "--config", "small.yaml", "--test"]
    run("learn.py")
