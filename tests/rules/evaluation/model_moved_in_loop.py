"""Models that are moved in each step, and models that are moved once."""

from functools import lru_cache

import torch
from fastapi import FastAPI
from sentence_transformers import SentenceTransformer
from torch import nn
from torch.utils.data import DataLoader
from transformers import AutoModel, AutoTokenizer, pipeline


def predict(model: nn.Module, loader: DataLoader) -> None:
    with torch.inference_mode():
        for x in loader:
            model.to("cuda")  # audit: TPF504
            model(x.cuda())


class Perceptual(nn.Module):
    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = nn.Sequential(network, nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.network = self.network.to(x.device)  # audit: TPF504
        return self.network(x)


def loaded(loader: DataLoader, path: str) -> None:
    model = nn.Linear(3, 4)
    for x in loader:
        model.load_state_dict(torch.load(path))  # error: TPF504
        model(x)


def cast(loader: DataLoader) -> None:
    model = nn.Linear(3, 4)
    for x in loader:
        model.half()  # audit: TPF504
        model(x.half())


def once(model: nn.Module, loader: DataLoader) -> None:
    model.to("cuda")
    for x in loader:
        model(x.cuda())


def each_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    for epoch in range(10):
        model.cuda()
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()


def offloaded(model: nn.Module, loader: DataLoader) -> None:
    for x in loader:
        model.cuda()
        model(x.cuda())
        model.cpu()


def made_anew(sizes: list[int], loader: DataLoader) -> None:
    for x in loader:
        model = nn.Linear(3, 4)
        model.cuda()
        model(x.cuda())
        nn.CrossEntropyLoss().to(x.device)(x, x)


def shards(model: nn.Module, loader: DataLoader) -> None:
    for path in loader:
        model(torch.load(path))


def answer(text: str):
    classify = pipeline("text-classification", device=0)  # error: TPF504
    return classify(text)


def answered(text: str, name: str):
    """Another model for each name."""
    return pipeline("text-classification", model=name)(text)


def serve(texts: list[str], loader: DataLoader, name: str) -> None:
    for x in loader:
        model = AutoModel.from_pretrained(name).cuda()  # error: TPF504
        model(x.cuda()).last_hidden_state.sum().backward()
        print([(answer(text), answered(text, name)) for text in texts])


def handle(text: str):
    return pipeline("summarization", device=0)(text)  # error: TPF504


def handle_all(queue) -> None:
    for text in queue:
        handle(text)


def in_a_retry(path: str):
    for attempt in range(3):
        try:
            return torch.load(path)
        except OSError:
            print(attempt)


_KEPT = {}
APP = FastAPI()


def kept(x: torch.Tensor):
    if "model" not in _KEPT:
        _KEPT["model"] = AutoModel.from_pretrained("gpt2").cuda()
    return _KEPT["model"](x)


def kept_each_step(loader: DataLoader) -> None:
    model = AutoModel.from_pretrained("gpt2").cuda()
    for x in loader:
        model(kept(x.cuda())).last_hidden_state.sum().backward()


@APP.post("/summary")
async def summary(text: str):
    summarize = pipeline("summarization", device=0)  # error: TPF504
    return summarize(text)


@APP.route("/reload")
def reload():
    APP.model = AutoModel.from_pretrained(APP.name).cuda()


@APP.get("/models")
def other(name: str):
    return pipeline("summarization", model=name, device=0)("text")


@APP.command("summary")
def program(text: str):
    return pipeline("summarization", device=0)(text)


@APP.post("/vector")
def vector(text: str):
    encoder = SentenceTransformer("all-MiniLM-L6-v2", device="cuda")  # error: TPF504
    return encoder.encode(text).tolist()


ENCODER = SentenceTransformer("all-MiniLM-L6-v2", device="cuda")


@APP.post("/vectors")
def vectors(texts: list[str]):
    return ENCODER.encode(texts).tolist()


def of_the_disk():
    tokenizer = AutoTokenizer.from_pretrained("gpt2")  # error: TPF504
    return tokenizer, AutoModel.from_pretrained("gpt2").cuda()  # error: TPF504


@APP.post("/label")
def label(text: str):
    tokenizer, model = of_the_disk()
    return model(**tokenizer(text, return_tensors="pt").to("cuda")).last_hidden_state.mean()


@lru_cache(maxsize=1)
def loaded_once():
    return AutoModel.from_pretrained("gpt2").cuda()


@APP.post("/labels")
def labels(ids: list[int]):
    return loaded_once()(torch.tensor([ids], device="cuda")).last_hidden_state.mean()


def fill():
    APP.encoder = SentenceTransformer("all-MiniLM-L6-v2", device="cuda")


@APP.post("/fill")
def filled():
    fill()
