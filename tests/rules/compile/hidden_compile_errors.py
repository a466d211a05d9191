"""Settings that hide what torch.compile cannot do."""

import sys

import torch
import torch._dynamo as dynamo
from torch._dynamo import config

torch._dynamo.config.suppress_errors = True  # audit: TPF713
dynamo.config.cache_size_limit = 10**4  # audit: TPF713
config.recompile_limit = sys.maxsize  # audit: TPF713


def prepare() -> None:
    config.accumulated_cache_size_limit = 100_000  # audit: TPF713
    config.accumulated_cache_size_limit = 1e300**9  # audit: TPF713


# Look-alikes


def own_values() -> None:
    config.suppress_errors = False
    config.cache_size_limit = 16
    config.accumulated_recompile_limit = 512


def for_a_while(run) -> None:
    with config.patch(suppress_errors=True):
        run()


class Settings:
    suppress_errors = True
    cache_size_limit = 10_000


def of_others(settings: Settings) -> None:
    settings.suppress_errors = True
    settings.cache_size_limit = 10_000


def decided_elsewhere(suppress: bool, limit: int) -> None:
    config.suppress_errors = suppress
    config.cache_size_limit = limit


def read() -> int:
    return config.cache_size_limit if config.suppress_errors else 0
