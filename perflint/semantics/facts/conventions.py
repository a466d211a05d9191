"""The meaning of names by the conventions of the field, read from `conventions.toml`.

Each question returns the reason as a clause that follows "it", or "" if the name says nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from perflint.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Concept:
    """The names that mean one thing, with the reason of each."""

    names: dict[str, str]
    prefixes: dict[str, str]
    suffixes: dict[str, str]
    parts: dict[str, str]
    patterns: dict[str, str]

    def why(self, name: str) -> str:
        """The reason why a name belongs to the concept, or "" if it does not."""
        reason = self.names.get(name)
        if reason is not None:
            return reason
        for prefix, reason in self.prefixes.items():
            if name.startswith(prefix):
                return reason
        for suffix, reason in self.suffixes.items():
            if name.endswith(suffix):
                return reason
        for part, reason in self.parts.items():
            if part in name:
                return reason
        # `re` compiles a pattern when it is first needed, and keeps it.
        return next((reason for pattern, reason in self.patterns.items() if re.fullmatch(pattern, name)), "")

    def has_any(self, names: Iterable[str]) -> bool:
        """True if one of some names belongs to the concept."""
        return any(map(self.why, names))


def concept_of(entries: dict[str, str]) -> Concept:
    """The concept of a table. Raises ValueError for an entry that is in it twice or has no meaning."""
    made = Concept({}, {}, {}, {}, {})
    for reason, text in entries.items():
        made.patterns.update(("".join(pattern.split()), reason) for pattern in _PATTERN.findall(text))
        for entry in _PATTERN.sub(" ", text).split():
            name = entry.strip("*")
            kind = {name: made.names, f"{name}*": made.prefixes, f"*{name}": made.suffixes, f"*{name}*": made.parts}
            if not name.isidentifier() or entry not in kind or name in kind[entry]:
                raise ValueError(entry)
            kind[entry][name] = reason
    return made


_PATTERN = re.compile(r"/([^/]+)/")


@cache
def tables() -> dict[str, dict[str, str]]:
    """The entries of each concept by their reasons."""
    return tomllib.loads(Path(__file__).with_name("conventions.toml").read_text("utf-8"))


@cache
def concept(name: str) -> Concept:
    """A concept by the name of its table."""
    return concept_of(tables()[name])


def runs_each_step(name: str, is_method: bool) -> str:
    """Why a function runs in each step."""
    function = concept("each-step-function")
    known = function.why(name)
    if known or not is_method:
        return known
    method, plain = concept("each-step-method"), name.lstrip("_")
    return method.why(name) or method.why(plain) or function.why(plain) or concept("each-step-part").why(name)


def stands_in(name: str) -> str:
    """Why a function runs in each step, unless something says that it runs rarely: a loss, a patched forward."""
    return concept("each-step-stand-in").why(name)


def is_meter(cls: str) -> str:
    """Why a class keeps statistics that are updated in each step."""
    return concept("meter").why(cls)


def sets_up(name: str) -> str:
    """Why a function runs rarely, unless code that runs each step certainly calls it."""
    return concept("set-up").why(name)


def runs_rarely(name: str) -> str:
    """Why a function runs rarely, unless code that runs each step may call it."""
    return concept("rarely").why(name)


def runs_once(name: str) -> str:
    """Why a process runs a function once, whatever it is given."""
    return concept("once").why(name.lstrip("_"))


def runs_once_without_data(name: str) -> str:
    """Why a process runs a function once if it is given no tensors."""
    return concept("once-without-data").why(name.lstrip("_"))


def is_item(name: str) -> str:
    """Why a loader calls a method for each item or batch."""
    return concept("item").why(name)


def opens_file(name: str) -> str:
    """Why a call, by its full name or its last name, opens or reads a file."""
    return concept("opens-file").why(name)


def checks_results(name: str) -> str:
    """Why a function that asserts that tensors are alike is a test."""
    return concept("checks").why(name.lstrip("_"))


def is_test(name: str) -> str:
    """Why a function that checks results, or that makes its own inputs, is a test."""
    return concept("test").why(name.lstrip("_"))


def starts_program(name: str) -> str:
    """Why a function that is called belongs to a program."""
    return concept("program").why(name)


def measures_time(name: str) -> str:
    """Why a function is a benchmark."""
    return concept("benchmark").why(name)


def is_reference(name: str) -> str:
    """Why a function is reference code if only tests call it."""
    return concept("reference").why(name)


def asserts(name: str) -> str:
    """Why a call asserts that tensors are alike."""
    return concept("asserts").why(name)


def joins_parts(name: str) -> str:
    """Why a method that is given nothing to run on changes the weights of its object."""
    return concept("joins").why(name.strip("_").split("_")[0])


def may_run_again(name: str) -> str:
    """Why a method that constructors call may also be called later."""
    return concept("again").why(name)


def prepares_model(name: str) -> str:
    """Why a method of a model does not run it."""
    return concept("prepares-model").why(name) or concept("looks-up").why(name)


def looks_up(name: str) -> str:
    """Why a method of a module, a container or a parameter runs no part of a model."""
    return concept("looks-up").why(name)


def changes_model(name: str) -> str:
    """Why a method changes or finds parts of a model, unless it is given tensors."""
    first, *_ = words = name.strip("_").split("_")
    part = concept("set-up-object")
    return concept("set-up-verb").why(first) or next(filter(None, map(part.why, words)), "")


def runs_model(name: str) -> str:
    """Why a method of any object runs a model."""
    return concept("runs-model").why(name)


def is_model(name: str) -> str:
    """Why a name is that of a model: `netG`, `ema_model`."""
    words = name.lower().split("_")
    return "" if concept("works-on-model").has_any(words) else concept("model").why(words[-1])


def is_optimizer(name: str) -> str:
    """Why a name is that of an optimizer."""
    return concept("optimizer").why(name.lower())


def is_mode(name: str) -> str:
    """Why a flag or function is false while a model runs eagerly."""
    return concept("mode").why(name)


def is_rarely_true(name: str) -> str:
    """Why a flag or function is mostly false."""
    return concept("rarely-true").why(name) or is_mode(name)


def is_not_finite(name: str) -> str:
    """Why a flag or function is true only if a number is not finite."""
    return concept("not-finite").why(name)


def is_finite(name: str) -> str:
    """Why a flag or function is false only if a number is not finite."""
    return concept("finite").why(name)


def registers(name: str) -> str:
    """Why a method of a module is called once for each name."""
    return concept("registers").why(name)


def reports(name: str) -> str:
    """Why a method reports what should not happen."""
    return concept("reports").why(name)


def counts_steps(name: str) -> str:
    """Why a number counts steps, so that it is 0 once."""
    return "" if concept("part-of-step").has_any(name.split("_")) else concept("step-counter").why(name)


def prepares_data(module: str) -> str:
    """Why a module, by its full name, prepares data."""
    return next(filter(None, map(concept("prepares-data").why, module.split("."))), "")


def names_file(name: str) -> str:
    """Why a value is the name of a file or an entry, and no tensor."""
    return concept("names-file").why(name.lower())


def draws(module: str, packages: Iterable[str]) -> str:
    """Why a module that imports from some packages draws pictures, by its full name."""
    if not concept("draws-library").has_any(packages):
        return ""
    return next(filter(None, map(concept("draws").why, module.split("~")[0].split("."))), "")


@cache
def is_other_framework(package: str) -> str:
    """Why the models and tensors of a package are not those of torch."""
    return concept("other-frameworks").why(package)


@cache
def has_other_tensors(package: str) -> str:
    """Why a `Tensor` of a package is not one of torch."""
    return is_other_framework(package) or concept("other-tensors").why(package)


@cache
def has_other_arrays(package: str) -> str:
    """Why a package has objects that have methods of tensors, such as `item`."""
    return has_other_tensors(package) or concept("other-arrays").why(package)


def has_environments(package: str) -> str:
    """Why the classes of a package are environments, and no modules."""
    return concept("environments-library").why(package)


def compiles_kernels(package: str) -> str:
    """Why the functions that a package decorates are kernels."""
    return concept("kernel-compiler").why(package)


def makes_kernel(decorator: str) -> str:
    """Why a function with a decorator is a kernel."""
    return concept("kernel-decorator").why(decorator)


def gets_batch(method: str) -> str:
    """Why the arguments of a method of a module are on the device of the module."""
    return concept("on-device-method").why(method)


def is_batch_hook(method: str) -> str:
    """Why `batch` and `outputs` of a method are on the device."""
    return concept("batch-hook").why(method)


def is_evaluation_hook(method: str) -> str:
    """Why a trainer calls a method without gradients."""
    return concept("evaluation-hook").why(method)


def means_gpu(flag: str) -> str:
    """Why a flag is true where there is a GPU."""
    return concept("on-gpu").why(flag.lower())


def means_no_gpu(flag: str) -> str:
    """Why a flag is true where no GPU is used."""
    return concept("no-gpu").why(flag.lower())


@cache
def is_device(name: str) -> str:
    """Why a value is a device: `device`, `DEVICE`, `base_device`."""
    return concept("device").why(name.lower())


@cache
def gives_device(name: str) -> str:
    """Why a function that is given no tensor gives a device: `get_device_id()`, `dist_util.dev()`."""
    return concept("gives-device").why(name.lower().lstrip("_"))


@cache
def is_loader(name: str) -> str:
    """Why a value is a loader of batches: `data_loader`, `loader_eval`."""
    return concept("loader").why(name)


@cache
def holds_loaders(name: str) -> str:
    """Why a list or dict holds loaders of batches."""
    return concept("loaders").why(name)


@cache
def gives_loader(name: str) -> str:
    """Why a function gives a loader of batches: `get_train_loader(cfg)`."""
    return concept("gives-loader").why(name)


@cache
def is_on_cpu(name: str) -> str:
    """Why a tensor is on the CPU: `cpu_x`, `x_cpu`."""
    words = name.lower().split("_")
    return "" if concept("on-cpu-or-not").has_any(words) else next(filter(None, map(concept("on-cpu").why, words)), "")


@cache
def works_on_cpu(name: str) -> str:
    """Why the tensors of a function are on the CPU: `compute_cpu_loss`."""
    return "" if concept("to-cpu").has_any(name.lower().split("_")) else is_on_cpu(name)


def writes_log(name: str) -> str:
    """Why a function writes a log."""
    return concept("writes-log").why(name)


def holds_log(name: str) -> str:
    """Why a list, dict or object holds what is logged."""
    return next(filter(None, map(concept("holds-log").why, name.lower().split("_"))), "")


def logs(name: str) -> str:
    """Why an object is a logger: the last word of its name says it."""
    return "" if name in ("math", "np", "numpy", "torch") else holds_log(name)


def makes_bytes(name: str) -> str:
    """Why a function makes bytes of a value, or writes it to a file."""
    return concept("makes-bytes").why(name)


def belongs_to_training(name: str) -> str:
    """Why a function or class is part of training: a word of its name says it."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return next(filter(None, (concept("trains").why(word.lower()) for word in words)), "")


def asks_for_cpu(name: str) -> str:
    """Why a flag asks for values on the CPU."""
    return "" if name.startswith(("is_", "has_")) else concept("asks-for-cpu").why(name)


def is_dataset(name: str) -> str:
    """Why a class belongs to a loader's work, by the name of its base."""
    return concept("dataset").why(name)


def is_worker_group(name: str) -> str:
    """Why an attribute stands for other processes."""
    return concept("worker-group").why(name)


def is_environment(name: str) -> str:
    """Why a value is an environment."""
    return concept("environment").why(name.lower().rpartition("_")[2])


def is_action(name: str) -> str:
    """Why a value is an action."""
    return concept("action").why(name.lower())


def chooses_action(name: str) -> str:
    """Why a function chooses an action."""
    return concept("chooses-action").why(name)
