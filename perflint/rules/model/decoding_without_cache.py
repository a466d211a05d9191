"""TPF317: a decoding loop that computes the whole sequence again for each token."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from perflint.findings import Confidence, Effect, Finding, Heat, Severity
from perflint.rules._guards import is_guarded
from perflint.rules._memory.flows import flow_around, made
from perflint.rules._methods import calls_named, is_false
from perflint.rules._sources import names_behind, passed_to
from perflint.rules._turns import iteration_around
from perflint.rules.base import Calls, CallSite, Files, FileSite, Rule, Site, often, shown
from perflint.semantics.model import Model
from perflint.semantics.structure import last_name, path_of, walk
from perflint.semantics.values import Const

_TRAINS = (
    "backward(",
    "Trainer(",
    "TrainingArguments(",
    "gradient_checkpointing",
    "use_cache = True",
    "use_cache=True",
)
"""Texts of a file that trains, which needs no cache, or that also generates with one."""
_CACHES = re.compile(r"past|cache|state|mems?$|kv|hidden|incremental", re.IGNORECASE)


class DecodingWithoutCache(Rule):
    """A decoding loop gives the model all tokens so far, again and again.

    ## What it does
    Finds loops that append a token, `ids = torch.cat([ids, token], dim=1)`, and call a model with `ids` and without a
    cache, of whose result they use the last position. Finds `use_cache=False` for `generate`, too, and
    `config.use_cache = False` in a file that generates and does not train.

    ## Why is this bad
    Each token computes the keys and values of all tokens before it again: n tokens cost n²/2 positions in place of
    n. A key-value cache keeps them, and the model gets one token at a time. Measured on an H200 in bfloat16: 64
    tokens after 8 × 512 take a decoder of 1.3 billion parameters 3.3 × as long. GPT-2 with 124 million is too small
    to lose anything there: launching its kernels takes longer than 4608 positions.

    ## When it is fine
    - A handful of tokens, or a model whose later tokens change the earlier ones (no causal mask).
    - The model keeps a cache itself, or gets one: calls with an argument for it are not reported.
    - Models without one: the cache has to be written first.

    ## Bad
    ```python
    import torch

    @torch.inference_mode()
    def generate(model, ids: torch.Tensor, steps: int):
        for _ in range(steps):
            logits = model(ids).logits
            token = logits[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, token], dim=1)
        return ids
    ```

    ## Good
    ```python
    import torch

    @torch.inference_mode()
    def generate(model, ids: torch.Tensor, steps: int):
        token, cache, tokens = ids, None, [ids]
        for _ in range(steps):
            result = model(token, past_key_values=cache, use_cache=True)
            cache, token = result.past_key_values, result.logits[:, -1].argmax(-1, keepdim=True)
            tokens.append(token)
        return torch.cat(tokens, dim=1)
    ```

    ## Fix safety
    No fix: the model has to support a cache.

    ## How a GPU shows it
    Each step of the loop takes longer than the one before.

    ## References
    - [transformers: caching](https://huggingface.co/docs/transformers/main/en/cache_explanation)
    """

    code, name = "TPF317", "decoding-without-cache"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("decoding-without-cache-decoder", "decoding-without-cache-gpt")
    costs = (
        "without a cache, 64 tokens after 8 × 512 are {0} slower with 1.3 billion parameters, and no slower with GPT-2"
    )
    listens = (
        Calls("torch.cat", "torch.concat", "torch.concatenate", "torch.hstack"),
        Files("use_cache", also=("generate(", "GenerationConfig(")),
    )

    def check(self, site: CallSite | FileSite) -> Iterator[Finding]:
        yield from self._loop(site) if isinstance(site, CallSite) else self._switched_off(site)

    def _switched_off(self, site: FileSite) -> Iterator[Finding]:
        for call in _generating(site):
            if is_false(passed_to(site.model, call.node, "use_cache")) and not is_guarded(site.model, call.node):
                yield self.finding(
                    call,
                    "`use_cache=False` computes all tokens so far again for each new one",
                    # It runs the layers once for each token.
                    heat=Heat.HOT,
                    help="Leave it out: a cache is the default.",
                )
        for statement in () if site.model.says(*_TRAINS) else site.model.nodes(ast.Assign):
            if _switches_off(statement) and not is_guarded(site.model, statement):
                yield self.finding(
                    Site(site.model, statement),  # type: ignore[arg-type]
                    f"{shown(site, statement)} computes all tokens so far again for each new one",
                    heat=Heat.HOT,
                    help="Leave it out: a cache is the default.",
                )

    def _loop(self, site: CallSite) -> Iterator[Finding]:
        model, statement = site.model, site.model.parent(site.node)
        tokens = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(tokens, ast.Name) or not _extends(site, tokens.id):
            return
        loop = iteration_around(model, site.node)
        if loop is None:
            return
        call = next((each for each in _calls(model, loop, tokens.id) if _is_read_at_the_end(model, loop, each)), None)
        if call is None:
            return
        yield self.finding(
            model.call(call),
            f"{shown(site, call)} computes all tokens so far again for each new one{often(site)}",
            confidence=Confidence.MEDIUM,
            help="Keep the keys and values in a cache, and pass the new token alone.",
        )


def _switches_off(statement: ast.Assign) -> bool:
    """True for `config.use_cache = False` and `model.generation_config.use_cache = False`."""
    target = statement.targets[0]
    is_switch = isinstance(target, ast.Attribute) and target.attr == "use_cache" and is_false(statement.value)
    return is_switch and last_name(target.value).endswith("config")  # type: ignore[attr-defined]


def _generating(site: FileSite) -> Iterator[CallSite]:
    """The calls that generate, and those that configure it."""
    yield from calls_named(site, "generate")
    for call in site.model.nodes(ast.Call):
        if last_name(call.func) == "GenerationConfig":
            yield site.model.call(call)


def _extends(site: CallSite, name: str) -> bool:
    """True for `name = torch.cat([name, token], dim=1)`."""
    given, along = site.argument("tensors", 0), site.argument("dim", 1)
    given = None if given is None else made(site.model, given)
    if not isinstance(given, (ast.List, ast.Tuple)) or len(given.elts) != 2:
        return False
    first = given.elts[0]
    if along is None and site.target != "torch.hstack":
        return False
    is_along_tokens = along is None or site.value(along) in (Const(1), Const(-1))
    return isinstance(first, ast.Name) and first.id == name and is_along_tokens


def _calls(model: Model, loop: ast.AST, name: str) -> Iterator[ast.Call]:
    """The calls in a loop that get all tokens, and no cache."""
    for call in walk(loop):
        if not isinstance(call, ast.Call) or not _may_run_model(model, call):
            continue
        given = [*call.args, *(each.value for each in call.keywords)]
        # `use_cache=False` passes none.
        named = [each.arg or "" for each in call.keywords if not is_false(each.value)]
        named += [each.id for each in names_behind(model, given)]
        if not any(map(_CACHES.search, named)) and any(_is_all(model, each, name) for each in given):
            yield call


def _may_run_model(model: Model, call: ast.Call) -> bool:
    target = model.target(call)
    return target == "torch.nn.Module.__call__" or not target.startswith(("torch.", "builtins."))


def _is_all(model: Model, given: ast.expr, name: str) -> bool:
    """True if an argument is the tokens, or the last ones that fit into a model."""
    waiting, seen = [given], set()
    while waiting:
        given = made(model, waiting.pop())
        if given in seen:
            continue
        seen.add(given)
        if isinstance(given, ast.Name) and given.id == name:
            return True
        if isinstance(given, ast.IfExp):
            waiting += [given.body, given.orelse]
        elif isinstance(given, ast.Subscript) and not _is_last_token(model, given):
            waiting.append(given.value)
    return False


def _is_last_token(model: Model, part: ast.Subscript) -> bool:
    """True for `ids[:, -1:]` and `ids[:, -1]`; parts without a beginning count, too."""
    index = part.slice.elts[-1] if isinstance(part.slice, ast.Tuple) else part.slice
    lower = index.lower if isinstance(index, ast.Slice) else index
    return lower is None or model.value(lower) == Const(-1)


def _is_read_at_the_end(model: Model, loop: ast.AST, call: ast.Call) -> bool:
    """True if the loop uses the last position of the result of a call: `logits[:, -1]`."""
    for part in walk(loop):
        index = part.slice.elts if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple) else []
        if len(index) > 1 and isinstance(part, ast.Subscript) and any(_is_last(model, each) for each in index[1:2]):
            if any(inner is call for inner in _behind(model, part.value)):
                return True
    return False


def _is_last(model: Model, index: ast.expr) -> bool:
    if isinstance(index, ast.Slice):
        return index.lower is not None and index.upper is None and model.value(index.lower) == Const(-1)
    return model.value(index) == Const(-1)


def _behind(model: Model, node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that a value is a part of: `model(ids)` for `logits` after `logits = model(ids).logits`."""
    seen: set[ast.expr] = set()
    while True:
        node = made(model, node)
        if node in seen:
            return
        seen.add(node)
        yield node
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "float":
            node = node.func.value
        elif isinstance(node, ast.Name) and (whole := _unpacked(model, node)) is not None:
            node = whole
        else:
            return


def _unpacked(model: Model, part: ast.Name) -> ast.expr | None:
    """The value that an assignment has unpacked to a name, `model(ids)` for `logits, loss = model(ids)`.

    None if it has unpacked a cache, too.
    """
    found = flow_around(model, part).used.get(part)
    target = None if found is None or found.whole or found.node is None else model.parent(found.node)
    if found is None or not isinstance(target, ast.Tuple):
        return None
    return None if any(_CACHES.search(path_of(each)) for each in target.elts) else found.value
