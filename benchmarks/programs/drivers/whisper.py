"""Transcribe noise some times with a model that was not trained: `whisper.py large|small`."""

import sys

import torch
import whisper
from whisper.model import ModelDimensions, Whisper

SIZES = {
    "large": ModelDimensions(80, 1500, 512, 8, 6, 51865, 448, 512, 8, 6),
    "small": ModelDimensions(80, 1500, 32, 2, 2, 51865, 448, 32, 2, 2),
}

if __name__ == "__main__":
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Whisper(SIZES[sys.argv[1]]).to(device).eval()
    torch.nn.init.normal_(model.decoder.positional_embedding)
    options = {"language": "en", "temperature": 0.0, "sample_len": 32, "fp16": device == "cuda"}
    for _ in range(4 if sys.argv[1] == "large" else 2):
        audio = torch.randn(10 * whisper.audio.SAMPLE_RATE) / 10
        model.transcribe(audio, **options)
