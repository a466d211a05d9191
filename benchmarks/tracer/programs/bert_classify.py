"""BERT of transformers for classification: training with a scheduler, then evaluation with padding."""

import torch
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CONFIG = BertConfig(
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=256,
    vocab_size=500,
    max_position_embeddings=64,
    num_labels=3,
    problem_type="single_label_classification",
)


def batches(count):
    for _ in range(count):
        lengths = torch.randint(8, 33, (8, 1))
        mask = (torch.arange(32) < lengths).long()
        yield {
            "input_ids": torch.randint(1, 500, (8, 32)) * mask,
            "attention_mask": mask,
            "labels": torch.randint(0, 3, (8,)),
        }


def main():
    torch.manual_seed(0)
    model = BertForSequenceClassification(CONFIG).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = get_linear_schedule_with_warmup(optimizer, 2, 8)
    total = 0.0
    for step, batch in enumerate(batches(8)):
        batch = {key: value.to(DEVICE) for key, value in batch.items()}
        loss = model(**batch).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        total += loss.item()
        if step % 2 == 0:
            print(f"step {step} loss {total / (step + 1):.3f} norm {norm:.3f}")
    model.eval()
    predictions, truth = [], []
    with torch.inference_mode():
        for batch in batches(4):
            batch = {key: value.to(DEVICE) for key, value in batch.items()}
            out = model(**batch)
            predictions.extend(out.logits.argmax(-1).cpu().numpy())
            truth += batch["labels"].tolist()
    print(sum(a == b for a, b in zip(predictions, truth)) / len(truth))


if __name__ == "__main__":
    main()
