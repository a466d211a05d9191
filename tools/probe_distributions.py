"""Asks a GPU where torch's distributions make the host wait.

    python tools/probe_distributions.py run FILE        # the table, as TOML
    python tools/probe_distributions.py run             # to perflint/semantics/facts/torch_api/distributions.toml

Needs a CUDA device. Each distribution is made of small tensors on the device, as its users make it: with
the default validation and with `validate_args=False`. What its constructor, its properties and its
methods then do is counted under the sync debug mode.
"""

from __future__ import annotations

import argparse
import datetime
import textwrap
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import distributions

MESSAGE = "called a synchronizing CUDA operation"
TARGET = Path(__file__).parent.parent / "perflint" / "semantics" / "facts" / "torch_api" / "distributions.toml"
SIZE = 4
OPTIONS: tuple[dict[str, Any], dict[str, Any]] = ({}, {"validate_args": False})

Make = Callable[[torch.device, dict[str, Any]], distributions.Distribution]


def positive(device: torch.device, *shape: int) -> torch.Tensor:
    return torch.rand(shape or (SIZE,), device=device) + 0.5


def unit(device: torch.device, *shape: int) -> torch.Tensor:
    return torch.rand(shape or (SIZE,), device=device) * 0.8 + 0.1


def spd(device: torch.device) -> torch.Tensor:
    square = torch.rand(SIZE, SIZE, device=device)
    return square @ square.T + SIZE * torch.eye(SIZE, device=device)


def normal(device: torch.device, *shape: int) -> distributions.Normal:
    return distributions.Normal(positive(device, *shape), positive(device, *shape), validate_args=False)


