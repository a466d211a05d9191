"""GPT-2 of transformers under its Trainer: accumulation, clipping, logging and evaluation."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

CONFIG = GPT2Config(n_layer=2, n_head=4, n_embd=128, vocab_size=500, n_positions=64)


class Texts(Dataset):
    def __init__(self, count):
        self.tokens = torch.randint(0, 500, (count, 64), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        tokens = self.tokens[index]
        return {"input_ids": tokens, "labels": tokens, "attention_mask": torch.ones_like(tokens)}


def metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            max_steps=10,
            logging_steps=2,
            eval_strategy="steps",
            eval_steps=5,
            save_strategy="no",
            report_to=[],
            bf16=torch.cuda.is_available(),
            disable_tqdm=True,
        )
        model = GPT2LMHeadModel(CONFIG)
        trainer = Trainer(model, arguments, train_dataset=Texts(80), eval_dataset=Texts(16), compute_metrics=metrics)
        trainer.train()
        print(trainer.evaluate()["eval_loss"])


if __name__ == "__main__":
    main()
