"""TPF902: the AMP names of `torch.cuda.amp` and `torch.cpu.amp`."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, combinations

from perflint.findings import Edit, Effect, Finding, Fix, Heat, Safety, Severity
from perflint.fixes.edits import replace, with_argument
from perflint.fixes.imports import Spelling, spell
from perflint.rules._project_text import some_file_says
from perflint.rules._since import AMP_AUTOCAST, AMP_CUSTOM, AMP_GRAD_SCALER
from perflint.rules._statements import outward
from perflint.rules.base import Files, FileSite, Rule
from perflint.rules.legacy import _amp
from perflint.rules.legacy._amp import Reference
from perflint.semantics.binders import Import
from perflint.semantics.model import Model
from perflint.semantics.purpose.takers import is_taken
from perflint.semantics.structure import grouped, last_name, walk
from perflint.semantics.symbols import Symbols
from perflint.source.concrete import cst

_AUTOCAST_PARAMETERS = ("enabled", "dtype", "cache_enabled")
_SINCE = {
    "autocast": AMP_AUTOCAST,
    "GradScaler": AMP_GRAD_SCALER,
    "custom_fwd": AMP_CUSTOM,
    "custom_bwd": AMP_CUSTOM,
}
_FORMATS = {"cuda": "float16", "cpu": "bfloat16"}
_CACHE = re.compile(r"cache_enabled")
_ASKS_FOR_SCALERS = re.compile(
    r"\b(?:isinstance|issubclass)\([^\n]*\bGradScaler\b"
    r"|(?:\bis|\bnot|[!=]=) [\w.]*\bGradScaler\b(?!\()|\bcase [\w.]*\bGradScaler\("
)
_REPLACES = re.compile(
    r"""(?:patch|setattr)\(\s*["']torch\.(?:cuda|cpu)\.amp\.|(?:setattr|patch\.object)\(\s*[\w.]*\bamp\s*,"""
    r"""|\bamp\.(?:autocast|GradScaler|custom_[bf]wd)\s*=(?!=)"""
)
_PACKAGES = ("torch.cuda.amp", "torch.cpu.amp")


class DeprecatedAmp(Rule):
    """
    ## What it does
    Finds `autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` of `torch.cuda.amp`, and
    `autocast` and `GradScaler` of `torch.cpu.amp`, however they are imported.

    ## Why is this bad
    Since torch 2.4 each call raises a FutureWarning, which a training loop repeats, and the names
    will be removed. `torch.amp` has the same for every device. The order of the parameters differs.
    The first positional argument of `torch.cuda.amp.autocast` is `enabled`; that of
    `torch.amp.autocast` is the device type and its second is `dtype`. So putting `"cuda"` in front
    of the old arguments turns `enabled` into `dtype`.

    It costs no measurable time. It is a warning because the names will be removed. The fix of one finding
    changes all places of the file that can change as safely.

    ## When it is fine
    Code that also runs on torch before 2.4 needs the old names in one branch: a branch or an import
    whose alternative uses `torch.amp` or `torch.autocast` is not reported.

    ## Bad
    ```python
    import torch

    def train(model, batches, optimizer, use_amp):
        scaler = torch.cuda.amp.GradScaler()
        for batch in batches:
            with torch.cuda.amp.autocast(use_amp):
                loss = model(batch)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    ```

    ## Good
    ```python
    import torch

    def train(model, batches, optimizer, use_amp):
        scaler = torch.amp.GradScaler("cuda")
        for batch in batches:
            with torch.amp.autocast("cuda", enabled=use_amp, dtype=torch.float16):
                loss = model(batch)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    ```

    ## Fix safety
    Safe: the old names construct the new ones with the same values. Positional arguments of
    `autocast` become keywords. The old `autocast` computes in float16 (on the CPU in bfloat16) and
    keeps a cache if no argument says otherwise. The new one inherits from the surrounding autocast,
    so the fix writes `dtype`, and `cache_enabled=True` if the file sets that. If the names are
    imported, the import and all uses change together, but not if another file imports the names
    from this one. If one of the uses cannot change, the others are spelled in full. Unsafe if a
    file that may run in the same process tests for a scaler with `isinstance`, `type(…) is` or `case`: a scaler of the
    new class is not an instance of the old class, and a test for the new class also accepts scalers of the old one.
    Unsafe, too, if such a file puts something else in place of an old name, as `mock.patch` does.

    ## How a GPU shows it
    A trace confirms the finding if the line ran under a torch that deprecates the name.

    It does not: the same kernels run. The warning shows on the CPU.

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    - [torch.cuda.amp.autocast, deprecated](https://docs.pytorch.org/docs/stable/amp.html#torch.cuda.amp.autocast)
    """

    code, name = "TPF902", "deprecated-amp"
    effect, severity = Effect.CORRECTNESS, Severity.WARNING
    listens = (Files("amp", pattern=_amp.MENTIONED),)
    since = (2, 4)
    is_deprecation = True

    def check(self, site: FileSite) -> Iterator[Finding]:
        source = site.model.source
        names = site.model.symbols
        found = sorted(_amp.references(source.tree, names), key=lambda each: source.span(each.node))
        moved = _Imports(site.model, names, found)
        for reference in found:
            if _is_fallback(site.model, reference, names):
                continue
            runs = _call_of(site.model, reference) is not None or not _names_a_type(site.model, reference.node)
            yield self.finding(
                site,
                _message(site, reference),
                span=source.span(reference.node),
                # Set-up code prints the warning, too.
                heat=Heat.WARM,
                severity=self.severity if runs else Severity.INFO,
                fix=moved.fix(reference),
            )


def _message(site: FileSite, reference: Reference) -> str:
    call = _call_of(site.model, reference)
    new = None if call is None else _with_device(site.model, reference, call)
    cure = reference.modern
    if new is not None:
        cure += _arguments_of(new)
    elif reference.member.startswith("custom"):
        cure += f'(device_type="{reference.device}")'
    return f"`{site.text(reference.node)}` is deprecated since torch 2.4 and warns at each call: use `{cure}`"


def _arguments_of(call: cst.Call) -> str:
    text = cst.Module([]).code_for_node(call.with_changes(func=cst.Name("f"), lpar=(), rpar=()))[1:]
    return text if "\n" not in text and len(text) <= 60 else "(…)"


class _Imports:
    """The fixes of a file's references: those that hang on one import change with it, at once."""

    def __init__(self, model: Model, names: Symbols, found: list[Reference]) -> None:
        self._model = model
        self._names = names
        self._by_root = grouped((reference.root.id, reference) for reference in found)
        self._exported = _exported(model.source.tree)
        self._loads = Counter(node.id for node in model.everything() if isinstance(node, ast.Name))
        self._moved: dict[Import, Fix | None] = {}
        self._asks_for_scalers = some_file_says(model, _ASKS_FOR_SCALERS)
        """True if a file that may run in the same process tests whether an object is of the old class."""
        self._replaces = some_file_says(model, _REPLACES)
        """True if such a file puts something else under an old name, as tests do."""

    def fix(self, reference: Reference) -> Fix | None:
        """The fix of one reference; None if its place allows none."""
        (binding, *_) = self._names.imported[reference.root.id]
        if binding.full.startswith(_PACKAGES):
            if binding.statement not in self._moved:
                self._moved[binding.statement] = self._move(binding.statement)
            together = self._moved[binding.statement]
            if together is not None:
                return together
        return self._alone(reference)

    def _alone(self, reference: Reference) -> Fix | None:
        spelling = self._spell(reference)
        edits = _edits(self._model, reference, None if spelling is None else spelling.text)
        if spelling is None or edits is None:
            return None
        return self._fix(edits, f"Use `{spelling.text}`", spelling.imports, [reference])

    def _spell(self, reference: Reference) -> Spelling | None:
        root = reference.root.id
        if self._names.imported[root][0].full == "torch":
            return Spelling(f"{root}{reference.modern.removeprefix('torch')}")
        return spell(self._model.symbols, reference.modern, reference.node)

    def _move(self, statement: Import) -> Fix | None:
        """The edits of an import and of all uses of the names that it binds; None if one of them cannot change."""
        bound = [each for each in self._names.imports if each.statement is statement]
        edits = [_moved_import(self._model, statement)]
        if len(bound) != len(statement.names) or edits[0] is None:
            return None
        for binding in bound:
            uses = self._by_root.get(binding.local, [])
            alone = len(self._names.imported[binding.local]) == 1 and not self._names.is_rebound(binding.local)
            alone = alone and binding.local not in self._exported
            if not alone or not uses or self._loads[binding.local] != len(uses):
                return None
            for use in uses:
                changed = _edits(self._model, use, None)
                if changed is None:
                    return None
                edits.extend(changed)
        done = [edit for edit in edits if edit is not None]
        if any(left.span.overlaps(right.span) for left, right in combinations(done, 2)):
            return None
        is_seen = self._model.function(statement) is None
        if is_seen and any(is_taken(self._model, binding.local) for binding in bound):
            return None
        used = [use for binding in bound for use in self._by_root.get(binding.local, [])]
        return self._fix(done, "Import from `torch.amp`", (), used)

    def _fix(self, edits: list[Edit], message: str, imports: tuple[str, ...], used: list[Reference]) -> Fix:
        scalers = any(use.member == "GradScaler" for use in used)
        unsafe = any(_is_asked_for(self._model, use.node) for use in used) or (scalers and self._asks_for_scalers)
        unsafe = unsafe or self._replaces
        added = [each.imports for use in used if (each := _format(self._model, use)) is not None]
        imports = tuple(dict.fromkeys((*imports, *chain.from_iterable(added))))
        since = max(_SINCE[use.member] for use in used)
        return Fix(message, Safety.UNSAFE if unsafe else Safety.SAFE, tuple(edits), imports, since=since)


def _exported(tree: ast.Module) -> set[str]:
    """The names in `__all__`: other files may import them from this one."""
    return {
        node.value
        for statement in tree.body
        if isinstance(statement, (ast.Assign, ast.AugAssign))
        and any(
            isinstance(target, ast.Name) and target.id == "__all__"
            for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        )
        for node in walk(statement.value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _moved_import(model: Model, statement: Import) -> Edit | None:
    """The import from `torch.amp` instead; None if the statement imports other things too."""
    span = model.source.span(statement)
    text = model.source.segment(span)
    if isinstance(statement, ast.ImportFrom) and statement.module in ("torch.cuda", "torch.cpu"):
        if [alias.name for alias in statement.names] != ["amp"]:
            return None
        return replace(model.source, span, text.replace(statement.module, "torch", 1))
    modules = [statement.module or ""] if isinstance(statement, ast.ImportFrom) else [a.name for a in statement.names]
    for package in _PACKAGES:
        if len(modules) == 1 and f"{modules[0]}.".startswith(f"{package}.") and modules[0] in text:
            return replace(model.source, span, text.replace(package, "torch.amp", 1))
    return None


def _edits(model: Model, reference: Reference, spelling: str | None) -> list[Edit] | None:
    """The edits at a reference; `spelling` None leaves its name to the import."""
    call = _call_of(model, reference)
    if call is not None:
        new = _with_device(model, reference, call)
        if new is None:
            return None
        if spelling is not None:
            new = new.with_changes(func=cst.parse_expression(spelling))
        return [replace(model.source, model.source.span(call), new)]
    name = model.source.written(reference.node) if spelling is None else spelling
    if reference.member.startswith("custom") and _is_decorator(model, reference.node):
        name += f'(device_type="{reference.device}")'
    elif not _names_a_type(model, reference.node):
        return None
    return [replace(model.source, model.source.span(reference.node), name)] if spelling or "(" in name else []


def _call_of(model: Model, reference: Reference) -> ast.Call | None:
    parent = model.parent(reference.node)
    return parent if isinstance(parent, ast.Call) and parent.func is reference.node else None


def _with_device(model: Model, reference: Reference, call: ast.Call) -> cst.Call | None:
    """The call with the device named and its arguments where `torch.amp` has them."""
    concrete = model.source.concrete(call)
    assert isinstance(concrete, cst.Call)
    if reference.member.startswith("custom"):
        return with_argument(concrete, f'device_type="{reference.device}"')
    if reference.member == "autocast":
        named = _named(list(concrete.args))
        explicit = None if named is None else _with_defaults(model, reference, concrete.with_changes(args=named))
        if explicit is None:
            return None
        concrete = explicit
    if not concrete.args:
        return with_argument(concrete, f'"{reference.device}"')
    device = cst.Arg(cst.SimpleString(f'"{reference.device}"'))
    device = device.with_changes(comma=cst.Comma(whitespace_after=_between(concrete)))
    return concrete.with_changes(args=[device, *concrete.args])


def _with_defaults(model: Model, reference: Reference, call: cst.Call) -> cst.Call | None:
    """The call of `autocast` with the old defaults that the new one takes from the autocast around it."""
    given = {argument.keyword.value: argument.value for argument in call.args if argument.keyword is not None}
    if any(argument.star for argument in call.args):
        return None
    enabled = given.get("enabled")
    if isinstance(enabled, cst.Name) and enabled.value == "False":
        return call
    new: cst.Call | None = call
    if "dtype" not in given:
        dtype = _format(model, reference)
        new = None if dtype is None else with_argument(call, f"dtype={dtype.text}")
    if new is not None and "cache_enabled" not in given and model.matches(_CACHE):
        new = with_argument(new, "cache_enabled=True")
    return new


def _format(model: Model, reference: Reference) -> Spelling | None:
    """How the number format is spelled in which the old `autocast` computes by default."""
    if reference.member != "autocast":
        return None
    return spell(model.symbols, f"torch.{_FORMATS[reference.device]}", reference.node)


def _between(call: cst.Call) -> cst.BaseParenthesizableWhitespace:
    """The white space after a new first argument: a line break where the old first one has a line."""
    before = call.whitespace_before_args
    if isinstance(before, cst.ParenthesizedWhitespace):
        return before.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    return cst.SimpleWhitespace(" ")


def _named(arguments: list[cst.Arg]) -> list[cst.Arg] | None:
    """The arguments of the old `autocast` with its positional ones named; None if `*` hides some."""
    named = []
    for position, argument in enumerate(arguments):
        if argument.star == "*" or (argument.keyword is None and not argument.star and position > 2):
            return None
        if argument.keyword is None and not argument.star:
            argument = argument.with_changes(
                keyword=cst.Name(_AUTOCAST_PARAMETERS[position]),
                equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
            )
        named.append(argument)
    return named


def _is_decorator(model: Model, node: ast.expr) -> bool:
    parent = model.parent(node)
    return isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and node in parent.decorator_list


def _names_a_type(model: Model, node: ast.expr) -> bool:
    """True if a class is only compared with or annotated, not called: `isinstance`, `x: GradScaler`."""
    for outer, inner in outward(model, node):
        if isinstance(outer, ast.arg):
            return True
        if isinstance(outer, ast.AnnAssign):
            return inner is outer.annotation
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return inner is outer.returns
        if isinstance(outer, ast.Call):
            name = outer.func.id if isinstance(outer.func, ast.Name) else ""
            return name in ("isinstance", "issubclass") and len(outer.args) == 2 and inner is outer.args[1]
        if isinstance(outer, ast.stmt):
            return False
    return False


def _is_asked_for(model: Model, node: ast.expr) -> bool:
    """True if it is asked if something is of a class: of today's class are more things than of the old one."""
    around = (outer for outer in model.ancestors(node) if isinstance(outer, (ast.Call, ast.stmt)))
    return last_name(next(around)) in ("isinstance", "issubclass")


def _is_fallback(model: Model, reference: Reference, names: Symbols) -> bool:
    """True if the code around chooses between the old names and today's, as for several torch versions."""
    return any(
        _amp.offers_modern(_alternatives(outer, inner), reference.device, names)
        for outer, inner in outward(model, reference.node)
    )


def _alternatives(outer: ast.AST, inner: ast.AST) -> list[ast.AST]:
    """The alternatives to `inner`: other branches, or a branch above that leaves the block."""
    if isinstance(outer, ast.IfExp) and inner is not outer.test:
        return [outer.orelse if inner is outer.body else outer.body]
    blocks = [getattr(outer, field, None) or [] for field in ("body", "orelse", "handlers")]
    blocks = [block for block in blocks if isinstance(block, list)]
    mine = next((block for block in blocks if inner in block), None)
    if mine is None:
        return []
    above = mine[: mine.index(inner)]
    left: list[ast.AST] = [each for each in above if isinstance(each, ast.If) and _leaves(each.body)]
    if not isinstance(outer, (ast.If, ast.Try)):
        return left
    return [*left, *(each for block in blocks if block is not mine for each in block)]


def _leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue))
