"""TPF314: attention that is told to use its slowest implementation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.findings import Effect, Finding, Heat, Severity
from perflint.rules._guards import is_guarded
from perflint.rules._memory.flows import made
from perflint.rules._methods import in_tests, is_false, is_true
from perflint.rules._sources import given, passed_to, sources
from perflint.rules.base import Calls, CallSite, Files, FileSite, Rule, Site, often, shown
from perflint.rules.worth import cost, sentence
from perflint.semantics.model import Model
from perflint.semantics.values import Const
from perflint.source.quoting import quoted

_BACKENDS = "torch.nn.attention.SDPBackend."
_IN_FLOAT32 = "attention-in-float32-step"
_ATTRIBUTES = {"_attn_implementation", "attn_implementation"}
_FAST = tuple(f"torch.backends.cuda.enable_{name}_sdp" for name in ("flash", "mem_efficient"))
_NEEDS_IT = r"(?i:gemma)|output_attentions|create_graph|\bjvp\b|\bhessian\b|autograd\.grad|\.attentions\b"


class SlowAttention(Rule):
    """A setting makes attention store all its scores: remove it, so that torch uses a fused kernel.

    ## What it does
    Finds `attn_implementation="eager"` for models of transformers, `sdpa_kernel(SDPBackend.MATH)`, and
    `enable_flash_sdp(False)` with `enable_mem_efficient_sdp(False)`, that no flag of the program guards. Finds
    `output_attentions=True` in files that read no `attentions`: models of transformers then leave the fused kernels.
    Finds `enable_flash_sdp(False)` alone, and `scaled_dot_product_attention(q.float(), k.float(), …)`.

    ## Why is this bad
    The scores and the weights, of shape (batch, heads, tokens, tokens), are written to memory and read again, and kept
    for the backward pass. The fused kernels, which `"sdpa"` and the default choose where they can, store neither.
    Attention of this form made a training step of six layers at 1024 tokens 1.5 × slower under bfloat16 autocast on an
    H200, and 8% slower in float32. FlashAttention, one of the fused kernels, computes in 16 bits only: a cast to
    float32 rules it out, as its switch does. Six layers whose weights are bfloat16 take 1.4 × as long for a step if
    attention casts to float32 and back. It is information unless the result is cast back: the tensors may be of
    float32 already, and autocast casts them again.

    ## When it is fine
    - The weights of the attention are read: files that mention `.attentions` are not reported.
    - Gradients of gradients, which the fused kernels do not have: files that mention `create_graph`, `autograd.grad`,
      `jvp` or `hessian` are not reported.
    - Models whose authors ask for it, such as Gemma with its capped scores: files that name it are not reported.
    - Comparisons, tests, and choices of a flag.
    - Scores that overflow in 16 bits. Often a norm of the queries and keys helps more.

    ## Bad
    ```python
    from transformers import AutoModelForCausalLM

    def build(name: str):
        return AutoModelForCausalLM.from_pretrained(name, attn_implementation="eager").cuda()
    ```

    ## Good
    ```python
    from transformers import AutoModelForCausalLM

    def build(name: str):
        return AutoModelForCausalLM.from_pretrained(name, attn_implementation="sdpa").cuda()
    ```

    ## Fix safety
    No fix: the reason may be a number format, or a model without the fused form.

    ## How a GPU shows it
    A timeline shows two `bmm` kernels with a `softmax` between them per layer, instead of one attention kernel.

    ## References
    - [transformers: attention interfaces](https://huggingface.co/docs/transformers/main/en/attention_interface)
    - [torch.nn.attention.sdpa_kernel](https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.sdpa_kernel.html)
    """

    code, name = "TPF314", "slow-attention"
    effect, severity = Effect.COMPUTE, Severity.ERROR
    measured = ("attention-by-hand-1024-step-bfloat16", "attention-by-hand-1024-step-float32")
    costs = "attention in three steps makes training of 6 transformer layers with 1024 tokens {0} slower"
    listens = (
        Files("attn_implementation", "sdpa_kernel", "enable_flash_sdp", unlike=_NEEDS_IT),
        Files("output_attentions", unlike=r"(?<!output_)attentions\b"),
        Calls("torch.nn.functional.scaled_dot_product_attention"),
    )

    def check(self, site: FileSite | CallSite) -> Iterator[Finding]:
        yield from self._cast(site) if isinstance(site, CallSite) else self._chosen(site)

    def _cast(self, site: CallSite) -> Iterator[Finding]:
        operands = [site.argument(name, at) for at, name in enumerate(("query", "key"))]
        if site.heat is Heat.COLD or not all(each is not None and _is_cast(site.model, each) for each in operands):
            return
        yield self.finding(
            site,
            f"{shown(site)} computes in float32, for which there is no FlashAttention{often(site)}",
            severity=cost(_IN_FLOAT32).severity if _is_of_16_bits(site) else Severity.INFO,
            help="Leave the tensors as they are: the fused kernels add up in float32.",
            cost=sentence(
                "attention in float32 makes training of 6 transformer layers of bfloat16 {0} slower", _IN_FLOAT32
            ),
        )

    def _chosen(self, site: FileSite) -> Iterator[Finding]:
        model = site.model
        for call in () if in_tests(model) else _without_flash(model):
            yield self.finding(
                model.call(call),
                f"{quoted(model.source.written(call))} leaves attention to slower kernels than FlashAttention",
                severity=Severity.INFO,
                heat=Heat.HOT,
                help="Leave the choice to torch.",
            )
        asks = model.says("output_attentions")
        for node in () if in_tests(model) else _unread(model) if asks else (*_eager(model), *_plain(model)):
            if is_guarded(model, node):
                continue
            yield self.finding(
                Site(model, node),  # type: ignore[arg-type]
                f"{shown(site, node)} makes attention write its weights to memory and read them again",
                # It is said once, and holds for each step.
                heat=Heat.HOT,
                help="Leave it out: no code of the file reads the weights."
                if asks
                else 'Leave the choice to torch, or pass `attn_implementation="sdpa"`.',
            )


def _eager(model: Model) -> Iterator[ast.Call | ast.Assign]:
    """The calls and assignments that choose the eager implementation of a model of transformers."""
    for call in model.nodes(ast.Call):
        chosen = passed_to(model, call, "attn_implementation")
        if isinstance(call.func, ast.Attribute) and call.func.attr == "set_attn_implementation":
            chosen = given(call, "attn_implementation", 0)
        if chosen is not None and model.value(chosen) == Const("eager"):
            yield call
    for statement in model.nodes(ast.Assign):
        attributes = {each.attr for each in statement.targets if isinstance(each, ast.Attribute)}
        if attributes & _ATTRIBUTES and model.value(statement.value) == Const("eager"):
            yield statement


def _unread(model: Model) -> Iterator[ast.Call | ast.Assign]:
    """The calls and assignments that ask for the weights, if the file keeps the model and its results."""
    for call in model.nodes(ast.Call):
        if is_true(passed_to(model, call, "output_attentions")) and not isinstance(model.parent(call), ast.Return):
            yield call
    for statement in model.nodes(ast.Assign):
        target = statement.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "output_attentions" and is_true(statement.value):
            yield statement


def _plain(model: Model) -> Iterator[ast.Call]:
    """The calls that leave the plain kernel alone: a context, or the second of two switches."""
    calls = model.nodes(ast.Call)
    contexts = [call for call in calls if model.target(call) == "torch.nn.attention.sdpa_kernel"]
    if all(_is_plain(model, call) for call in contexts):
        # Other contexts beside them compare the kernels.
        yield from contexts
    off = [call for call in calls if model.target(call) in _FAST and is_false(given(call, "enabled", 0))]
    if {model.target(call) for call in off} == set(_FAST):
        yield off[-1]


def _without_flash(model: Model) -> Iterator[ast.Call]:
    """The calls that switch one fused kernel off, FlashAttention, for the whole program."""
    off = [
        call for call in model.nodes(ast.Call) if model.target(call) in _FAST and is_false(given(call, "enabled", 0))
    ]
    if {model.target(call) for call in off} == {_FAST[0]}:
        yield from (call for call in off if not is_guarded(model, call))


def _is_cast(model: Model, node: ast.expr) -> bool:
    """True for `q.float()` and `q.to(torch.float32)`."""
    node = made(model, node)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "float":
        return True
    return node.func.attr == "to" and any(model.symbols.full_name(each) == "torch.float32" for each in node.args)


def _is_of_16_bits(site: CallSite) -> bool:
    """True if the result of a call is cast to another type than float32, at once or after other methods.

    Then the tensors were of that type. Under autocast, the operands are cast again.
    """
    model, node = site.model, site.node
    if model.says("autocast"):
        return False
    while isinstance(attribute := model.parent(node), ast.Attribute):
        call = model.parent(attribute)
        if not isinstance(call, ast.Call) or call.func is not attribute:
            return False
        if attribute.attr in ("half", "bfloat16") or (attribute.attr == "type_as" and call.args):
            return True
        given = [*call.args, *(each.value for each in call.keywords if each.arg == "dtype")]
        if attribute.attr == "to" and any(_is_other_type(model, each) for each in given):
            return True
        node = call
    return False


def _is_other_type(model: Model, node: ast.expr) -> bool:
    """True for `x.dtype` and `torch.bfloat16`."""
    is_of_tensor = isinstance(node, ast.Attribute) and node.attr == "dtype"
    return is_of_tensor or model.symbols.full_name(node) in ("torch.half", "torch.float16", "torch.bfloat16")


def _is_plain(model: Model, call: ast.Call) -> bool:
    """True if a context allows the plain kernel alone."""
    backends = given(call, "backends", 0)
    made = [] if backends is None else sources(model, backends)
    chosen = made[0] if len(made) == 1 else None
    kernels = chosen.elts if isinstance(chosen, (ast.List, ast.Tuple, ast.Set)) else [chosen]
    names = [None if each is None else model.symbols.full_name(each) for each in kernels]
    return names == [f"{_BACKENDS}MATH"]
