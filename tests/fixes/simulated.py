"""Run the scenarios of fixes where a GPU is simulated: `python -m tests.fixes.simulated VERDICTS [PART…]`.

It is a process of its own, as a simulation lasts until its process ends. VERDICTS becomes a JSON object:
what is wrong with each scenario, empty where nothing is. With PART only those are run in whose names
one of them is.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.fixes.scenarios import Scenario, needs_plain_cpu, scenarios, verdict

LACKS = "needs the package "


def on_a_gpu() -> list[Scenario]:
    """The scenarios of all rules that can be simulated."""
    return [one for safe in (True, False) for one in scenarios(safe) if not needs_plain_cpu(one.path)]


def judged(scenario: Scenario) -> str:
    """What is wrong with a scenario."""
    try:
        return verdict(scenario)
    except ModuleNotFoundError as error:
        return f"{LACKS}{error.name}"
    except AssertionError as error:
        return f"{type(error).__name__}: {error}"


def main(target: str, *parts: str) -> None:
    """Write the verdicts."""
    # A GPU that is there would do what is to be simulated.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch  # noqa: F401

    from perflint.tracer import simulation
    from tests.fixes import graphs

    simulation.start(lambda what, how: None)
    graphs.install()
    chosen = [one for one in on_a_gpu() if not parts or any(part in str(one) for part in parts)]
    Path(target).write_text(json.dumps({str(one): judged(one) for one in chosen}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
