"""Fine-tune a small text encoder with gradient accumulation, clipping and interval logging.

Batches are dicts and the model returns an output object, as with Hugging Face models.
"""

import argparse
import dataclasses
import logging
import math
import random
from typing import Any, Dict, List, Optional

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Config:
    vocab_size: int = 1000
    hidden_size: int = 96
    num_layers: int = 2
    num_labels: int = 3
    max_length: int = 48
    batch_size: int = 8
    gradient_accumulation_steps: int = 4
    learning_rate: float = 1e-3
    warmup_ratio: float = 0.1
    max_grad_norm: float = 1.0
    num_epochs: int = 2
    logging_steps: int = 5
    eval_steps: int = 10


@dataclasses.dataclass
class SequenceClassifierOutput:
    loss: Optional[torch.Tensor] = None
    logits: Optional[torch.Tensor] = None

    def __getitem__(self, key):
        return getattr(self, key)


class ToyReviews(Dataset):
    """Sequences whose label is the most frequent kind of marker token."""

    def __init__(self, config: Config, n: int, seed: int):
        rng = random.Random(seed)
        self.examples: List[Dict[str, Any]] = []
        for i in range(n):
            length = rng.randint(8, config.max_length)
            label = rng.randrange(config.num_labels)
            ids = [rng.randrange(10, config.vocab_size) for _ in range(length)]
            for _ in range(length // 4):
                ids[rng.randrange(length)] = 1 + label
            self.examples.append({"input_ids": ids, "label": label, "id": i})

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, i):
        return self.examples[i]


class Collator:
    def __init__(self, pad_token_id: int = 0):
        self.pad_token_id = pad_token_id

    def __call__(self, features):
        ids = [torch.tensor(f["input_ids"]) for f in features]
        batch = {
            "input_ids": pad_sequence(ids, batch_first=True, padding_value=self.pad_token_id),
            "labels": torch.tensor([f["label"] for f in features]),
        }
        batch["attention_mask"] = (batch["input_ids"] != self.pad_token_id).long()
        lengths = batch["attention_mask"].sum(1)
        if lengths.max().item() != batch["input_ids"].shape[1]:
            raise RuntimeError(f"padding went wrong: {lengths.tolist()}")
        return batch


class Encoder(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.position = nn.Embedding(config.max_length, config.hidden_size)
        layer = nn.TransformerEncoderLayer(config.hidden_size, 4, 2 * config.hidden_size, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, config.num_layers, enable_nested_tensor=False)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, input_ids, attention_mask=None, labels=None):
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        positions = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        hidden = self.embeddings(input_ids) + self.position(positions)
        hidden = self.encoder(hidden, src_key_padding_mask=attention_mask == 0)
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
        logits = self.classifier(pooled)
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return SequenceClassifierOutput(loss=loss, logits=logits)


class Accumulator:
    """Collects what is to be logged; reads the device only when it is asked."""

    def __init__(self, device):
        self.total = torch.zeros((), device=device)
        self.steps = 0

    def add(self, loss):
        self.total += loss.detach()
        self.steps += 1

    def pop(self):
        mean = self.total.item() / max(self.steps, 1)
        self.total.zero_()
        self.steps = 0
        return mean


def get_scheduler(optimizer, warmup, total):
    def schedule(step):
        if step < warmup:
            return step / max(1, warmup)
        return max(0.0, 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup))))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)


def evaluate(model, loader, device):
    model.eval()
    all_preds, all_labels, losses = [], [], []
    for batch in loader:
        batch = {k: v.to(device) for k, v in batch.items()}
        with torch.no_grad():
            outputs = model(**batch)
        losses.append(outputs.loss.repeat(len(batch["labels"])))
        all_preds.extend(outputs.logits.argmax(dim=-1).cpu().tolist())
        all_labels.extend(batch["labels"].cpu().tolist())
    model.train()
    correct = sum(int(p == l) for p, l in zip(all_preds, all_labels))
    return {"eval_loss": torch.cat(losses).mean().item(), "accuracy": correct / len(all_labels)}


def main():
    parser = argparse.ArgumentParser()
    for f in dataclasses.fields(Config):
        parser.add_argument(f"--{f.name}", type=type(f.default), default=f.default)
    config = Config(**vars(parser.parse_args()))
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_loader = DataLoader(ToyReviews(config, 256, 0), config.batch_size, shuffle=True, collate_fn=Collator())
    eval_loader = DataLoader(ToyReviews(config, 64, 1), config.batch_size, collate_fn=Collator())
    model = Encoder(config).to(device)
    no_decay = [p for n, p in model.named_parameters() if n.endswith("bias") or "norm" in n]
    decay = [p for n, p in model.named_parameters() if not (n.endswith("bias") or "norm" in n)]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=config.learning_rate
    )
    updates = config.num_epochs * len(train_loader) // config.gradient_accumulation_steps
    scheduler = get_scheduler(optimizer, int(config.warmup_ratio * updates), updates)
    logger.info("***** training, %d updates, %d parameters *****", updates, sum(p.numel() for p in model.parameters()))

    running = Accumulator(device)
    completed_steps, grad_norm = 0, None
    model.train()
    for epoch in range(config.num_epochs):
        for step, batch in enumerate(train_loader):
            batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
            loss = model(**batch)["loss"] / config.gradient_accumulation_steps
            loss.backward()
            running.add(loss * config.gradient_accumulation_steps)
            if (step + 1) % config.gradient_accumulation_steps != 0 and step != len(train_loader) - 1:
                continue
            grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config.max_grad_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            completed_steps += 1
            if torch.isnan(grad_norm) or torch.isinf(grad_norm):
                logger.warning("bad gradient norm at step %d", completed_steps)
            if completed_steps % config.logging_steps == 0:
                lr = scheduler.get_last_lr()[0]
                logger.info(f"step {completed_steps}: loss {running.pop():.4f} norm {grad_norm:.3f} lr {lr:.2e}")
            if completed_steps % config.eval_steps == 0:
                logger.info("eval at %d: %s", completed_steps, evaluate(model, eval_loader, device))
    logger.info("final: %s", evaluate(model, eval_loader, device))


if __name__ == "__main__":
    main()
