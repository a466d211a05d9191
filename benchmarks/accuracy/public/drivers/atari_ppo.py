"""Train a policy in games of noise for some episodes."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import tensorboardX
import torch
from substitutes import here, run

here()
torch.manual_seed(0)
np.random.seed(0)
np.float = float  # an alias that NumPy had
sys.modules["torch.utils.tensorboard"] = tensorboardX


class Game:
    """A game whose pictures are noise."""

    spec = SimpleNamespace(id="NoiseNoFrameskip-v4")
    action_space = SimpleNamespace(n=4)
    observation_space = SimpleNamespace(shape=(210, 160, 3))

    def __init__(self) -> None:
        self.ale = SimpleNamespace(lives=lambda: 1)

    @property
    def unwrapped(self) -> "Game":
        return self

    def seed(self, seed: int) -> None:
        """Nothing to seed."""

    def get_action_meanings(self) -> list[str]:
        return ["NOOP", "FIRE", "LEFT", "RIGHT"]

    def reset(self, **options: object) -> np.ndarray:
        return np.random.randint(0, 255, (210, 160, 3), dtype=np.uint8)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, dict[str, object]]:
        return self.reset(), float(np.random.rand()), bool(np.random.rand() < 0.02), {}

    def close(self) -> None:
        """Nothing to close."""


class Wrapper:
    """A game around a game."""

    def __init__(self, env: object) -> None:
        self.env = env

    def __getattr__(self, name: str) -> object:
        return getattr(self.env, name)

    def reset(self, **options: object) -> np.ndarray:
        return self.env.reset(**options)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, dict[str, object]]:
        return self.env.step(action)


class ObservationWrapper(Wrapper):
    """Changes the pictures."""

    def reset(self, **options: object) -> np.ndarray:
        return self.observation(self.env.reset(**options))

    def step(self, action: int) -> tuple[np.ndarray, float, bool, dict[str, object]]:
        picture, reward, done, info = self.env.step(action)
        return self.observation(picture), reward, done, info


class RewardWrapper(Wrapper):
    """Changes the rewards."""

    def step(self, action: int) -> tuple[np.ndarray, float, bool, dict[str, object]]:
        picture, reward, done, info = self.env.step(action)
        return picture, self.reward(reward), done, info


gym, wrappers = ModuleType("gym"), ModuleType("gym.wrappers")
gym.Env, gym.Wrapper, gym.ObservationWrapper, gym.RewardWrapper = Game, Wrapper, ObservationWrapper, RewardWrapper
gym.make, gym.wrappers, wrappers.Monitor = lambda name: Game(), wrappers, Wrapper
sys.modules |= {"gym": gym, "gym.wrappers": wrappers}
import source.environment.multiprocessing_env
import source.environment.serial_env

# The games run in the recorded process.
source.environment.multiprocessing_env.MultiprocessingEnv = source.environment.serial_env.SerialEnv
sizes = {"env_name": "Noise-v4", "nn_size": "SMALL", "ppo_num_envs": "2", "horizon": "8", "max_time_steps": "80"}
text = "[0]\n[Shared]\n" + "".join(f"{name} = {value}\n" for name, value in sizes.items())
Path("config").write_text(text, encoding="utf-8")
sys.argv = ["main.py"]
run("source/main.py")
