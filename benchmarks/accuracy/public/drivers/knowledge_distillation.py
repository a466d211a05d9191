"""Distil a small teacher into a smaller student for some steps, on random sentences."""

import sys
from pathlib import Path

import torch
from substitutes import here, without

here()
sys.path.insert(0, str(Path.cwd().parent))
without("datasets")
torch.manual_seed(0)
import load_glue
from transformers import BertConfig, BertForSequenceClassification


def table(count: int) -> object:
    """Random sentences of two classes."""
    found = object.__new__(load_glue.SCDatasetTokenized)
    found.input_ids = torch.randint(0, 60, (count, 12))
    found.token_type_ids = torch.zeros(count, 12, dtype=torch.long)
    found.attention_mask = torch.ones(count, 12, dtype=torch.long)
    found.labels, found.possible_labels = torch.randint(0, 2, (count,)), [0, 1]
    return found


tables = load_glue.SCDatasetsTokenized(table(80), table(32), table(8))
load_glue.load_tokenized_glue_dataset = lambda *arguments, **named: tables


def network(layers: int) -> BertForSequenceClassification:
    """A small network that was not trained."""
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 60, "num_labels": 2}
    return BertForSequenceClassification(BertConfig(num_hidden_layers=layers, **sizes))


class Rank(str):
    """The first GPU by name, and a rank: the simulation does not know GPUs by number."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return other in (0, "cuda:0")

    def __lt__(self, other: object) -> bool:
        return int(other) > 0

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __index__(self) -> int:
        return 0


import finetune
import kd_finetune

start = finetune.distributed_setup
finetune.distributed_setup = lambda rank, size, port: start(0, size, port)
kd_finetune.load_model_from_disk = lambda path: network(3)
kd_finetune.get_bert_config = lambda path: network(2).config
torch.multiprocessing.spawn = lambda run, args, nprocs, join: run(Rank("cuda:0"), *args)
sizes = {"gluepath": ".", "dataset": "SST-2", "outputdir": "out", "num_epochs": "2", "batch_size": "8", "port": "29511"}
sizes |= {"teacher_model": "teacher", "student_model_config": "student", "layer_map": "linear"}
words = [word for name, value in sizes.items() for word in (f"--{name}", value)]
arguments = kd_finetune.Args().parse_args([*words, "--kd_losses", "transformer_layer", "prediction_layer"])
kd_finetune.main(arguments)
