"""The meaning of names by the conventions of the field, as the tables of `conventions.toml` state it.

Each question returns the entry that decides, with its reason as a clause that follows "it", or None if the name
does not decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from perflint.semantics.facts.concepts import Entry, concept, words


def runs_each_step(name: str, is_method: bool) -> Entry | None:
    """Why a function runs in each step."""
    function = concept("each-step-function")
    known = function.of(name)
    if known or not is_method:
        return known
    method, plain = concept("each-step-method"), name.lstrip("_")
    return method.of(name) or method.of(plain) or function.of(plain) or concept("each-step-part").of(name)


def stands_in(name: str) -> Entry | None:
    """Why a function runs in each step, unless something says that it runs rarely: a loss, a patched forward."""
    return concept("each-step-stand-in").of(name)


def is_meter(cls: str) -> Entry | None:
    """Why a class keeps statistics that are updated in each step."""
    return concept("meter").of(cls)


def writes_to(name: str) -> Entry | None:
    """Why a value names a file that is written."""
    return concept("written-file").of(name)


def sums_up(name: str) -> Entry | None:
    """Why a method of a metric runs once an epoch."""
    return concept("metric-summary").of(name)


def looks_for_mistakes(part: str) -> Entry | None:
    """Why a program in a folder or module of this name is run by hand to find a mistake."""
    return concept("debug-file").of(part)


def analyses(part: str) -> Entry | None:
    """Why a file in a folder or module of this name evaluates models or analyses their results."""
    return concept("analysis-file").of(part)


def computes_metrics(part: str) -> Entry | None:
    """Why a file in a folder or module of this name computes metrics."""
    return concept("metric-file").of(part)


def is_retired(folder: str) -> Entry | None:
    """Why the files in a folder of this name no longer run, if no other file imports them."""
    return concept("retired").of(folder)


def sets_up(name: str) -> Entry | None:
    """Why a function runs rarely, unless code that runs each step certainly calls it."""
    return concept("set-up").of(name)


def runs_rarely(name: str) -> Entry | None:
    """Why a function runs rarely, unless code that runs each step may call it."""
    return concept("rarely").of(name)


def runs_once(name: str) -> Entry | None:
    """Why a process runs a function once, whatever it is given."""
    return concept("once").of(name.lstrip("_"))


def runs_once_without_data(name: str) -> Entry | None:
    """Why a process runs a function once if it is given no tensors."""
    return concept("once-without-data").of(name.lstrip("_"))


def is_item(name: str) -> Entry | None:
    """Why a loader calls a method for each item or batch."""
    return concept("item").of(name)


def joins_items(name: str) -> Entry | None:
    """Why a loader calls a function with the items of a batch."""
    return concept("collates").of(name)


def opens_file(name: str) -> Entry | None:
    """Why a call, by its full name or its last name, opens or reads a file."""
    return concept("opens-file").of(name)


def reads_item(name: str) -> Entry | None:
    """Why a call, by its full name, reads a picture, a video or a recording from a file."""
    return concept("reads-item").of(name)


def checks_results(name: str) -> Entry | None:
    """Why a function that asserts that tensors are alike is a test."""
    return concept("checks").of(name.lstrip("_"))


def is_test(name: str) -> Entry | None:
    """Why a function that checks results, or that makes its own inputs, is a test."""
    return concept("test").of(name.lstrip("_"))


def starts_program(name: str) -> Entry | None:
    """Why a function that is called belongs to a program."""
    return concept("program").of(name)


def measures_time(name: str) -> Entry | None:
    """Why a function is a benchmark."""
    return concept("benchmark").of(name)


def is_reference(name: str) -> Entry | None:
    """Why a function is reference code if only tests call it."""
    return concept("reference").of(name)


def asserts(name: str) -> Entry | None:
    """Why a call asserts that tensors are alike."""
    return concept("asserts").of(name)


def joins_parts(name: str) -> Entry | None:
    """Why a method that is given nothing to run on changes the weights of its object."""
    return concept("joins").of(name.strip("_").split("_")[0])


def may_run_again(name: str) -> Entry | None:
    """Why a method that constructors call may also be called later."""
    return concept("again").of(name)


def prepares_model(name: str) -> Entry | None:
    """Why a method of a model does not run it."""
    return concept("prepares-model").of(name) or concept("looks-up").of(name)


def looks_up(name: str) -> Entry | None:
    """Why a method of a module, a container or a parameter runs no part of a model."""
    return concept("looks-up").of(name)


def changes_model(name: str) -> Entry | None:
    """Why a method changes or finds parts of a model, unless it is given tensors."""
    first, *_ = parts = name.strip("_").split("_")
    part = concept("set-up-object")
    return concept("set-up-verb").of(first) or part.of_any(parts)


def runs_model(name: str) -> Entry | None:
    """Why a method of any object runs a model."""
    return concept("runs-model").of(name)


def is_model(name: str) -> Entry | None:
    """Why a name is that of a model: `netG`, `ema_model`."""
    return None if works_on_model(name) else concept("model").of(name.lower().rpartition("_")[2])


def works_on_model(name: str) -> Entry | None:
    """Why a function that is given a model, or has one in its name, does not run it."""
    return concept("works-on-model").of_any(name.lower().split("_"))


def is_optimizer(name: str) -> Entry | None:
    """Why a name is that of an optimizer."""
    return concept("optimizer").of(name.lower())


def is_optimizer_or_scaler(name: str) -> Entry | None:
    """Why a value is an optimizer or a gradient scaler: `loss_scaler`, `d_optim`."""
    return concept("optimizer-or-scaler").of_any(words(name)[-1:])


def is_mode(name: str) -> Entry | None:
    """Why a flag or function is false while a model runs eagerly."""
    return concept("mode").of(name)


def is_rarely_true(name: str) -> Entry | None:
    """Why a flag or function is mostly false."""
    return concept("rarely-true").of(name) or is_mode(name)


def limits_length(name: str) -> Entry | None:
    """Why few inputs are longer than an attribute."""
    return concept("longest").of(name)


def is_not_finite(name: str) -> Entry | None:
    """Why a flag or function is true only if a number is not finite."""
    return concept("not-finite").of(name)


def is_finite(name: str) -> Entry | None:
    """Why a flag or function is false only if a number is not finite."""
    return concept("finite").of(name)


def registers(name: str) -> Entry | None:
    """Why a method of a module is called once for each name."""
    return concept("registers").of(name)


def reports(name: str) -> Entry | None:
    """Why a method reports an error or a warning."""
    return concept("reports").of(name)


def counts_steps(name: str) -> Entry | None:
    """Why a number counts steps, so that it is 0 once."""
    return None if concept("part-of-step").of_any(name.split("_")) else concept("step-counter").of(name)


def prepares_data(module: str) -> Entry | None:
    """Why a module, by its full name, prepares data."""
    return concept("prepares-data").of_any(module.split("."))


def names_file(name: str) -> Entry | None:
    """Why a value is the name of a file or an entry, and no tensor."""
    return concept("names-file").of(name.lower())


def is_text(name: str) -> Entry | None:
    """Why a value is a text or the name of something, and no tensor."""
    return names_file(name) or concept("text").of(name.lower())


def draws(module: str, packages: Iterable[str]) -> Entry | None:
    """Why a module that imports from some packages draws pictures, by its full name."""
    if not concept("draws-library").of_any(packages):
        return None
    return concept("draws").of_any(module.split("~")[0].split("."))


@cache
def is_other_framework(package: str) -> Entry | None:
    """Why the models and tensors of a package are not those of torch."""
    return concept("other-frameworks").of(package)


@cache
def has_other_tensors(package: str) -> Entry | None:
    """Why a `Tensor` of a package is not one of torch."""
    return is_other_framework(package) or concept("other-tensors").of(package)


@cache
def has_other_arrays(package: str) -> Entry | None:
    """Why a package has objects that have methods of tensors, such as `item`."""
    return has_other_tensors(package) or concept("other-arrays").of(package)


def has_environments(package: str) -> Entry | None:
    """Why the classes of a package are environments, and no modules."""
    return concept("environments-library").of(package)


def compiles_kernels(package: str) -> Entry | None:
    """Why the functions that a package decorates are kernels."""
    return concept("kernel-compiler").of(package)


def makes_kernel(decorator: str) -> Entry | None:
    """Why a function with a decorator is a kernel."""
    return concept("kernel-decorator").of(decorator)


def gets_batch(method: str) -> Entry | None:
    """Why the arguments of a method of a module are on the device of the module."""
    return concept("on-device-method").of(method)


def is_batch_hook(method: str) -> Entry | None:
    """Why `batch` and `outputs` of a method are on the device."""
    return concept("batch-hook").of(method)


def is_evaluation_hook(method: str) -> Entry | None:
    """Why a trainer calls a method without gradients."""
    return concept("evaluation-hook").of(method)


def means_gpu(flag: str) -> Entry | None:
    """Why a flag is true where there is a GPU."""
    return concept("on-gpu").of(flag.lower())


def means_no_gpu(flag: str) -> Entry | None:
    """Why a flag is true where no GPU is used."""
    return concept("no-gpu").of(flag.lower())


@cache
def is_flag(key: str) -> Entry | None:
    """Why the value of a key of a dict is True or False."""
    return concept("flag").of(key)


def saves(name: str) -> Entry | None:
    """Why a function saves a model."""
    return concept("saves").of_any(name.lower().split("_"))


def is_rare_option(value: object) -> Entry | None:
    """Why few models have a value of a setting."""
    return concept("rare-option").of(value) if isinstance(value, str) else None


def is_time_step(name: str) -> Entry | None:
    """Why a parameter is an item of the tensor `timesteps` of its object."""
    return concept("time-step").of(name)


def is_device(name: str) -> Entry | None:
    """Why a value is a device: `device`, `DEVICE`, `base_device`."""
    return concept("device").of(name.lower())


@cache
def gives_device(name: str) -> Entry | None:
    """Why a function that is given no tensor gives a device: `get_device_id()`, `dist_util.dev()`."""
    return concept("gives-device").of(name.lower().lstrip("_"))


@cache
def is_loader(name: str) -> Entry | None:
    """Why a value is a loader of batches: `data_loader`, `loader_eval`."""
    return concept("loader").of(name)


@cache
def holds_loaders(name: str) -> Entry | None:
    """Why a list or dict holds loaders of batches."""
    return concept("loaders").of(name)


@cache
def gives_loader(name: str) -> Entry | None:
    """Why a function gives a loader of batches: `get_train_loader(cfg)`."""
    return concept("gives-loader").of(name)


@cache
def is_output(name: str) -> Entry | None:
    """Why an attribute is a tensor that a model computed: `outputs.logits`."""
    return concept("model-output").of(name)


def holds_outputs(name: str) -> Entry | None:
    """Why an attribute holds tensors that a model computed: `outputs.hidden_states`."""
    return concept("model-outputs").of(name)


def is_on_cpu(name: str) -> Entry | None:
    """Why a tensor is on the CPU: `cpu_x`, `x_cpu`."""
    parts = name.lower().split("_")
    return None if concept("on-cpu-or-not").of_any(parts) else concept("on-cpu").of_any(parts)


@cache
def works_on_cpu(name: str) -> Entry | None:
    """Why the tensors of a function are on the CPU: `compute_cpu_loss`."""
    return None if concept("to-cpu").of_any(name.lower().split("_")) else is_on_cpu(name)


def writes_log(name: str) -> Entry | None:
    """Why a function writes a log."""
    return concept("writes-log").of(name)


def holds_log(name: str) -> Entry | None:
    """Why a list, dict or object holds logged values."""
    return concept("holds-log").of_any(name.lower().split("_"))


def logs(name: str) -> Entry | None:
    """Why an object is a logger: the last word of its name says it."""
    return None if name in ("math", "np", "numpy", "torch") else holds_log(name)


def makes_bytes(name: str) -> Entry | None:
    """Why a function makes bytes of a value, or writes it to a file."""
    return concept("makes-bytes").of(name)


def runs_training(name: str) -> Entry | None:
    """Why a function trains with the functions that it gets: `pretrain(datasets, model, forward_step)`."""
    return concept("runs-training").of(name)


def belongs_to_training(name: str) -> Entry | None:
    """Why a function or class is part of training: a word of its name says it."""
    return concept("trains").of_any(words(name))


def computes_gradients(name: str) -> Entry | None:
    """Why a function that is called, and not seen, trains or computes gradients."""
    return None if name == "is_training" else concept("training-call").of_any(words(name))


def leaves_optimizer(name: str) -> Entry | None:
    """Why a function that is given an optimizer does not step it."""
    return concept("leaves-optimizer").of_any(words(name))


def asks_for_cpu(name: str) -> Entry | None:
    """Why a flag asks for values on the CPU."""
    return None if name.startswith(("is_", "has_")) else concept("asks-for-cpu").of(name)


def is_dataset(name: str) -> Entry | None:
    """Why a class belongs to a loader's work, by the name of its base."""
    return concept("dataset").of(name)


def is_transform(name: str) -> Entry | None:
    """Why a class changes the items of a dataset, by the full name of its base."""
    return concept("transform").of(name)


def is_worker_group(name: str) -> Entry | None:
    """Why an attribute stands for other processes."""
    return concept("worker-group").of(name)


def is_environment(name: str) -> Entry | None:
    """Why a value is an environment."""
    return concept("environment").of(name.lower().rpartition("_")[2])


def is_action(name: str) -> Entry | None:
    """Why a value is an action."""
    return concept("action").of(name.lower())


def chooses_action(name: str) -> Entry | None:
    """Why a function chooses an action."""
    return concept("chooses-action").of(name)


def is_accelerator(name: str) -> Entry | None:
    """Why a value is an object of `accelerate`, if its methods are used."""
    return concept("accelerator").of(name)


def works_on_results(name: str) -> Entry | None:
    """Why a function of a module that prepares data works on the results of a model."""
    return concept("works-on-results").of_any(name.split("_"))
