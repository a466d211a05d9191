"""Transcribe noise with a small model that was not trained."""

import torch
import whisper
from whisper.model import ModelDimensions, Whisper

if __name__ == "__main__":
    torch.manual_seed(0)
    model = Whisper(ModelDimensions(80, 1500, 32, 2, 2, 51865, 448, 32, 2, 2)).to("cuda").eval()
    torch.nn.init.normal_(model.decoder.positional_embedding)
    audio = torch.randn(2 * whisper.audio.SAMPLE_RATE) / 10
    options = {"language": "en", "temperature": 0.0, "sample_len": 12}
    model.transcribe(audio, word_timestamps=True, **options)
    model.transcribe(audio, beam_size=2, **options)
    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(audio)).to(model.device)
    whisper.decode(model, mel, whisper.DecodingOptions(temperature=0.5, best_of=2, sample_len=12))
    whisper.detect_language(model, mel)
