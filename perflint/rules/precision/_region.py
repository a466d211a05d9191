"""In which number formats the code of a file computes, as far as the file says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum

from perflint.frozen import dataclass
from perflint.rules._methods import is_false
from perflint.rules._names import AUTOCAST
from perflint.semantics.memo import once
from perflint.semantics.model import Model
from perflint.semantics.module import Module
from perflint.semantics.structure import keyword
from perflint.semantics.symbols import Symbols

EIGHT_BITS = tuple("int8 Int8 8bit _int_mm fp8 float8 Float8 transformer_engine modelopt pytorch_quantization".split())
_WORDS = re.compile(rf"autocast|GradScaler|half|float16|\bfp16|\bbf16|precision|tf32|{'|'.join(EIGHT_BITS)}")


class Format(Enum):
    """A number format that tensor cores compute in, other than plain float32."""

    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    TF32 = "TF32"
    FLOAT8 = "FP8"
    INT8 = "INT8"


@dataclass(frozen=True, slots=True)
class Evidence:
    """An expression or import that says in which format its file computes."""

    format: Format
    node: ast.AST


@dataclass(frozen=True, slots=True)
class Region:
    """The formats of a file. `float32_convolutions` says that TF32, cuDNN's default, is switched off."""

    formats: frozenset[Format] = frozenset()
    float32_convolutions: bool = False

    @property
    def half(self) -> Format | None:
        """bfloat16 or float16, where the file computes in one of them."""
        for format in (Format.BFLOAT16, Format.FLOAT16):
            if format in self.formats:
                return format
        return None

    @property
    def eight_bits(self) -> Format | None:
        """INT8 or FP8 if the file computes in one of them; INT8 if it computes in both."""
        for format in (Format.INT8, Format.FLOAT8):
            if format in self.formats:
                return format
        return None

    @property
    def both_eight_bits(self) -> bool:
        """True if the file computes in INT8 and in FP8, in each of them with other models."""
        return {Format.INT8, Format.FLOAT8} <= self.formats


def region(model: Model) -> Region:
    """The facts in a file about the formats in which it computes."""
    return _region(model)


@once
def _region(model: Model) -> Region:
    if not model.matches(_WORDS):
        return Region()
    formats = {each.format for each in (*_of_runs(model.module), *_of_values(model.module))}
    return Region(frozenset(formats), _switches_off_tf32(model.module))


def region_of_runs(module: Module) -> Region:
    """The formats in which a file runs models, its own or those that it imports."""
    return Region(frozenset(each.format for each in _of_runs(module)), _switches_off_tf32(module))


def _of_runs(module: Module) -> Iterator[Evidence]:
    for call in module.structure.every(ast.Call):
        yield from _of_call(call, module.symbols)
    for assignment in module.structure.every(ast.Assign):
        yield from _of_switch(assignment)


def _of_values(module: Module) -> Iterator[Evidence]:
    structure = module.structure
    unused = _dtypes_of_disabled(module)
    for node in structure.every(ast.Attribute):
        if node not in unused:
            yield from _of_dtype(node, structure.parents[node], module.symbols)
    for statement in structure.every(ast.Import, ast.ImportFrom):
        yield from _of_import(statement)


# Calls

_SCALERS = frozenset({"torch.amp.GradScaler", "torch.cuda.amp.GradScaler"})
_DTYPES = {
    "torch.bfloat16": Format.BFLOAT16,
    "torch.float16": Format.FLOAT16,
    "torch.half": Format.FLOAT16,
    "torch.float8_e4m3fn": Format.FLOAT8,
    "torch.float8_e5m2": Format.FLOAT8,
}
_OPTIONS = {"bf16": Format.BFLOAT16, "fp16": Format.FLOAT16, "16": Format.FLOAT16, "fp8": Format.FLOAT8}


def _of_call(call: ast.Call, names: Symbols) -> Iterator[Evidence]:
    full = names.full_name(call.func)
    if full in AUTOCAST:
        yield from _of_autocast(call, names)
    elif full in _SCALERS:
        if not is_false(keyword(call, "enabled")):
            yield Evidence(Format.FLOAT16, call)
    elif full == "torch.set_float32_matmul_precision":
        if any(isinstance(arg, ast.Constant) and arg.value in ("high", "medium") for arg in call.args):
            yield Evidence(Format.TF32, call)
    elif full == "torch._int_mm":
        yield Evidence(Format.INT8, call)
    elif isinstance(call.func, ast.Attribute) and not call.args and not call.keywords:
        method = {"half": Format.FLOAT16, "bfloat16": Format.BFLOAT16}.get(call.func.attr)
        if method:
            yield Evidence(method, call)
    yield from _of_options(call)


