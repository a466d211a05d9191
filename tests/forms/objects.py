"""Objects made by factories, passed by constructors, bound again; moves to a device chained or as statements."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from tests.forms.names import (
    blocks,
    code,
    expression,
    free,
    imported,
    name,
    names,
    own_nodes,
    parameters,
    plain_parameters,
    scopes,
)
from tests.forms.program import Program, marked_like

_MOVES = {"to", "cuda", "cpu", "eval", "train", "half", "float", "bfloat16", "double", "requires_grad_"}


def _made(statement: ast.stmt) -> tuple[ast.Name, ast.Call] | None:
    """The name and the call of a statement that binds a new object: `model = Net()`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Name) and isinstance(value, ast.Call) and _is_class(value.func):
            return target, value
    return None


def _is_class(node: ast.expr) -> bool:
    leaf = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return leaf[:1].isupper() and leaf != leaf.upper() and not leaf.endswith("Tensor")


def objects_by_factories(program: Program) -> None:
    """`model = Net(n)` as `model = make_model(n)`"""
    tree = program.main
    known = imported(tree) | set(dir(builtins)) | {getattr(each, "name", "") for each in tree.body}
    new: list[tuple[ast.stmt, ast.stmt]] = []
    for scope in scopes(tree):
        for block in _blocks_of(scope):
            for statement in block:
                found = _made(statement)
                if found is None or (isinstance(found[1].func, ast.Name) and found[1].func.id not in known):
                    continue
                target, call = found
                given = ", ".join(sorted(names([call]).read - known))
                made = free(tree, f"make_{target.id}_{len(new) + 1}")
                top = next(each for each in tree.body if any(node is statement for node in ast.walk(each)))
                new.append((top, *code(f"def {made}({given}):\n    return CALL", CALL=call)))
                statement.value = expression(f"{made}({given})")  # type: ignore[attr-defined]
    for top, definition in new:
        tree.body.insert(tree.body.index(top), definition)


def _blocks_of(scope: ast.AST) -> Iterator[list[ast.stmt]]:
    own = {id(each) for each in own_nodes(scope)}
    return (block for block in blocks(scope) if id(block[0]) in own)


def arguments_by_constructors(program: Program) -> None:
    """`def f(model, x): …` as a method of an object that got `model` and `x` by its constructor"""
    tree = program.main
    for function in [each for each in tree.body if isinstance(each, ast.FunctionDef)]:
        given = plain_parameters(function)
        nodes = [node for child in function.body for node in ast.walk(child)]
        inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Global, ast.Nonlocal)
        if not given or any(isinstance(each, inner) for each in nodes) or "self" in names(nodes).read:
            continue
        attributes = {each.arg for each in given}
        if attributes & (names(function.body).bound | {"self"}) or ast.get_docstring(function):
            # A parameter that is bound again would be an attribute that is set: another form.
            continue
        made = free(tree, "Job")
        sets = "".join(f"        self.{each.arg} = {each.arg}\n" for each in given)
        arguments = ", ".join(each.arg for each in given)
        body = [_Attributes(attributes).visit(each) for each in function.body]
        text = f"class {made}:\n    def __init__(self, {arguments}):\n{sets}\n    def run(self):\n        BODY"
        tree.body[tree.body.index(function) : tree.body.index(function)] = code(text, BODY=body)
        function.body = code(f"return {made}({arguments}).run()")


class _Attributes(ast.NodeTransformer):
    def __init__(self, attributes: set[str]) -> None:
        self._attributes = attributes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return marked_like(expression(f"self.{node.id}"), node) if node.id in self._attributes else node


def names_bound_before(program: Program) -> None:
    """`model = None` before `model = Net()`"""
    for scope in scopes(program.main):
        given = set() if isinstance(scope, ast.Module) else {each.arg for each in parameters(scope.args)}
        targets = [node.targets[0] for node in own_nodes(scope) if isinstance(node, ast.Assign)]
        once = [each.id for each in targets if isinstance(each, ast.Name)]
        for block in _blocks_of(scope):
            for index, statement in reversed(list(enumerate(block))):
                if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name):
                    is_fresh = once.count(target.id) == 1 and target.id not in given | names([statement.value]).read
                    if is_fresh and isinstance(statement.value, ast.Call):
                        block[index:index] = code("NAME = None", NAME=name(target.id))


