"""Two iterations of self-play, training and evaluation with a small network. Processes run in this one."""

import sys

import torch.multiprocessing
from substitutes import SERVICES, run, without

sys.path.insert(0, "src")
sys.path.append(str(SERVICES))
without("wandb")


class Inline:
    """A process that runs at once."""

    def __init__(self, target: object, args: tuple[object, ...]) -> None:
        self._run = lambda: target(*args)

    def start(self) -> None:
        """Run."""
        self._run()

    def join(self) -> None:
        """It has ended."""


torch.multiprocessing.Process = Inline
torch.multiprocessing.set_start_method = lambda *arguments, **named: None
sizes = {"iterations": 2, "self-play-games": 3, "mcts-sims": 8, "num-cpus": 1, "hidden-dim": 16, "batch-size": 4}
sizes |= {"epochs": 2, "num-games": 2, "eval-mcts-sims": 4, "vertices": 5, "k": 3}
sys.argv = ["pipeline_clique.py", *(word for name, value in sizes.items() for word in (f"--{name}", str(value)))]
run("src/pipeline_clique.py")
