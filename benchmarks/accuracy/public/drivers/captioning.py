"""Train three small decoders on noise with random captions, test them and caption pictures."""

import random
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from PIL import Image
from substitutes import here, run, vision, without

here()
without("nltk", "spacy")
vision()
random.seed(0)
torch.manual_seed(0)
np.random.seed(0)
import torchvision.models

WORDS = "a dog runs over the green grass while two small children play with red balls near water".split()
folder = Path("res/Images")
folder.mkdir(parents=True, exist_ok=True)
rows = ["image,caption"]
for number in range(92):
    Image.fromarray(np.random.randint(0, 255, (24, 24, 3), dtype=np.uint8)).save(folder / f"{number}.jpg")
    rows += [f"{number}.jpg,{' '.join(random.choices(WORDS, k=7))}" for _ in range(5)]
Path("res/captions.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


class Encoder(torch.nn.Module):
    """A network with as many features as the large one."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Conv2d(3, 1280, 32, stride=32)


torchvision.models.efficientnet_b0 = lambda weights: Encoder()


def tokens(text: str) -> list[SimpleNamespace]:
    """The words of a text, as tokens."""
    return [SimpleNamespace(is_alpha=word.isalpha(), lower_=word.lower()) for word in text.split()]


import spacy

spacy.blank = lambda language: SimpleNamespace(pipe=lambda texts, disable: map(tokens, texts))
import nltk.translate
import nltk.translate.bleu_score
import nltk.translate.nist_score

nltk.translate.meteor = lambda true, prediction: 0.1
nltk.translate.bleu_score.corpus_bleu = lambda true, prediction, weights: 0.1
nltk.translate.nist_score.corpus_nist = lambda true, prediction, n: 0.1
for approach in ("lstm", "gru", "transformer"):
    shutil.rmtree(".out", ignore_errors=True)
    for name in [name for name in sys.modules if name == "__param__" or name.split(".")[0] == "src"]:
        del sys.modules[name]
    sys.argv = ["__main__.py", approach, "--epochs", "2", "--batch", "6"]
    import __param__

    __param__.MODEL.HIDDEN_DIM, __param__.MODEL.EMBEDDING_DIM = 16, 8
    run("__main__.py")