def _of_autocast(call: ast.Call, names: Symbols) -> Iterator[Evidence]:
    device = keyword(call, "device_type") or (call.args[0] if call.args else None)
    on_host = isinstance(device, ast.Constant) and device.value == "cpu"
    if on_host or is_false(keyword(call, "enabled")):
        return
    position = 0 if names.full_name(call.func) == "torch.cuda.amp.autocast" else 2
    if len(call.args) > position and is_false(call.args[position]):
        return
    dtypes = [_DTYPES.get(names.full_name(each)) for each in (*call.args, *(k.value for k in call.keywords))]
    yield Evidence(next((dtype for dtype in dtypes if dtype), Format.FLOAT16), call)


def _dtypes_of_disabled(module: Module) -> set[ast.AST]:
    """The dtypes that are passed to an autocast which is off, or of the CPU: nothing computes in them."""
    found: set[ast.AST] = set()
    for call in module.structure.every(ast.Call):
        if module.symbols.full_name(call.func) in AUTOCAST and not any(_of_autocast(call, module.symbols)):
            found.update((*call.args, *(keyword.value for keyword in call.keywords)))
    return found


def _of_options(call: ast.Call) -> Iterator[Evidence]:
    """Settings of trainers: `precision="bf16-mixed"`, `mixed_precision="fp16"`, `bf16=True`."""
    for given in call.keywords:
        value = given.value
        if not isinstance(value, ast.Constant):
            continue
        if given.arg in ("precision", "mixed_precision") and (value.value == 16 or isinstance(value.value, str)):
            option = str(value.value).partition("-")[0]
        elif given.arg in ("bf16", "fp16") and value.value is True:
            option = given.arg
        else:
            continue
        if option in _OPTIONS:
            yield Evidence(_OPTIONS[option], call)


# Other places


def _of_dtype(node: ast.Attribute, outer: ast.AST, names: Symbols) -> Iterator[Evidence]:
    """A dtype that code uses; one that is compared with or listed as an option is not evidence."""
    if isinstance(node.ctx, ast.Load) and not isinstance(outer, (ast.Compare, ast.Tuple, ast.List, ast.Set, ast.Dict)):
        format = _DTYPES.get(names.full_name(node))
        if format:
            yield Evidence(format, node)


def _of_switch(node: ast.Assign) -> Iterator[Evidence]:
    """`torch.backends.cuda.matmul.allow_tf32 = True` and its successor `fp32_precision = "tf32"`."""
    for target in node.targets:
        if isinstance(target, ast.Attribute) and isinstance(node.value, ast.Constant):
            chain = ast.unparse(target)
            switched = (target.attr, node.value.value) in (("allow_tf32", True), ("fp32_precision", "tf32"))
            if switched and "cudnn" not in chain:
                yield Evidence(Format.TF32, node)


def _switches_off_tf32(module: Module) -> bool:
    for node in module.structure.every(ast.Assign):
        if isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and ast.unparse(target).endswith("cudnn.allow_tf32"):
                    return node.value.value is False
    return False


_MODULES = {
    "transformer_engine": Format.FLOAT8,
    "torchao.float8": Format.FLOAT8,
    "pytorch_quantization": Format.INT8,
    "modelopt.torch.quantization": Format.INT8,
}
_CONVERSIONS = {
    "Linear8bitLt": Format.INT8,
    "Int8DynamicActivationInt8WeightConfig": Format.INT8,
    "int8_dynamic_activation_int8_weight": Format.INT8,
    "Float8DynamicActivationFloat8WeightConfig": Format.FLOAT8,
    "float8_dynamic_activation_float8_weight": Format.FLOAT8,
}
"""Names whose products are in eight bits. Conversions of the weights alone are left out: they compute in bfloat16."""


def _of_import(node: ast.Import | ast.ImportFrom) -> Iterator[Evidence]:
    if isinstance(node, ast.ImportFrom):
        modules = [f"{node.module or ''}.{alias.name}" for alias in node.names if node.level == 0]
    else:
        modules = [alias.name for alias in node.names]
    for module in modules:
        for known, format in _MODULES.items():
            if f"{module}.".startswith(f"{known}."):
                yield Evidence(format, node)
        converted = _CONVERSIONS.get(module.rpartition(".")[2])
        if converted:
            yield Evidence(converted, node)
