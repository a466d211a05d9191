"""Train a small model for three tasks by the scripts of the project, label names, and generate titles."""

import random
from pathlib import Path

import torch
from substitutes import here, run, without

here()
without("jieba")
LETTERS = [chr(0x4E00 + number) for number in range(60)]
random.seed(0)
torch.manual_seed(0)


def sentence(letters: int) -> str:
    """Random characters."""
    return "".join(random.choices(LETTERS, k=letters))


for folder in ("state_dict", "corpus/auto_title", "corpus/新闻标题文本分类"):
    Path(folder).mkdir(parents=True, exist_ok=True)
special = ["[PAD]", *(f"[unused{number}]" for number in range(1, 100)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
Path("state_dict/roberta_wwm_vocab.txt").write_text("\n".join([*special, *LETTERS]) + "\n", encoding="utf-8")
titles = [(sentence(14), sentence(5)) for _ in range(160)]
for suffix, column in (("src", 0), ("tgt", 1)):
    lines = "\n".join(pair[column] for pair in titles)
    Path(f"corpus/auto_title/train.{suffix}").write_text(lines, encoding="utf-8")
rows = "\n".join(f"{number % 14}\t-\t{sentence(10)}" for number in range(128))
Path("corpus/新闻标题文本分类/Train.txt").write_text(rows, encoding="utf-8")
names = "\n\n".join(
    "\n".join(f"{letter} {random.choice(['O', 'B-LOC', 'I-LOC'])}" for letter in sentence(9)) for _ in range(40)
)
Path("state_dict/corase_train_update.txt").write_text(names + "\n\n", encoding="utf-8")

from bert_seq2seq.model import roberta_model

roberta_model.BertConfig.__init__.__defaults__ = (24, 2, 2, 48, "gelu", 0.1, 0.1, 512, 2, 0.02, 1e-12)
torch.save({}, "state_dict/roberta_wwm_pytorch_model.bin")


def trained(script: str) -> dict[str, object]:
    """What a script defines, and its trainer after one epoch."""
    found = run(f"examples/{script}.py", "driven")
    trainer = found["Trainer"]()
    trainer.train(0)
    return found | {"trainer": trainer}


trained("roberta_news_classification_train")
labels = trained("roberta_coarsness_NER_CRF_train")
model = labels["trainer"].bert_model
labels["ner_print"](model, [sentence(8), sentence(7)], device="cuda")
model = trained("roberta_auto_title_train")["trainer"].bert_model
model.eval()
for _ in range(2):
    model.generate(sentence(12), beam_size=3, out_max_length=8)
    model.sample_generate(sentence(12), out_max_length=8, top_k=5)
