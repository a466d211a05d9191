"""Full names that several rules ask for."""

from __future__ import annotations

from perflint.rules._operators import operators

AUTOCAST = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast")
AUTOCAST_OF_MODULE = (*AUTOCAST, "torch.amp.autocast_mode.autocast")
"""Also by the module that defines it."""
DDP = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel")
FSDP = (
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel",
)
"""The first version of sharding, a class."""
FULLY_SHARD = ("torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard")
"""The second version, a function."""
LIGHTNING = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
"""Trainers."""
TRAINING_ARGUMENTS = operators("data", "training_arguments")
"""The settings of the trainer of Transformers."""
READS = operators("data", "reads_whole_files")
"""Functions that read a whole file."""
OPENS = frozenset("h5py.File zipfile.ZipFile tarfile.open lmdb.open sqlite3.connect numpy.memmap".split())
"""Functions that open a file, of which the program then reads a part."""
