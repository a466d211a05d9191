"""TPF504: a model that is moved, cast or loaded again in each step."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._guards import is_guarded
from perflint.rules._methods import in_tests
from perflint.rules._operators import operators
from perflint.rules._turns import places, turn_around
from perflint.rules.base import Calls, CallSite, Files, FileSite, Rule, often, shown
from perflint.rules.worth import sentence
from perflint.semantics.around import loops_around, statement_of
from perflint.semantics.binders import LOOPS
from perflint.semantics.facts import conventions
from perflint.semantics.structure import calls_in, last_name, names_in, path_of, walk
from perflint.semantics.values import Instance

_METHODS = ("to", "cuda", "half", "float", "bfloat16", "double")
_MOVES = tuple(f"torch.nn.Module.{name}" for name in _METHODS)
_LOADS = operators("data", "loads_models")
_PRETRAINED = "from_pretrained"


class ModelMovedInLoop(Rule):
    """A model is moved, cast or loaded in code that runs each step.

    ## What it does
    Finds `.to(…)`, `.cuda()`, `.half()` and similar calls on modules in code that runs each step,
    and `torch.load`, `from_pretrained` and the like of a file or model whose name does not change there, or in a
    function that answers web requests, such as one under `@app.post("/…")`, or that only such a one calls.

    ## Why is this bad
    If the model is there already, each call still walks over all of its parameters and buffers on
    the CPU. If not, each step copies the whole model and waits. Loading also reads it from the
    disk. Moving a 124 M parameter GPT that was already in place had no measurable cost in a
    training step on an H200, so moving is information. Loading is a warning, because the source shows that the
    same file is read again.

    ## When it is fine
    - A model that is moved to the GPU for a phase and back to the CPU after it, to save memory:
      loops that move it both ways are not reported.
    - A module that is created in the same expression, such as a loss without parameters.
    - Files that differ between iterations.

    ## Bad
    ```python
    import torch

    def predict(model: torch.nn.Module, loader):
        with torch.inference_mode():
            for x in loader:
                model.to("cuda")
                yield model(x.cuda())
    ```

    ## Good
    ```python
    import torch

    def predict(model: torch.nn.Module, loader):
        model.to("cuda")
        with torch.inference_mode():
            for x in loader:
                yield model(x.cuda())
    ```

    ## Fix safety
    No fix: other code may decide where the model is at first.

    ## How a GPU shows it
    If the model is really moved, a profile shows one `Memcpy HtoD` for each parameter in every
    step. If it is already in place, it shows idle time of the GPU while the CPU walks over the
    model. A trace compares device and dtype of all parameters and buffers before and after. Copies in several steps
    confirm the finding; a model that stays where it is costs nothing, unless the calls take half a percent of the
    step. A file that is loaded again unchanged confirms it, and other files refute it.

    ## References
    - [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to)
    """

    code, name = "TPF504", "model-moved-in-loop"
    effect, severity = Effect.TRANSFER, Severity.INFO
    measured = ("model-moved-step-gpt",)
    costs = None
    listens = (Calls(*_MOVES, *_LOADS), Files(f".{_PRETRAINED}("))

    def check(self, site: CallSite | FileSite) -> Iterator[Finding]:
        if isinstance(site, FileSite):
            calls = (call for call in site.model.nodes(ast.Call) if last_name(call) == _PRETRAINED)
            for call in calls:
                yield from self._at(site.model.call(call), loads=True)
        else:
            yield from self._at(site, loads=site.target in _LOADS)

    def _at(self, site: CallSite, *, loads: bool) -> Iterator[Finding]:
        if not (_is_repeated(site, loads=loads) and (_loads_the_same(site) if loads else _moves(site))):
            return
        what = "loads the same again" if loads else "goes through the whole model, or copies it"
        yield self.finding(
            site,
            f"{shown(site)} {what}{often(site) or _often(site)}",
            confidence=Confidence.MEDIUM,
            severity=Severity.WARNING if loads else self.severity,
            # A handler runs once for each request.
            heat=Heat.HOT if loads and _answers(site) else site.heat,
            help="Call it once, before the loop.",
            cost=None
            if loads
            else sentence("for a model that is there already it costs GPT-2 training {0}", *self.measured),
        )


def _is_repeated(site: CallSite, *, loads: bool) -> bool:
    """True in code that runs each step; any loop will do for what takes as long as loading a model."""
    if site.heat is Heat.HOT or (loads and _answers(site)):
        return True
    if not loads or site.heat is Heat.COLD or not isinstance(turn_around(site.model, site.node), LOOPS):
        return False
    # `for attempt in range(3): try: return torch.load(path)`
    function = site.model.function(site.node)
    outer = itertools.takewhile(lambda each: each is not function, site.model.ancestors(site.node))
    return not any(isinstance(each, ast.Try) for each in outer)


def _answers(site: CallSite) -> bool:
    """True in a function that a web framework calls for each request, `@app.post("/…")`, or in one that only it calls.

    None of them keeps the result, and no other decorator may do so.
    """
    model = site.model
    for place in places(model, site.node):
        function, statement = model.function(place), statement_of(model, place)
        if isinstance(statement, ast.Assign) and not all(map(_is_local, statement.targets)):
            return False
        decorators = getattr(function, "decorator_list", [])
        calls = (each for each in decorators if isinstance(each, ast.Call) and each.args)
        paths = (each.args[0] for each in calls)
        if any(isinstance(path, ast.Constant) and str(path.value).startswith("/") for path in paths):
            return True
        if decorators or is_guarded(model, place):
            return False
    return False


def _is_local(target: ast.expr) -> bool:
    """True for a name, or several."""
    return all(map(_is_local, target.elts)) if isinstance(target, ast.Tuple) else isinstance(target, ast.Name)


def _often(site: CallSite) -> str:
    return " for each request" if _answers(site) else " in each iteration of a loop"


def _moves(site: CallSite) -> bool:
    path = "" if site.owner is None else path_of(site.owner)
    known = isinstance(site.receiver, Instance) and site.model.is_module(site.receiver)
    if not path or not known or path == "self":
        return False
    around: ast.AST | None = next(loops_around(site.model, site.node), None) or _step(site)
    if around is None or in_tests(site.model):
        return False
    return not _comes_and_goes(around, path, site.node) and not _is_made_in(around, path)


def _step(site: CallSite) -> ast.AST | None:
    """The method around a call that is one step by itself."""
    function = site.model.function(site.node)
    return function if conventions.gets_batch(getattr(function, "name", "")) else None


def _comes_and_goes(around: ast.AST, path: str, call: ast.Call) -> bool:
    """True if the same code moves the model elsewhere as well."""
    moves = {f"{path}.{method}" for method in (*_METHODS, "cpu")}
    return any(part is not call and path_of(part.func) in moves for part in calls_in(around))


def _is_made_in(around: ast.AST, path: str) -> bool:
    """True if the code binds the model: a new one in each iteration, or one of many."""
    for part in walk(around):
        if isinstance(part, (ast.For, ast.AsyncFor)) and path.partition(".")[0] in names_in(part.target):
            return True
        if isinstance(part, ast.Assign) and any(path_of(target) == path for target in part.targets):
            moved = part.value
            if not (isinstance(moved, ast.Call) and isinstance(moved.func, ast.Attribute)):
                return True
            if moved.func.attr not in _METHODS:
                return True
    return False


def _loads_the_same(site: CallSite) -> bool:
    """True if nothing that a turn of the code around a call binds decides what is loaded, nor whether."""
    around = next(loops_around(site.model, site.node), None) or site.model.function(site.node)
    given = [*site.node.args, *(keyword.value for keyword in site.node.keywords)]
    if around is None or not given or is_guarded(site.model, site.node) or in_tests(site.model):
        return False
    bound = {part.arg for part in walk(around) if isinstance(part, ast.arg)}
    bound |= {part.id for part in walk(around) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return not any(names_in(each) & (bound | {"self"}) for each in given)