def chains_as_bindings(program: Program) -> None:
    """`y = x.float().sum()` as `y = x.float()` and `y = y.sum()`"""
    for scope in scopes(program.main):
        for block in _blocks_of(scope):
            for index, statement in reversed(list(enumerate(block))):
                if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                    block[index : index + 1] = _unchained(statement)


def _unchained(statement: ast.Assign) -> list[ast.stmt]:
    target, value = statement.targets[0], statement.value
    links: list[ast.Call] = []
    while (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Call)
    ):
        links.append(value)
        value = value.func.value
    if not links or not isinstance(target, ast.Name):
        return [statement]
    arguments = [each for call in links for each in (*call.args, *(keyword.value for keyword in call.keywords))]
    if target.id in names(arguments).read or (isinstance(value, ast.Call) and _text(value.func) == "super"):
        return [statement]
    new = code("NAME = VALUE", NAME=name(target.id), VALUE=value)
    for call in reversed(links):
        assert isinstance(call.func, ast.Attribute)
        call.func.value = marked_like(name(target.id), call.func.value)
        new += code("NAME = VALUE", NAME=name(target.id), VALUE=call)
    return [*new[:-1], marked_like(new[-1], statement)]


def _text(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def moves_as_statements(program: Program) -> None:
    """`model = Net().cuda().eval()` as `model = Net()`, `model.cuda()` and `model.eval()`"""
    for block in list(blocks(program.main)):
        for index, statement in reversed(list(enumerate(block))):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                block[index : index + 1] = _separate(program, statement)


def _separate(program: Program, statement: ast.Assign) -> list[ast.stmt]:
    """A statement that makes a module and moves it, as several."""
    target, value = statement.targets[0], statement.value
    links: list[ast.Call] = []
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
        links.append(value)
        value = value.func.value
    if not links or not isinstance(target, (ast.Name, ast.Attribute)) or not _is_module(program.main, value):
        return [statement]
    statement.value = value
    new: list[ast.stmt] = [statement]
    for call in reversed(links):
        assert isinstance(call.func, ast.Attribute)
        call.func.value = ast.parse(ast.unparse(target), mode="eval").body
        new += code("CALL", CALL=ast.Expr(call))
    return new


def moves_in_chains(program: Program) -> None:
    """`model = Net()`, `model.cuda()` and `model.eval()` as `model = Net().cuda().eval()`"""
    for block in list(blocks(program.main)):
        index = 0
        while index + 1 < len(block):
            if not _join(program, block[index], block[index + 1]):
                index += 1
            else:
                del block[index + 1]


def _join(program: Program, statement: ast.stmt, following: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    if not isinstance(following, (ast.Expr, ast.Assign)) or not isinstance(call := following.value, ast.Call):
        return False
    target = statement.targets[0]
    if isinstance(following, ast.Assign) and ast.unparse(following.targets[0]) != ast.unparse(target):
        return False
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _MOVES or not isinstance(target, ast.Name):
        return False
    if ast.unparse(call.func.value) != target.id or target.id in names([*call.args, *call.keywords]).read:
        return False
    if not _is_module(program.main, _root(statement.value)):
        return False
    call.func.value = statement.value
    statement.value = call
    return True


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
        node = node.func.value
    return node


def _is_module(tree: ast.Module, node: ast.expr) -> bool:
    """True if an expression makes a module of torch or of a class of the example."""
    if not isinstance(node, ast.Call):
        return False
    text = ast.unparse(node.func)
    if text.startswith(("nn.", "torch.nn.")):
        return _is_class(node.func)
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == text]
    return any("Module" in ast.unparse(base) for each in classes for base in each.bases)


def moves_by_to(program: Program) -> None:
    """`x.cuda()` as `x.to("cuda")`"""
    for node in _calls(program, "cuda"):
        if not node.args and {each.arg for each in node.keywords} <= {"non_blocking"} and _is_value(node):
            assert isinstance(node.func, ast.Attribute)
            node.func.attr = "to"
            node.args = [ast.Constant("cuda")]


def moves_by_cuda(program: Program) -> None:
    """`x.to("cuda")` as `x.cuda()`"""
    for node in _calls(program, "to"):
        texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
        if len(node.args) == 1 and texts == ["cuda"] and {each.arg for each in node.keywords} <= {"non_blocking"}:
            assert isinstance(node.func, ast.Attribute)
            node.func.attr = "cuda"
            node.args = []


def _calls(program: Program, method: str) -> Iterator[ast.Call]:
    for node in ast.walk(program.main):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
            yield node


def _is_value(node: ast.Call) -> bool:
    return not ast.unparse(node.func).startswith("torch.")
