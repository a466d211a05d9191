"""Fine-tunes a small encoder to tell which bracket strings are balanced."""
import argparse
import random
from dataclasses import dataclass
from typing import Dict, List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset
from trainer import EarlyStoppingCallback, EvalPrediction, Trainer, TrainerCallback, TrainingArguments

VOCAB = {"[PAD]": 0, "[CLS]": 1, "(": 2, ")": 3, "[": 4, "]": 5}


def balanced(depth: int) -> str:
    if depth == 0:
        return ""
    left, right = random.choice(["()", "[]"])
    return left + balanced(depth - 1) + right + (balanced(depth // 2) if random.random() < 0.3 else "")


class BracketDataset(Dataset):
    def __init__(self, n: int, seed: int):
        random.seed(seed)
        self.examples = []
        for _ in range(n):
            text = balanced(random.randint(2, 8))
            label = random.randint(0, 1)
            if label == 0:
                i = random.randrange(len(text))
                text = text[:i] + random.choice("()[]".replace(text[i], "")) + text[i + 1 :]
            self.examples.append({"input_ids": [VOCAB["[CLS]"]] + [VOCAB[c] for c in text], "label": label})

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, i):
        return self.examples[i]


@dataclass
class DataCollatorWithPadding:
    pad_to_multiple_of: Optional[int] = None

    def __call__(self, features: List[Dict]) -> Dict[str, torch.Tensor]:
        length = max(len(f["input_ids"]) for f in features)
        if self.pad_to_multiple_of:
            length = -(-length // self.pad_to_multiple_of) * self.pad_to_multiple_of
        ids = [f["input_ids"] + [0] * (length - len(f["input_ids"])) for f in features]
        mask = [[1] * len(f["input_ids"]) + [0] * (length - len(f["input_ids"])) for f in features]
        return {
            "input_ids": torch.tensor(ids, dtype=torch.long),
            "attention_mask": torch.tensor(mask, dtype=torch.long),
            "labels": torch.tensor([f["label"] for f in features], dtype=torch.long),
        }


class SelfAttention(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int):
        super().__init__()
        self.num_heads, self.head_size = num_heads, hidden_size // num_heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.dropout = nn.Dropout(0.1)

    def transpose_for_scores(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.size()[:-1], self.num_heads, self.head_size).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask):
        q = self.transpose_for_scores(self.query(hidden_states))
        k = self.transpose_for_scores(self.key(hidden_states))
        v = self.transpose_for_scores(self.value(hidden_states))
        scores = q @ k.transpose(-1, -2) / self.head_size**0.5 + attention_mask
        context = self.dropout(scores.softmax(dim=-1)) @ v
        return context.permute(0, 2, 1, 3).flatten(2)


class Layer(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int):
        super().__init__()
        self.attention = SelfAttention(hidden_size, num_heads)
        self.attention_norm = nn.LayerNorm(hidden_size)
        inner = 2 * hidden_size
        self.mlp = nn.Sequential(nn.Linear(hidden_size, inner), nn.GELU(), nn.Linear(inner, hidden_size))
        self.output_norm = nn.LayerNorm(hidden_size)

    def forward(self, x, attention_mask):
        x = self.attention_norm(x + self.attention(x, attention_mask))
        return self.output_norm(x + self.mlp(x))


class EncoderForSequenceClassification(nn.Module):
    def __init__(self, hidden_size=48, layers=2, heads=4, max_len=64, num_labels=2):
        super().__init__()
        self.num_labels = num_labels
        self.embeddings = nn.Embedding(len(VOCAB), hidden_size, padding_idx=0)
        self.positions = nn.Embedding(max_len, hidden_size)
        self.register_buffer("position_ids", torch.arange(max_len).expand((1, -1)), persistent=False)
        self.layers = nn.ModuleList(Layer(hidden_size, heads) for _ in range(layers))
        self.classifier = nn.Linear(hidden_size, num_labels)

    def get_extended_attention_mask(self, attention_mask, dtype):
        extended = attention_mask[:, None, None, :].to(dtype=dtype)
        return (1.0 - extended) * torch.finfo(dtype).min

    def forward(self, input_ids, attention_mask=None, labels=None):
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        x = self.embeddings(input_ids) + self.positions(self.position_ids[:, : input_ids.size(1)])
        mask = self.get_extended_attention_mask(attention_mask, x.dtype)
        for layer in self.layers:
            x = layer(x, mask)
        logits = self.classifier(x[:, 0])
        loss = F.cross_entropy(logits.view(-1, self.num_labels), labels.view(-1)) if labels is not None else None
        return {"loss": loss, "logits": logits}


class WeightNormCallback(TrainerCallback):
    """Warns of weights that grow."""

    def __init__(self, every: int = 15, limit: float = 50.0):
        self.every, self.limit = every, limit

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if state.global_step % self.every:
            return
        for name, p in model.named_parameters():
            if p.data.norm() > self.limit:
                print(f"step {state.global_step}: {name} is large")


def compute_metrics(p: EvalPrediction):
    preds = np.argmax(p.predictions, axis=1)
    tp = int(((preds == 1) & (p.label_ids == 1)).sum())
    precision = tp / max(int((preds == 1).sum()), 1)
    recall = tp / max(int((p.label_ids == 1).sum()), 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    return {"accuracy": (preds == p.label_ids).astype(np.float32).mean().item(), "f1": f1}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_train_epochs", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=2e-3)
    parser.add_argument("--num_examples", type=int, default=640)
    opts = parser.parse_args()
    args = TrainingArguments(num_train_epochs=opts.num_train_epochs, learning_rate=opts.learning_rate)
    trainer = Trainer(
        model=EncoderForSequenceClassification(),
        args=args,
        data_collator=DataCollatorWithPadding(pad_to_multiple_of=8),
        train_dataset=BracketDataset(opts.num_examples, seed=1),
        eval_dataset=BracketDataset(128, seed=2),
        compute_metrics=compute_metrics,
        callbacks=[EarlyStoppingCallback(3), WeightNormCallback()],
    )
    print(trainer.describe())
    trainer.train()
    output = trainer.predict(BracketDataset(64, seed=3))
    wrong = np.flatnonzero(output.predictions.argmax(1) != output.label_ids)
    print(output.metrics, f"{len(wrong)} wrong, first {wrong[:5].tolist()}")


if __name__ == "__main__":
    main()
