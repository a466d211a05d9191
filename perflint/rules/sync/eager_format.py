"""TPF108: formatting a GPU tensor as text, or passing it to a logger that does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Fix, Heat, Need, Safety, Severity
from perflint.fixes.edits import replace
from perflint.rules._methods import called_on, calls_named
from perflint.rules._statements import outward_in_function
from perflint.rules.base import (
    Calls,
    CallSite,
    ExpressionSite,
    Files,
    FileSite,
    FormatSite,
    Group,
    Rule,
    Site,
    device_confidence,
    often,
)
from perflint.semantics.around import inside, loops_around, targets
from perflint.semantics.dataflow.destinations import Use
from perflint.semantics.facts import conventions
from perflint.semantics.model import Model
from perflint.semantics.purpose.need import need_of_text
from perflint.semantics.structure import arguments, last_name, names_in, path_of
from perflint.semantics.values import UNKNOWN, Evidence, Mapping, Tensor, Value
from perflint.source.concrete import cst
from perflint.source.quoting import quoted

# In the model, a progress bar is the iterable that it wraps, which may be a loader.
_BARS = ("tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.trange", "torch.utils.data.DataLoader")
_WRITERS = ("torch.utils.tensorboard.SummaryWriter", "tensorboardX.SummaryWriter")
_OF_WRITERS = ("add_scalar", "add_scalars")
"""Methods that only writers of TensorBoard have."""
TRACKERS = (
    *(f"{name}.set_postfix" for name in _BARS),
    *(f"{name}.{method}" for name in _WRITERS for method in _OF_WRITERS),
    *("wandb.log", "wandb.Run.log", "wandb.run.log", "swanlab.log", "mlflow.log_metric", "mlflow.log_metrics"),
)
"""Functions that read the tensors among their arguments at once."""

_WRITTEN_WHEN_ASKED = frozenset(("__repr__", "__str__", "__format__", "extra_repr"))
_LOWEST_LEVEL = ("logging.debug", "logging.Logger.debug", "logging.LoggerAdapter.debug")
_LOW_LEVEL = ("logging.info", "logging.Logger.info", "logging.LoggerAdapter.info")


class EagerFormat(Rule):
    """
    ## What it does
    Finds GPU tensors in `print`, f-strings, `str()`, `repr()`, `format()`, `%` and logging calls,
    and GPU tensors passed to `pbar.set_postfix`, `wandb.log`, `SummaryWriter.add_scalar` and the
    like.

    ## Why is this bad
    To write a number the CPU must have it. Formatting a zero-dimensional tensor waits for the GPU
    once; a tensor with dimensions waits several times, because it is masked, summarised and read
    piece by piece. `print(f"{loss}")` each step made training of a 124 M parameter GPT 2% slower
    on an H200. An f-string in `logger.debug(f"…")` is built even if the message is not shown, and a
    progress bar formats its postfix even if it does not redraw.

    ## When it is fine
    Shapes, dtypes and Python numbers. Every 100 steps, once per epoch, on one rank at an
    interval: outside of code that runs every step the rule gives information only.
    `logger.debug("… %s", t)`: the text is not built while the level is off, nor is any text behind
    `if logger.isEnabledFor(logging.DEBUG)` or `if logger.level <= logging.DEBUG`. Messages of exceptions.
    Text in a branch that the numbers of a tensor choose (`if loss > 3: print(loss)`) is reported as info:
    the test waits first.

    ## Bad
    ```python
    import torch

    def train(model: torch.nn.Module, loader, optimizer):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            print(f"loss {loss}")
    ```

    ## Good
    ```python
    import logging
    import torch

    logger = logging.getLogger(__name__)

    def train(model: torch.nn.Module, loader, optimizer):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            logger.debug("loss %s", loss)
    ```

    ## Fix safety
    Unsafe, and offered only for an f-string that is the only argument of `logger.debug`, outside of
    code that runs rarely, such as that behind a test for the level: it becomes a lazy format. The text
    of a zero-dimensional tensor changes (`%s` writes `tensor(0.5000, device='cuda:0')` where an
    f-string writes `0.5`), and a tensor changed in place before a handler formats it shows its later
    value. If debug messages are written, formatting waits as before, and longer for the form that `%s`
    shows.

    ## How a GPU shows it
    `torch.cuda.set_sync_debug_mode("warn")` warns inside torch's own `_tensor.py` or `_tensor_str.py`,
    below the line.

    ## References
    - [Avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Optimization of logging calls](https://docs.python.org/3/howto/logging.html#optimization)
    """

    code, name = "TPF108", "eager-format"
    group = Group.TEXT
    effect, severity = Effect.SYNC, Severity.WARNING
    measured = ("eager-format-gpt", "eager-format-gpt-host-work", "eager-format-policy")
    listens = (FormatSite, Calls(*TRACKERS), Files(".add_scalar"))

    def need(self, site: ExpressionSite) -> Need:
        return need_of_text(site)

    def check(self, site: FormatSite | CallSite | FileSite) -> Iterator[Finding]:
        if isinstance(site, FileSite):
            for call in calls_named(site, *_OF_WRITERS):
                if not call.target and _has_tag(call):
                    yield from self._reads(call)
            return
        if isinstance(site, CallSite):
            yield from self._reads(site)
            return
        name, shown = _shown(site)
        if device_confidence(shown) is None or _is_of_failure(site) or _is_lazy(site, _LOWEST_LEVEL):
            return
        yield from self._report(site, site.node, shown, _how(site), name)

    def _reads(self, site: CallSite) -> Iterator[Finding]:
        for part in _tracked(site):
            how = f"is read by `{site.text(site.node.func)}`"
            yield from self._report(site, part, _holding_tensor(site.value(part)), how)

    def _report(
        self, site: FormatSite | CallSite, node: ast.expr, value: Value, how: str, attribute: str = ""
    ) -> Iterator[Finding]:
        confidence = device_confidence(value)
        if confidence is None:
            return
        tensor = value.tensor
        if isinstance(site, FormatSite) and tensor is not None and _may_be_text(site, tensor.evidence):
            confidence = Confidence.LOW
        is_long = tensor is not None and tensor.rank and not _takes_numbers(site)
        waits = "waits for the GPU several times" if is_long else "waits for the GPU"
        cured = isinstance(site, FormatSite) and _is_lazy(site, _LOW_LEVEL)
        yield self.finding(
            site,
            f"{quoted(site.text(node) + attribute)} {how}: the CPU {waits}{often(site)}",
            confidence=confidence,
            severity=Severity.INFO if cured else None,
            heat=Heat.COLD if _is_written_when_asked(site) else None,
            span=site.model.source.span(node),
            help=_NEEDED if isinstance(site, FormatSite) and _names(site) else _WRITTEN,
            # Behind a test for the level, the text is wanted; elsewhere in such code, it is rarely built.
            fix=_lazy_logging(site) if isinstance(site, FormatSite) and site.heat is not Heat.COLD else None,
        )


_WRITTEN = "Write it every 100 steps, or write the number of an earlier step, which is already there."
_NEEDED = "The CPU needs this text: make it from a value that is already there, or read all such values at once."


def _names(site: FormatSite) -> bool:
    """True if the text is a key or a name that the program works with."""
    if site.sink in ("print", "logging"):
        return False
    return _is_key(site) or {end.use for end in site.model.destinations.ends(site.node)} <= {Use.KEY, Use.KEPT}


def _takes_numbers(site: FormatSite | CallSite) -> bool:
    """True for a `%` format without `%s` and `%r`: a tensor then gives one number, or raises."""
    around = next((outer for outer in site.model.ancestors(site.node) if isinstance(outer, ast.BinOp)), None)
    if not isinstance(site, FormatSite) or site.sink != "%" or around is None:
        return False
    template = around.left.value if isinstance(around.left, ast.Constant) else None
    return isinstance(template, str) and re.search(r"%[^a-zA-Z%]*[sra]", template) is None


def _shown(site: FormatSite) -> tuple[str, Value]:
    """The value that is formatted: the argument itself, with "", or ".x", an attribute of it: `"{a.x}".format(a=a)`.

    Of `"{a}".format(**values)` and `"%(a)s" % values` one of the named values.
    """
    for name, shown in site.model.shown(site.node).items():
        if device_confidence(shown) is not None and (isinstance(shown, Tensor) or _is_given_tensors(site)):
            return f".{name}", shown
    value = site.value(site.node)
    template = _template(site) if isinstance(value, Mapping) else None
    if template is None or not isinstance(value, Mapping):
        return "", value
    texts = [str(node.value) for node in ast.walk(template) if isinstance(node, ast.Constant)]
    held = [value.get(name) for text in texts for pair in _NAMED.findall(text) for name in pair if name]
    return "", next((each for each in held if device_confidence(each) is not None), UNKNOWN)


def _is_given_tensors(site: FormatSite) -> bool:
    """True if a method of the shown object gets a tensor of the GPU: other objects of its class may get numbers."""
    model, node = site.model, site.node
    around = model.function(node) or model.module.tree
    for name in model.names(around, node.id) if isinstance(node, ast.Name) else ():
        call = called_on(model, name)
        given = () if call is None else arguments(call)
        if any(device_confidence(model.value(each)) is not None for each in given):
            return True
    return False


_NAMED = re.compile(r"(?<!\{)\{(\w+)|%\((\w+)\)")
"""A value's name in a format."""


def _template(site: FormatSite) -> ast.expr | None:
    """The format that takes its values from a dict by their names."""
    parent = site.model.parent(site.node)
    if site.sink == "%" and isinstance(parent, ast.BinOp):
        return parent.left
    call = site.model.parent(parent) if isinstance(parent, ast.keyword) and parent.arg is None else None
    return call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None


def _how(site: FormatSite) -> str:
    if site.sink == "print":
        return "is printed"
    if site.sink == "logging":
        return "is logged"
    return "is turned into text" if site.sink in ("str", "repr", "format") else f"is formatted by {_sink(site.sink)}"


def _sink(sink: str) -> str:
    return "an f-string" if sink == "f-string" else f"`{sink}`"


def _is_of_failure(site: Site) -> bool:
    """True if the text is made for an exception or a failed assertion only, or where a plain text does not do."""
    for outer, inner in outward_in_function(site.model, site.node):
        if isinstance(outer, ast.Raise) or (isinstance(outer, ast.Assert) and inner is outer.msg):
            return True
        if isinstance(outer, ast.IfExp) and inner is outer.orelse and isinstance(outer.body, ast.Constant):
            return True
    return False


def _may_be_text(site: FormatSite, evidence: Evidence) -> bool:
    """True if the use of a text shows that its value is a text or a number, and little shows that it is a tensor.

    It names a file or is a key of a dict: `cache[str(sample_id)]`. Or it is an element of a list that only stands in
    texts: `for name, x in zip(names, xs): print(f"{name}: {model(x)}")`.
    """
    if evidence <= Evidence.ANNOTATION and (_is_name(site) or _is_key(site)):
        return True
    if evidence > Evidence.CONVENTION:
        return False
    return bool(conventions.is_text(_name_of_one(site.node))) or _is_only_shown(site)


def _name_of_one(node: ast.expr) -> str:
    """The name of a value; of an element, that of the list without its plural: `caption` for `captions[i]`."""
    if isinstance(node, ast.Subscript):
        return path_of(node.value).rpartition(".")[2].removesuffix("s")
    return path_of(node).rpartition(".")[2]


def _is_key(site: FormatSite) -> bool:
    """True for `cache[str(x)]` and `cache.get(str(x))`."""
    text = site.model.parent(site.node) if site.sink == "str" else None
    around = None if text is None else site.model.parent(text)
    if isinstance(around, ast.Call) and last_name(around) == "get" and text in around.args:
        return True
    return site.model.destinations.of(site.node) is Use.KEY


def _is_only_shown(site: FormatSite) -> bool:
    """True for a name that a loop binds, not one over a dict of losses, and that only f-strings read."""
    model, name = site.model, site.node
    if not isinstance(name, ast.Name):
        return False
    pairs = (pair for loop in loops_around(model, name) for pair in targets(loop))
    bound = {each for target, source in pairs if last_name(source) not in _VIEWS for each in names_in(target)}
    around = model.function(name) or model.module.tree
    loads = (each for each in model.names(around, name.id) if isinstance(each.ctx, ast.Load))
    return name.id in bound and all(any(isinstance(o, ast.JoinedStr) for o in inside(model, each)) for each in loads)


_VIEWS = frozenset({"items", "values"})


def _is_name(site: FormatSite) -> bool:
    """True for `path = str(x)`: the text names a file, so that the type of `x` may be annotated too narrowly."""
    statement = site.model.parent(site.model.parent(site.node) or site.node)
    if site.sink != "str" or isinstance(site.node, (ast.Call, ast.BinOp)):
        return False
    if not isinstance(statement, (ast.Assign, ast.keyword)):
        return False
    if isinstance(statement, ast.keyword):
        return bool(conventions.names_file(statement.arg or ""))
    return bool(conventions.names_file(path_of(statement.targets[0]).rpartition(".")[2]))


def _is_written_when_asked(site: Site) -> bool:
    function = site.model.function(site.node)
    return isinstance(function, ast.FunctionDef) and function.name in _WRITTEN_WHEN_ASKED


def _is_lazy(site: FormatSite, functions: tuple[str, ...]) -> bool:
    """True if logging builds the text, and only if its level is enabled."""
    if site.sink != "logging":
        return False
    call = next((outer for outer in site.model.ancestors(site.node) if isinstance(outer, ast.Call)), None)
    return call is not None and site.model.target(call) in functions


def _has_tag(site: CallSite) -> bool:
    """True if a call passes a tag and a value, as writers of TensorBoard take them."""
    return len(site.node.args) > 1 or any(
        each.arg in ("scalar_value", "tag_scalar_dict") for each in site.node.keywords
    )


def _tracked(site: CallSite) -> Iterator[ast.expr]:
    """The expressions with tensors among a tracker's arguments; the entries of a dict one by one."""
    for argument in (*site.node.args, *(keyword.value for keyword in site.node.keywords)):
        parts = list(argument.values) if isinstance(argument, ast.Dict) else [argument]
        for part in parts:
            if device_confidence(_holding_tensor(site.value(part))) is not None:
                yield part


def _holding_tensor(value: Value) -> Value:
    """The value itself, or the element of a dict."""
    return value.element if isinstance(value, Mapping) else value


def _lazy_logging(site: FormatSite) -> Fix | None:
    """`logger.debug("… %s", t)` in place of `logger.debug(f"… {t}")`."""
    if site.sink != "f-string":
        return None
    text = next((outer for outer in site.model.ancestors(site.node) if isinstance(outer, ast.JoinedStr)), None)
    call = None if text is None else site.model.parent(text)
    if text is None or not isinstance(call, ast.Call) or call.args != [text]:
        return None
    if call.keywords or site.model.target(call) not in _LOWEST_LEVEL:
        return None
    return _as_arguments(site.model, call, text)


def _as_arguments(model: Model, call: ast.Call, text: ast.JoinedStr) -> Fix | None:
    written = model.source.concrete(text)
    node = model.source.concrete(call)
    if not isinstance(written, cst.FormattedString) or not isinstance(node, cst.Call) or written.lpar:
        return None
    literal, arguments = "", []
    for part in written.parts:
        if isinstance(part, cst.FormattedStringText):
            literal += part.value.replace("%", "%%").replace("{{", "{").replace("}}", "}")
        elif isinstance(part, cst.FormattedStringExpression):
            if part.format_spec is not None or part.equal is not None or part.conversion not in (None, "s", "r"):
                return None
            literal += "%r" if part.conversion == "r" else "%s"
            arguments.append(cst.Arg(part.expression))
    prefix = written.start.rstrip("'\"").replace("f", "").replace("F", "")
    quote = written.start.lstrip("fFrR")
    first = cst.Arg(cst.SimpleString(f"{prefix}{quote}{literal}{written.end}"))
    edit = replace(model.source, model.source.span(call), node.with_changes(args=[first, *arguments]))
    return Fix("Let the logger make the text if it is wanted", Safety.UNSAFE, (edit,))
