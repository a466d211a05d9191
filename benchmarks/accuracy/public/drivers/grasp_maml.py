"""Train a model on random tasks for some steps."""

import sys
from pathlib import Path

import numpy as np
from substitutes import here, run, vision, without

here()
without("cv2")
vision()
import affordances


class Tasks:
    """Random tasks."""

    def __init__(self, batchsz: int, k_shot: int, k_qry: int, num_grasps: int, **options: object) -> None:
        self.sizes = batchsz, (k_shot + k_qry) * num_grasps

    def next(self) -> tuple[np.ndarray, np.ndarray]:
        """One batch of tasks."""
        return np.random.randn(*self.sizes, 4096), np.random.randn(*self.sizes, 2)


np.random.seed(0)
affordances.Affordances2D = Tasks
Path("data/affordances_2d").mkdir(parents=True, exist_ok=True)
sizes = {"epoch": 8, "k_spt": 4, "k_qry": 3, "task_num": 2, "update_step": 3, "func_type": "affordances_2d"}
Path("data/cat_grasps").mkdir(parents=True, exist_ok=True)
sys.argv = ["regression_train.py", *(word for name, value in sizes.items() for word in (f"--{name}", str(value)))]
run("regression_train.py")
