"""Train an agent in a random world for some steps."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
from substitutes import here, run

here()
np.random.seed(0)


class World:
    """Random states; an episode has twelve steps."""

    def __init__(self) -> None:
        self.observation_space = SimpleNamespace(shape=(4,))
        low, high = -np.ones(2, dtype=np.float32), np.ones(2, dtype=np.float32)
        draw = lambda: np.random.uniform(-1, 1, 2).astype(np.float32)  # noqa: E731
        self.action_space = SimpleNamespace(shape=(2,), low=low, high=high, sample=draw)
        self._max_episode_steps = 12

    def render(self) -> None:
        """There is nothing to see."""

    def close(self) -> None:
        """There is nothing to end."""

    def seed(self, seed: int) -> None:
        """Set the random numbers."""
        np.random.seed(seed)

    def reset(self) -> np.ndarray:
        """The first state."""
        self.steps = 0
        return np.random.randn(4).astype(np.float32)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, dict[str, object]]:
        """The next state."""
        self.steps += 1
        return np.random.randn(4).astype(np.float32), float(np.sum(action)), self.steps >= 12, {}


package = ModuleType("gym")
package.make = lambda name: World()
package.ActionWrapper = object
sys.modules["gym"] = package
sizes = {"batch_size": 8, "num_steps": 150, "hidden_size": 16, "start_steps": 20, "automatic_entropy_tuning": "True"}
words = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
sys.argv = ["main.py", *words, "--cuda"]
run("main.py")
