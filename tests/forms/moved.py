"""Code moved into functions: beside it, in a method, nested, in another file."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from tests.forms.names import (
    LOOPS,
    Function,
    Names,
    after_imports,
    blocks,
    code,
    free,
    functions,
    has_docstring,
    imported,
    imports,
    leaves_block,
    names,
    parameters,
    plain_parameters,
    scopes,
)
from tests.forms.program import Program

HELPERS = "helpers"


@dataclass(slots=True)
class _Piece:
    """Statements that can be a function of their own: its parameters and the names that it returns."""

    scope: ast.Module | Function
    """The code around."""
    body: list[ast.stmt]
    given: list[str]
    returned: list[str]
    returns: bool = False
    """True if the statements themselves return."""

    def defined(self, function: str, given: list[str]) -> ast.stmt:
        (statement,) = code(f"def {function}({', '.join(given)}):\n    BODY", BODY=self.body)
        if self.returned:
            statement.body += code(f"return {', '.join(self.returned)}")  # type: ignore[attr-defined]
        return statement

    def called(self, function: str, given: list[str]) -> list[ast.stmt]:
        call = f"{function}({', '.join(given)})"
        if self.returns:
            return code(f"return {call}")
        return code(f"{', '.join(self.returned)} = {call}" if self.returned else call)


def _loop_bodies(program: Program) -> list[_Piece]:
    """The bodies of the innermost loops that can be functions."""
    found = []
    for scope in scopes(program.main):
        inner = {id(each) for function in functions(scope) if function is not scope for each in ast.walk(function)}
        for loop in [each for each in ast.walk(scope) if isinstance(each, LOOPS) and id(each) not in inner]:
            if any(isinstance(each, LOOPS) for child in loop.body for each in ast.walk(child)) or loop.orelse:
                continue
            piece = _piece(scope, loop.body)
            if piece is not None:
                found.append(piece)
    return found


def _piece(scope: ast.Module | Function, body: list[ast.stmt]) -> _Piece | None:
    if leaves_block(body) or any(isinstance(each, ast.Delete) for child in body for each in ast.walk(child)):
        return None
    inside = names(body)
    held = {id(each) for child in body for each in ast.walk(child)}
    rest = _without(scope, held)
    bound_outside = rest.bound
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        bound_outside |= {each.arg for each in parameters(scope.args)}
    global_names = set(dir(builtins))
    if isinstance(scope, ast.Module):
        global_names |= imported(scope) | {
            each.name for each in scope.body if isinstance(each, (ast.FunctionDef, ast.ClassDef))
        }
    given = (inside.read | inside.bound) & bound_outside - global_names
    kept = inside.bound & (rest.read | (inside.read & bound_outside))
    certain = {target for each in body for target in _certainly_bound(each)}
    if not kept <= certain | given or inside.declared:
        return None
    if isinstance(scope, ast.Module) and any(names(function.body).declared for function in functions(scope)):
        return None
    given -= (inside.bound - inside.read) & certain
    return _Piece(scope, list(body), sorted(given, key=_self_first), sorted(kept))


def _self_first(each: str) -> tuple[bool, str]:
    return each not in ("self", "cls"), each


def _certainly_bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return names(statement.items).bound | {each for inner in statement.body for each in _certainly_bound(inner)}
    if isinstance(
        statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.FunctionDef, ast.Import, ast.ImportFrom)
    ):
        return names([statement]).bound
    return set()


def _without(scope: ast.Module | Function, held: set[int]) -> Names:
    """The names of a function apart from some of its statements."""
    copy = deepcopy(scope)
    for old, new in zip(ast.walk(scope), ast.walk(copy), strict=True):
        for part in ("body", "orelse", "finalbody"):
            block = getattr(new, part, None)
            if isinstance(block, list):
                kept = [b for a, b in zip(getattr(old, part), block, strict=True) if id(a) not in held]
                setattr(new, part, kept)
    return names(copy.body)


def _bodies(program: Program) -> list[_Piece]:
    """The bodies of functions and methods that can be functions of their own."""
    found = []
    tops = [each for each in ast.walk(program.main) if isinstance(each, (ast.Module, ast.ClassDef))]
    for holder in tops:
        for function in [each for each in holder.body if isinstance(each, ast.FunctionDef)]:
            body = function.body[has_docstring(function) :]
            given = plain_parameters(function)
            nodes = [node for child in body for node in ast.walk(child)]
            if (
                given is None
                or not body
                or any(
                    isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)) for each in nodes
                )
            ):
                continue
            if function.name.startswith("__") or any(
                isinstance(each, ast.Name) and each.id == "super" for each in nodes
            ):
                continue
            found.append(_Piece(function, body, [each.arg for each in given], [], returns=True))
    return found


Place = Callable[[Program, _Piece, str], None]


def _move(program: Program, pieces: list[_Piece], place: Place, wish: str) -> None:
    for number, piece in enumerate(pieces, 1):
        place(program, piece, free(program.main, f"{wish}_{number}"))


def _put(piece: _Piece, new: list[ast.stmt]) -> None:
    """Replace statements of a function, or the body of a loop."""
    for block in blocks(piece.scope):
        if block[-len(piece.body) :] == piece.body:
            block[-len(piece.body) :] = new
            return
    raise AssertionError("the statements are not there")


def _index(program: Program, piece: _Piece) -> int:
    """The index of the statement of the module that holds a piece."""
    tops = enumerate(program.main.body)
    return next(index for index, each in tops if any(node is piece.body[0] for node in ast.walk(each)))


def _beside(program: Program, piece: _Piece, function: str) -> None:
    """The function is above the code; that of a method would have to get the object itself, which nobody writes."""
    if "self" in piece.given:
        return
    top, definition = _index(program, piece), piece.defined(function, piece.given)
    _put(piece, piece.called(function, piece.given))
    program.main.body.insert(top, definition)


def _in_method(program: Program, piece: _Piece, function: str) -> None:
    classes = [each for each in ast.walk(program.main) if isinstance(each, ast.ClassDef)]
    holder = next((each for each in classes if piece.scope in each.body), None)
    if holder is not None and piece.given[:1] == ["self"]:
        definition = piece.defined(function, piece.given)
        _put(piece, piece.called(f"self.{function}", piece.given[1:]))
        holder.body.append(definition)
    elif not {"self", "cls"} & set(piece.given):
        owner = free(program.main, "Work")
        method = piece.defined(function, ["self", *piece.given])
        top, definition = _index(program, piece), code(f"class {owner}:\n    METHOD", METHOD=method)
        _put(piece, piece.called(f"{owner}().{function}", piece.given))
        program.main.body[top:top] = definition


def _nested(program: Program, piece: _Piece, function: str) -> None:
    changed = [each for each in piece.given if each in names(piece.body).bound]
    definition = piece.defined(function, changed)
    _put(piece, piece.called(function, changed))
    body = program.main.body if isinstance(piece.scope, ast.Module) else piece.scope.body
    start = after_imports(program.main) if isinstance(piece.scope, ast.Module) else has_docstring(piece.scope)
    body.insert(start, definition)


def _in_file(program: Program, piece: _Piece, function: str) -> None:
    """The function is in another file, which gets the names of the module as arguments."""
    if "self" in piece.given:
        return
    inside, known = names(piece.body), imported(program.main) | set(dir(builtins))
    given = [*piece.given, *sorted(inside.read - known - set(piece.given) - inside.bound)]
    definition = piece.defined(function, given)
    _put(piece, piece.called(function, given))
    helpers = program.modules.setdefault(HELPERS, ast.Module(imports(program.main), []))
    helpers.body.append(definition)
    start = after_imports(program.main)
    program.main.body[start:start] = code(f"from {HELPERS} import {function}")


def loops_in_functions(program: Program) -> None:
    """The body of each loop as a function of the module, which gets its variables and returns those that it changes"""
    _move(program, _loop_bodies(program), _beside, "step")


def loops_in_methods(program: Program) -> None:
    """The body of each loop as a method"""
    _move(program, _loop_bodies(program), _in_method, "step")


def loops_in_nested_functions(program: Program) -> None:
    """The body of each loop as a nested function, which reads the variables around it"""
    _move(program, _loop_bodies(program), _nested, "step")


def loops_in_files(program: Program) -> None:
    """The body of each loop as a function of another file"""
    _move(program, _loop_bodies(program), _in_file, "step")


def bodies_in_functions(program: Program) -> None:
    """The body of each function as another function without annotations, which it calls"""
    _move(program, _bodies(program), _beside, "work")


def bodies_in_methods(program: Program) -> None:
    """The body of each function as a method without annotations"""
    _move(program, _bodies(program), _in_method, "work")


def bodies_in_nested_functions(program: Program) -> None:
    """The body of each function as a nested one"""
    _move(program, _bodies(program), _nested, "work")


def bodies_in_files(program: Program) -> None:
    """The body of each function as a function of another file"""
    _move(program, _bodies(program), _in_file, "work")


def script_in_main(program: Program) -> None:
    """The statements of a script in `main()`, which it calls"""
    tree = program.main
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    script = [each for each in tree.body if not isinstance(each, kept)]
    defined = [each for each in tree.body if isinstance(each, kept)]
    used = names(defined)
    if (
        not script
        or (used.read | used.bound) & names(script).bound
        or ast.get_docstring(tree)
        or free(tree, "main") != "main"
    ):
        return
    if any(isinstance(each, ast.If) and "__name__" in ast.dump(each.test) for each in script):
        return
    tree.body = [*defined, *code("def main():\n    BODY", BODY=script), *code('if __name__ == "__main__":\n    main()')]


def definitions_in_files(program: Program) -> None:
    """Functions and classes that the module uses in another file"""
    tree = program.main
    known = imported(tree) | set(dir(builtins))
    moved = {each.name: each for each in tree.body if isinstance(each, (ast.FunctionDef, ast.ClassDef))}
    while stuck := [
        each
        for each, node in moved.items()
        if not names([node]).read <= known | moved.keys() or not _is_used_only(tree, node)
    ]:
        for each in stuck:
            del moved[each]
    if moved:
        program.modules[HELPERS] = ast.Module([*imports(tree), *moved.values()], [])
        tree.body = [each for each in tree.body if each not in moved.values()]
        tree.body[after_imports(tree) : after_imports(tree)] = code(f"from {HELPERS} import {', '.join(moved)}")


def _is_used_only(tree: ast.Module, node: ast.FunctionDef | ast.ClassDef) -> bool:
    """True if other code of a module uses a definition, and none binds its name."""
    others = names(each for each in tree.body if each is not node)
    return node.name in others.read and node.name not in others.bound