def samples() -> dict[str, Make]:
    """How each distribution is made: its class, and after a colon which of its arguments are given."""
    d = distributions
    return {
        "Bernoulli:probs": lambda v, o: d.Bernoulli(probs=unit(v), **o),
        "Bernoulli:logits": lambda v, o: d.Bernoulli(logits=positive(v), **o),
        "Beta": lambda v, o: d.Beta(positive(v), positive(v), **o),
        "Binomial:probs": lambda v, o: d.Binomial(10, probs=unit(v), **o),
        "Binomial:logits": lambda v, o: d.Binomial(10, logits=positive(v), **o),
        "Categorical:probs": lambda v, o: d.Categorical(probs=unit(v), **o),
        "Categorical:logits": lambda v, o: d.Categorical(logits=positive(v), **o),
        "Cauchy": lambda v, o: d.Cauchy(positive(v), positive(v), **o),
        "Chi2": lambda v, o: d.Chi2(positive(v), **o),
        "ContinuousBernoulli:probs": lambda v, o: d.ContinuousBernoulli(probs=unit(v), **o),
        "ContinuousBernoulli:logits": lambda v, o: d.ContinuousBernoulli(logits=positive(v), **o),
        "Dirichlet": lambda v, o: d.Dirichlet(positive(v), **o),
        "Exponential": lambda v, o: d.Exponential(positive(v), **o),
        "FisherSnedecor": lambda v, o: d.FisherSnedecor(positive(v), positive(v) + 4, **o),
        "Gamma": lambda v, o: d.Gamma(positive(v), positive(v), **o),
        "GeneralizedPareto": lambda v, o: d.GeneralizedPareto(  # type: ignore[no-untyped-call]
            positive(v), positive(v), positive(v), **o
        ),
        "Geometric:probs": lambda v, o: d.Geometric(probs=unit(v), **o),
        "Geometric:logits": lambda v, o: d.Geometric(logits=positive(v), **o),
        "Gumbel": lambda v, o: d.Gumbel(positive(v), positive(v), **o),
        "HalfCauchy": lambda v, o: d.HalfCauchy(positive(v), **o),
        "HalfNormal": lambda v, o: d.HalfNormal(positive(v), **o),
        "Independent": lambda v, o: d.Independent(normal(v), 1, **o),
        "InverseGamma": lambda v, o: d.InverseGamma(positive(v), positive(v), **o),
        "Kumaraswamy": lambda v, o: d.Kumaraswamy(positive(v), positive(v), **o),
        "LKJCholesky": lambda v, o: d.LKJCholesky(3, positive(v, 1), **o),
        "Laplace": lambda v, o: d.Laplace(positive(v), positive(v), **o),
        "LogNormal": lambda v, o: d.LogNormal(positive(v), positive(v), **o),
        "LogisticNormal": lambda v, o: d.LogisticNormal(positive(v), positive(v), **o),
        "LowRankMultivariateNormal": lambda v, o: d.LowRankMultivariateNormal(
            positive(v), positive(v, SIZE, 2), positive(v), **o
        ),
        "MixtureSameFamily": lambda v, o: d.MixtureSameFamily(
            d.Categorical(unit(v), validate_args=False), normal(v), **o
        ),
        "Multinomial:probs": lambda v, o: d.Multinomial(10, probs=unit(v), **o),
        "Multinomial:logits": lambda v, o: d.Multinomial(10, logits=positive(v), **o),
        "MultivariateNormal:covariance_matrix": lambda v, o: d.MultivariateNormal(positive(v), spd(v), **o),
        "MultivariateNormal:precision_matrix": lambda v, o: d.MultivariateNormal(
            positive(v), precision_matrix=spd(v), **o
        ),
        "MultivariateNormal:scale_tril": lambda v, o: d.MultivariateNormal(
            positive(v), scale_tril=torch.linalg.cholesky_ex(spd(v))[0], **o
        ),
        "NegativeBinomial:probs": lambda v, o: d.NegativeBinomial(positive(v), probs=unit(v), **o),
        "NegativeBinomial:logits": lambda v, o: d.NegativeBinomial(positive(v), logits=positive(v), **o),
        "Normal": lambda v, o: d.Normal(positive(v), positive(v), **o),
        "OneHotCategorical:probs": lambda v, o: d.OneHotCategorical(probs=unit(v), **o),
        "OneHotCategorical:logits": lambda v, o: d.OneHotCategorical(logits=positive(v), **o),
        "OneHotCategoricalStraightThrough:logits": lambda v, o: d.OneHotCategoricalStraightThrough(
            logits=positive(v), **o
        ),
        "Pareto": lambda v, o: d.Pareto(positive(v), positive(v) + 4, **o),
        "Poisson": lambda v, o: d.Poisson(positive(v), **o),
        "RelaxedBernoulli:probs": lambda v, o: d.RelaxedBernoulli(positive(v, 1), probs=unit(v), **o),
        "RelaxedBernoulli:logits": lambda v, o: d.RelaxedBernoulli(positive(v, 1), logits=positive(v), **o),
        "RelaxedOneHotCategorical:logits": lambda v, o: d.RelaxedOneHotCategorical(
            positive(v, 1), logits=positive(v), **o
        ),
        "StudentT": lambda v, o: d.StudentT(positive(v) + 2, positive(v), positive(v), **o),
        "TransformedDistribution": lambda v, o: d.TransformedDistribution(normal(v), [d.ExpTransform()], **o),
        "Uniform": lambda v, o: d.Uniform(positive(v), positive(v) + 2, **o),
        "VonMises": lambda v, o: d.VonMises(positive(v), positive(v), **o),
        "Weibull": lambda v, o: d.Weibull(positive(v), positive(v), **o),
        "Wishart:covariance_matrix": lambda v, o: d.Wishart(positive(v, 1)[0] + SIZE, spd(v), **o),
    }


def with_numbers() -> dict[str, Make]:
    """Distributions with one Python number beside a tensor."""
    d = distributions
    return {
        "Normal": lambda v, o: d.Normal(positive(v), 1.0, **o),
        "Beta": lambda v, o: d.Beta(positive(v), 1.0, **o),
        "Gamma": lambda v, o: d.Gamma(positive(v), 1.0, **o),
        "Laplace": lambda v, o: d.Laplace(positive(v), 1.0, **o),
        "Uniform": lambda v, o: d.Uniform(0.0, positive(v), **o),
        "Cauchy": lambda v, o: d.Cauchy(positive(v), 1.0, **o),
        "StudentT": lambda v, o: d.StudentT(positive(v) + 2, 0.0, 1.0, **o),
    }


