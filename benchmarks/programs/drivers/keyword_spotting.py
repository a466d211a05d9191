"""Train on random features in place of those of sounds: `keyword_spotting.py large|small`."""

import runpy
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import torch

for name in ("clearml", "librosa", "python_speech_features"):
    sys.modules[name] = MagicMock()

import kws.datasets.speech_commands
import kws.libs.dataloader
import kws.libs.signal_handler

IS_SMALL = sys.argv[1] == "small"


class Sounds(torch.utils.data.Dataset):
    """Features of as many sounds as the data set has for twelve words, and their words."""

    def __init__(self, dataset: object, processor: object, split: str) -> None:
        self.count = (240 if IS_SMALL else 36_923) if split == "training" else 24 if IS_SMALL else 4_445

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.rand(1, 49, 13), index % 12


class Few(torch.utils.data.DataLoader):
    """A loader whose batches suit a CPU."""

    def __init__(self, data: object, **options: object) -> None:
        super().__init__(data, **(options | {"batch_size": 4, "num_workers": 0}))


words = SimpleNamespace(words_list=["word"] * 12, root_dir="data")
kws.datasets.speech_commands.SpeechCommandDataset = lambda config, folder: words
kws.libs.signal_handler.AudioProcessor = lambda folder, config: None
kws.libs.dataloader.SpeechCommandsLoader = Sounds
if IS_SMALL:
    torch.utils.data.DataLoader = Few
sys.argv = ["train.py"]
if __name__ == "__main__":
    runpy.run_path("train.py", run_name="__main__")
