"""The results of tokenizers and processors of transformers.

Their objects come from a name in a string, so their classes are rarely known. An argument that no other library has
tells them: `return_tensors="pt"` asks for tensors of torch, which are on the CPU.

Source: transformers 4.57 and 5.0, `PreTrainedTokenizerBase.__call__`, `encode` and `apply_chat_template`,
`ProcessorMixin.__call__`.
"""

from __future__ import annotations

from perflint.semantics.facts.arguments import Arguments
from perflint.semantics.lattice import union
from perflint.semantics.values import Const, Device, Evidence, Sequence, Tensor, Value

_TOKENS = Tensor(Device.CPU, evidence=Evidence.ANNOTATION)
_BATCH = Sequence("batch", _TOKENS)
"""A `BatchEncoding` or `BatchFeature`: a dict of tensors, which can move as a whole."""


def encoded(method: str, arguments: Arguments) -> Value | None:
    """The result of a call by the name of its function; None if it is no call of a tokenizer."""
    if arguments.literal("return_tensors", None) != "pt":
        return None
    if method == "encode":
        return _TOKENS
    if method == "apply_chat_template":
        # A tensor by default up to version 4, a dict since then.
        match arguments.keyword("return_dict"):
            case Const(value=True):
                return _BATCH
            case Const(value=False):
                return _TOKENS
        return union([_TOKENS, _BATCH])
    return _BATCH