def syncs_of(call: Callable[[], Any]) -> tuple[int, Any]:
    """How many synchronisations the mode reports while `call` runs, and what it gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            result = call()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum(MESSAGE in str(warning.message) for warning in caught), result


def made(make: Make, device: torch.device, options: dict[str, Any]) -> int:
    """The syncs of a constructor. Its arguments are made under the mode as well, none of which synchronises."""
    return syncs_of(lambda: make(device, options))[0]


class Count(NamedTuple):
    """Synchronisations of a call with the default validation, and of the same without it."""

    validated: int
    unchecked: int


def members(name: str) -> Iterator[str]:
    """The public properties and methods of a class that give something of the distribution."""
    for member in sorted(dir(getattr(distributions, name))):
        if not member.startswith("_") and member not in ("set_default_validate_args", "expand", "sample_n"):
            yield member


def used(made: distributions.Distribution, member: str) -> tuple[int, Any]:
    """Read a property, or call a method with what it takes."""
    if isinstance(getattr(type(made), member, None), property) or not callable(getattr(made, member)):
        return syncs_of(lambda: getattr(made, member))
    value = made.sample()
    if member == "icdf":
        value = torch.full_like(value, 0.5)
    arguments = (value,) if member in ("log_prob", "cdf", "icdf") else ()
    method = getattr(made, member)
    return syncs_of(lambda: method(*arguments))


def counted(make: Make, member: str, options: dict[str, Any]) -> tuple[int, Any] | None:
    """What a member does, warmed up; None where the class does not have it."""
    device = torch.device("cuda")
    try:
        used(make(device, options), member)
        return used(make(device, options), member)
    except (NotImplementedError, AttributeError, TypeError, RuntimeError, ValueError):
        return None


def kind_of(name: str, member: str, value: Any) -> str:
    """Which list of the table a member belongs to."""
    if isinstance(value, torch.Tensor):
        is_method = callable(getattr(getattr(distributions, name), member, None))
        return "methods" if is_method else "properties"
    return "distributions" if isinstance(value, distributions.Distribution) else ""


def run(output: Path) -> None:
    """Probe every distribution and write the table."""
    device = torch.device("cuda")
    constructors: dict[str, Count] = {}
    calls: dict[str, Count] = {}
    kinds: dict[str, set[str]] = {"methods": set(), "properties": set(), "distributions": set()}
    for label, make in samples().items():
        name = label.partition(":")[0]
        make(device, {})
        constructors[label] = Count(*(made(make, device, options) for options in OPTIONS))
        for member in members(name):
            found = [counted(make, member, options) for options in OPTIONS]
            if found[0] is None or found[1] is None:
                continue
            count = Count(found[0][0], found[1][0])
            if kind := kind_of(name, member, found[0][1]):
                kinds[kind].add(member)
            if any(count):
                key = f"{name}.{member}"
                calls[key] = Count(*map(max, count, calls.get(key, count)))
    numbers = {name: made(make, device, OPTIONS[1]) for name, make in with_numbers().items()}
    text = table(constructors, calls, kinds, numbers)
    tomllib.loads(text)  # what is written must be read again
    output.write_text(text)


def table(
    constructors: dict[str, Count], calls: dict[str, Count], kinds: dict[str, set[str]], numbers: dict[str, int]
) -> str:
    """The TOML table of what was measured."""
    lines = [
        "# Where torch's distributions synchronise, as a GPU did them.",
        "# Generated by tools/probe_distributions.py; do not edit.",
        "",
        f'torch = "{torch.__version__.split("+")[0]}"',
        f'gpu = "{torch.cuda.get_device_name()}"',
        f'date = "{datetime.date.today().isoformat()}"',
        "",
        "# What gives a tensor, or another distribution.",
        *(f"{kind} = {words(sorted(names))}" for kind, names in kinds.items()),
        "",
        "# Syncs of the constructor: with the default validation, with `validate_args=False`.",
        "[constructors]",
        *(row(name, count) for name, count in constructors.items()),
        "",
        "# The same of methods and properties; what is not here does not synchronise.",
        "[members]",
        *(row(name, count) for name, count in sorted(calls.items())),
        "",
        "# Syncs of a constructor that takes one number (StudentT: two) beside a tensor, with `validate_args=False`.",
        "[numbers]",
        *(f"{name} = {count}" for name, count in numbers.items()),
    ]
    return "\n".join(lines) + "\n"


def row(name: str, count: Count) -> str:
    return f'"{name}" = [{count.validated}, {count.unchecked}]'


def words(names: Iterable[str], width: int = 118) -> str:
    """Names as a TOML literal string of lines."""
    return "\n".join(["'''", *textwrap.wrap(" ".join(names), width, break_on_hyphens=False), "'''"])


def main() -> None:
    """Read the command line and probe."""
    parser = argparse.ArgumentParser(description="ask a GPU where torch's distributions make the host wait")
    parser.add_argument("verb", choices=["run"])
    parser.add_argument("output", type=Path, nargs="?", default=TARGET)
    warnings.simplefilter("ignore")
    run(parser.parse_args().output)


if __name__ == "__main__":
    main()
