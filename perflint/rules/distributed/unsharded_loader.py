"""TPF929: a loader that gives the whole data set to each process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._ddp import has_ddp
from perflint.rules._guards import is_guarded
from perflint.rules._methods import in_tests, is_true
from perflint.rules._sources import names_behind, sources
from perflint.rules.base import Calls, CallSite, Mentions, Rule
from perflint.rules.data._loaders import LOADERS, passed
from perflint.semantics.structure import last_name, walk

_SHARES = r"(?i:accelerat|fabric|lightning|deepspeed|split_dataset_by_node|sampler)|\.shard\("
_RANK = re.compile(r"rank|world|shard", re.IGNORECASE)


class UnshardedLoader(Rule):
    """A program for several GPUs gives all of its data to each of them.

    ## What it does
    Finds `DataLoader(…, shuffle=True)` in files that wrap a model in `DistributedDataParallel`, if nothing in the file
    shares the data: no sampler, no part of the data set that a rank chooses.

    ## Why is this bad
    Each process goes through the whole data set in each epoch: with eight GPUs, an epoch is eight times the work. If
    all processes begin with the same seed, they even compute the same batches, and eight GPUs learn as much as one. It
    is a warning because the source shows that nothing shares the data, not because of a measured cost.

    ## When it is fine
    - The data set has a part of its own in each process: data sets that are made with a rank, a shard or the size of
      the world are not reported.
    - Steps are counted, not epochs, and the seeds of the processes differ: then no work is repeated.
    - Libraries that replace the sampler, such as Accelerate and Lightning: files that name them are not reported.

    ## Bad
    ```python
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader

    def train(model, dataset, local):
        model = DistributedDataParallel(model.cuda(local), device_ids=[local])
        loader = DataLoader(dataset, 64, shuffle=True, num_workers=8, pin_memory=True)
        for x in loader:
            model(x.cuda(local)).mean().backward()
    ```

    ## Good
    ```python
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler

    def train(model, dataset, local):
        model = DistributedDataParallel(model.cuda(local), device_ids=[local])
        loader = DataLoader(dataset, 64, sampler=DistributedSampler(dataset), num_workers=8, pin_memory=True)
        for x in loader:
            model(x.cuda(local)).mean().backward()
    ```

    ## Fix safety
    No fix: `set_epoch` has to be called, too, and an epoch gets shorter.

    ## How a GPU shows it
    An epoch has as many steps with eight processes as with one.

    ## References
    - [DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
    """

    code, name = "TPF929", "unsharded-loader"
    effect, severity = Effect.PIPELINE, Severity.WARNING
    listens = (Calls(*LOADERS),)
    mentions = Mentions("DistributedDataParallel", also=("shuffle",), unlike=_SHARES)

    def check(self, site: CallSite) -> Iterator[Finding]:
        model = site.model
        if not is_true(passed(site, "shuffle")) or in_tests(model) or is_guarded(model, site.node):
            return
        if not has_ddp(model) or _has_part(site):
            return
        yield self.finding(
            site,
            "each process gets the whole data set: this loader has no `DistributedSampler`",
            confidence=Confidence.MEDIUM,
            # It is made once, and each step pays for it.
            heat=Heat.HOT,
            help="Pass `sampler=DistributedSampler(dataset)` without `shuffle`, and call its `set_epoch` each epoch.",
        )


def _has_part(site: CallSite) -> bool:
    """True if a data set is made with the rank of the process, or by a class that asks for it."""
    model, given = site.model, passed(site, "dataset")
    made = [] if given is None else sources(model, given)
    names = {name.id for name in names_behind(model, made)} | {ast.unparse(each) for each in made}
    for owner in model.nodes(ast.ClassDef):
        if any(base.endswith("Dataset") for base in model.lineage(f"{model.module.name}.{owner.name}")):
            names.update(last_name(part) for part in walk(owner) if isinstance(part, (ast.Name, ast.Attribute)))
    return any(map(_RANK.search, names))
