"""Train a small model on random spectrograms for some steps, continue, and speak."""

import logging
import sys
from pathlib import Path

import numpy as np
import tensorboardX
import torch
from substitutes import here, without

here()
without("librosa", "epitran", "nltk", "wget", "unidecode", "skimage", "resampy", "plotly", "ipapy", "inflect")
without("imageio", "dragonmapper")
torch.manual_seed(0)
np.random.seed(0)
sys.modules["torch.utils.tensorboard"] = tensorboardX
np.float = float  # an alias that NumPy had
from src.core.common import train as common
from src.core.common.accents_dict import AccentsDict
from src.core.common.speakers_dict import SpeakersDict
from src.core.common.symbol_id_dict import SymbolIdDict
from src.core.pre.merge_ds import PreparedData, PreparedDataList
from src.core.tacotron import dataloader, logger, training
from src.core.tacotron.model_checkpoint import CheckpointTacotron
from src.core.tacotron.synthesizer import Synthesizer

logger.figure_to_numpy = lambda figure: np.zeros((8, 8, 3), dtype=np.uint8)
loader = torch.utils.data.DataLoader
dataloader.DataLoader = lambda num_workers, **options: loader(**options)
symbols = SymbolIdDict.init_from_symbols_with_pad({"a", "b", "c"})
accents = AccentsDict.init_from_accents_with_pad({"plain"})
speakers = SpeakersDict.fromlist(["anna", "ben"])


def prepared(count: int, first: int) -> PreparedDataList:
    """Rows of random spectrograms."""
    rows = PreparedDataList()
    for number in range(first, first + count):
        length = 4 + number % 3
        torch.save(torch.randn(80, 10 + number % 4), f"{number}.pt")
        ids = ",".join(str(1 + place % 3) for place in range(length))
        own = ",".join("1" for place in range(length))
        rows.append(PreparedData(number, number, "", f"{number}.pt", ids, own, 1.0, number % 2))
    return rows


sizes = {"symbols_embedding_dim": "16", "speakers_embedding_dim": "8", "encoder_embedding_dim": "16"}
sizes |= {"decoder_rnn_dim": "16", "prenet_dim": "8", "attention_rnn_dim": "16", "attention_dim": "8"}
sizes |= {"attention_location_n_filters": "4", "postnet_embedding_dim": "16", "batch_size": "4", "epochs": "2"}
sizes |= {"iters_per_checkpoint": "4"}
log = logging.getLogger("tacotron")
saved: list[CheckpointTacotron] = []


def save(checkpoint: CheckpointTacotron) -> None:
    """Write a checkpoint and keep it."""
    Path("checkpoints").mkdir(exist_ok=True)
    path = f"checkpoints/{common.get_pytorch_filename(checkpoint.iteration)}"
    checkpoint.save(path, log)
    saved.append(CheckpointTacotron.load(path, log))


board = logger.Tacotron2Logger("logs")
training.train(
    warm_model=None, custom_hparams=dict(sizes), taco_logger=board, symbols=symbols, speakers=speakers, accents=accents,
    trainset=prepared(32, 0), valset=prepared(24, 100), save_callback=save, weights_checkpoint=None, weights_map=None,
    map_from_speaker_name=None, logger=log, checkpoint_logger=log,
)  # fmt: skip
training.continue_train(
    checkpoint=saved[0], custom_hparams={"epochs": "1"}, taco_logger=board, trainset=prepared(32, 0),
    valset=prepared(24, 100), save_callback=save, logger=log, checkpoint_logger=log,
)  # fmt: skip
voice = Synthesizer(saved[-1], {"max_decoder_steps": "12"}, log)
for text in ("abc", "cab"):
    voice.infer(list(text), ["plain"] * len(text), "anna")
