"""The meaning of names by the conventions of the field: the questions that only rules ask.

As in `conventions`, each question returns the entry of `conventions.toml` that decides, or None.
"""

from __future__ import annotations

from perflint.semantics.facts.concepts import Entry, concept, words


def names_evaluation(name: str) -> Entry | None:
    """Why a function evaluates a model, or a loader has held-out data."""
    return concept("evaluates").of_any(words(name))


def draws_by_name(name: str) -> Entry | None:
    """Why a function or class draws pictures."""
    return concept("draws-function").of_any(words(name))


def holds_pictures(name: str) -> Entry | None:
    """Why a list or dict holds pictures."""
    return concept("pictures").of_any(words(name))


def names_generation(name: str) -> Entry | None:
    """Why a function samples or decodes."""
    return concept("generates").of_any(words(name))


def names_data(name: str) -> Entry | None:
    """Why a value is a data set or a loader."""
    return concept("data").of_any(words(name))


def holds_positions(name: str) -> Entry | None:
    """Why a tensor of unknown dtype that indexes another holds positions rather than a mask."""
    return concept("positions").of_any(words(name)[-1:])


def makes_optimizer(name: str) -> Entry | None:
    """Why a function makes an optimizer."""
    return concept("makes-optimizer").of_any(words(name))


def is_scheduler(name: str) -> Entry | None:
    """Why a function or its result is a scheduler, and no optimizer."""
    return concept("scheduler").of_any(words(name))


def feeds_others(name: str) -> Entry | None:
    """Why the result of a function may be the input of a model that is trained."""
    return concept("feeds-others").of_any(words(name))


def returns_loss(method: str) -> Entry | None:
    """Why a trainer backpropagates the result of a method."""
    return concept("returns-loss").of(method)


def is_kept_model(name: str) -> Entry | None:
    """Why a model beside one that is trained is not trained itself: `teacher`, `self.ref_model`."""
    return concept("kept-model").of(name.lower())


def is_no_model_class(cls: str) -> Entry | None:
    """Why the objects of a class are not models that one evaluates."""
    return concept("no-model-class").of(cls)


def runs_its_model(method: str) -> Entry | None:
    """Why a method of a model runs it."""
    return concept("runs-its-model").of(method)


def gives_result(method: str) -> Entry | None:
    """Why a method of a model that has arguments runs it: `encode_image(x)`, but not `get_image_paths(x)`."""
    parts = words(method)
    results = parts[-1:] if parts[:1] == ("get",) else parts[1:]
    return concept("result-verb").of_any(parts[:1]) and concept("result").of_any(results)


def computes_loss(name: str) -> Entry | None:
    """Why an unknown callable is a loss: `mse_loss`, `loss_fn`, but not `loss_scaler` and `scale_loss`."""
    parts = [*words(name)]
    while len(parts) > 1 and concept("function").of(parts[-1]):
        parts.pop()
    return None if concept("acts-on-loss").of_any(parts) else concept("loss").of_any(parts[-1:])


def samples_dropout(name: str) -> Entry | None:
    """Why a function runs a model in training mode on purpose."""
    return concept("samples-dropout").of_any(words(name))


def updates_weights(name: str) -> Entry | None:
    """Why a function that is given a model copies or averages weights."""
    return concept("updates-weights").of_any(words(name))


def freezes(name: str) -> Entry | None:
    """Why a name is about gradients that are taken away."""
    return concept("freezes").of(name.lower())


def suspends_autograd(name: str) -> Entry | None:
    """Why a name is about autograd that is switched."""
    return concept("suspends-autograd").of(name.lower())


def is_evaluation_context(name: str) -> Entry | None:
    """Why a context manager or decorator is for evaluations."""
    return concept("evaluation-context").of(name.lower())


def tries_out(name: str) -> Entry | None:
    """Why a file, class or function is there to try things out."""
    return concept("tries-out").of(name.lower())


def is_on_purpose(name: str) -> Entry | None:
    """Why a file, class or function switches to slow and repeatable kernels on purpose."""
    return tries_out(name) or concept("makes-repeatable").of(name.lower())


def is_image(name: str) -> Entry | None:
    """Why a value holds images."""
    return concept("image").of_any(name.split("_"))


def is_model_of_images(name: str) -> Entry | None:
    """Why an unknown callable that is given images is a model."""
    return concept("model-of-images").of(name.lower())


def frees_memory(name: str) -> Entry | None:
    """Why a call belongs to a function that frees memory and reports how much it was."""
    return concept("frees-memory").of(name)


def holds_parameters(name: str) -> Entry | None:
    """Why a value holds parameters, or their gradients."""
    return concept("parameters").of(name)
