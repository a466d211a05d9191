"""No module remembers a file once its check is done, and rules read no files: the model answers them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from perflint.semantics.structure import children, walk
from tests.trees import trees

LAYERS = ("semantics", "rules", "engine")
PLAIN = {"str", "int", "bool", "bytes", "float", "None", "tuple", "frozenset", "Path", "re", "Pattern"}
"""The types of arguments by which a module may remember answers: they say nothing of a node, a file or a model."""
CACHES = {"cache", "lru_cache"}
WEAK = {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet", "finalize"}
CHANGES = set(
    """add append appendleft clear difference_update discard extend extendleft insert intersection_update move_to_end
    pop popitem popleft remove reverse setdefault sort update __setitem__ __delitem__""".split()
)
"""Methods that change a list, a dictionary or a set."""
OPENS = set("open read_text read_bytes iterdir glob rglob iglob listdir scandir read_regular".split())
"""Functions and methods that read files or folders."""
OWN_FILES = {"rules/worth.py", "rules/index.py"}
"""These read files of perflint itself: measurements, and the index of its rules."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (*FUNCTIONS, ast.ClassDef)


def memory(tree: ast.Module) -> list[str]:
    """The places where a module may remember something of a file."""
    return sorted({*_caches(tree), *_weak(tree), *_changed(tree), *_kept_by_rules(tree)})


def line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _last(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _caches(tree: ast.Module) -> Iterator[str]:
    """Functions that are cached by arguments other than plain values."""
    imports = [node for node in walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "functools"]
    named = {alias.asname or alias.name for node in imports for alias in node.names if alias.name in CACHES}
    plain: set[ast.expr] = set()
    for node in walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for decorator in node.decorator_list:
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            if given.vararg is None and given.kwarg is None and all(_is_plain(each.annotation) for each in every):
                plain |= {decorator, decorator.func} if isinstance(decorator, ast.Call) else {decorator}
    for node in walk(tree):
        if _is_cache(node, named) and node not in plain:
            yield f"line {line(node)}: a cache by something of a file"


def _is_cache(node: ast.AST, named: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "functools" and node.attr in CACHES
    return isinstance(node, ast.Name) and node.id in named


def _is_plain(annotation: ast.expr | None) -> bool:
    if annotation is None:
        return False
    return all(_last(node) in PLAIN for node in walk(annotation) if isinstance(node, (ast.Name, ast.Attribute)))


def _weak(tree: ast.Module) -> Iterator[str]:
    for node in walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        names += [node.attr] if isinstance(node, ast.Attribute) else []
        yield from (f"line {line(node)}: {name}" for name in names if name in WEAK)


def _changed(tree: ast.Module) -> Iterator[str]:
    """Names of the module, or of a function around, that a function changes the values of."""
    pending: list[tuple[ast.AST, set[str]]] = [(tree, _bound(tree))]
    while pending:
        scope, outside = pending.pop()
        for node in _own(scope):
            if isinstance(node, FUNCTIONS):
                inner = _bound(node)
                # A function that is not returned ends with the one around it.
                kept = outside if scope is tree or not _returns(scope, node) else outside | _made(scope)
                pending.append((node, kept - inner))
            elif isinstance(node, ast.ClassDef):
                pending.append((node, outside))
            if scope is not tree and not isinstance(scope, ast.ClassDef):
                yield from (f"line {line(node)}: changes {name}" for name in _changes(node) & outside)
            if isinstance(node, ast.Global):
                yield f"line {line(node)}: global {', '.join(node.names)}"


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, with the functions and classes in it but not what is inside of them."""
    pending = list(children(scope))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, SCOPES):
            pending += children(node)


def _bound(scope: ast.AST) -> set[str]:
    """The names that a scope binds."""
    found: set[str] = set()
    if isinstance(scope, FUNCTIONS):
        found |= {node.arg for node in walk(scope.args) if isinstance(node, ast.arg)}
    for node in _own(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found


def _made(scope: ast.AST) -> set[str]:
    """The names that a function assigns, whose values may live as long as a function that it returns."""
    return {node.id for node in _own(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _returns(scope: ast.AST, inner: ast.AST) -> bool:
    name = getattr(inner, "name", None)
    values = [node.value for node in _own(scope) if isinstance(node, ast.Return)]
    return any(value is inner or (isinstance(value, ast.Name) and value.id == name) for value in values)


def _changes(node: ast.AST) -> set[str]:
    """The names whose values a node changes: `x[0] = 1`, `del x[0]`, `x.y = 1`, `x.append(1)`, `x |= y`."""
    target: ast.AST | None = None
    if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
        target = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        target = node.func.value
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    return {target.id} if isinstance(target, ast.Name) else set()


def _kept_by_rules(tree: ast.Module) -> Iterator[str]:
    """What rules, which live as long as the program, keep on themselves."""
    for klass in walk(tree):
        if isinstance(klass, ast.ClassDef) and any(_last(base).endswith("Rule") for base in klass.bases):
            for node in walk(klass):
                if "self" in _changes(node):
                    yield f"line {line(node)}: changes a rule"


def reading(tree: ast.Module) -> list[str]:
    """The places where a module reads files or folders."""
    found = []
    for node in walk(tree):
        if isinstance(node, ast.Call):
            root = node.func.value if isinstance(node.func, ast.Attribute) else None
            walks = _last(node) in ("walk", "fwalk") and isinstance(root, ast.Name) and root.id in ("os", "Path")
            if walks or _last(node) in OPENS:
                found.append(f"line {node.lineno}: {_last(node)}")
    return found


def modules(*layers: str) -> Iterator[tuple[str, ast.Module]]:
    """The modules of some layers, and their trees."""
    return ((path, tree) for path, tree in trees().items() if path.partition("/")[0] in layers)


ALLOWED = {
    "rules/index.py": ("changes a rule", "a rule that is not imported yet keeps the rule that it stands for"),
    "engine/house.py": (
        ("changes a rule", "changes sys"),
        "a house rule takes the declarations of its class, and its import must not see the working directory",
    ),
    "semantics/project.py": ("WeakValueDictionary", "a project, not its module, finds the trees that its runs hold"),
    "engine/workers.py": ("changes os", "a process that starts must not see the working directory"),
}
"""The ends of faults that some modules may have, and why."""


def test_no_module_remembers_a_file() -> None:
    found = ((name, fault) for name, tree in modules(*LAYERS) for fault in memory(tree))
    assert not [each for each in found if each[0] not in ALLOWED or not each[1].endswith(ALLOWED[each[0]][0])]


def test_rules_read_no_files() -> None:
    assert {name for name, tree in modules("rules") if reading(tree)} == OWN_FILES


REMEMBERS = [
    "@cache\ndef f(model: Model): ...",
    "@lru_cache(maxsize=1)\ndef f(survey: Survey): ...",
    "@functools.cache\ndef f(name: str, node: ast.AST): ...",
    "@cache\ndef f(name): ...",
    "@cache\ndef f(*names: str): ...",
    "from functools import cache as kept\n@kept\ndef f(node: ast.AST): ...",
    "def f(model):\n    return cache(g)(model)",
    "from weakref import WeakKeyDictionary",
    "known = weakref.WeakKeyDictionary()",
    "known = {}\ndef f(model):\n    known[model] = 1",
    "known: dict[str, int] = {}\ndef f(name):\n    return known.setdefault(name, 1)",
    "known = [0]\ndef f():\n    def g():\n        known.append(1)\n    g()",
    "known = {}\nclass A:\n    def f(self):\n        del known[self]",
    "class A:\n    known = {}\ndef f():\n    A.known.clear()",
    "last = None\ndef f(site):\n    global last\n    last = site",
    "import registry\ndef f(model):\n    registry.last = model",
    "def once(ask):\n    last = []\n    def asked(site):\n        last.append(site)\n    return asked",
    "class A(Rule):\n    def check(self, site):\n        self.last = site",
    "class A(TracedRule):\n    def check(self, site):\n        self.known[site] = 1",
]
FORGETS = [
    "@cache\ndef f(): ...",
    "@cache\ndef f(name: str, flags: tuple[int, ...], pattern: re.Pattern[str]): ...",
    "@lru_cache(maxsize=64)\ndef f(text: str, *, strict: bool = False) -> int: ...",
    "class A:\n    @cached_property\n    def names(self): ...",
    "known = {}\nknown['a'] = 1\ndef f():\n    return known.get('a')",
    "known = {}\ndef f():\n    known = {}\n    known['a'] = 1",
    "known = {}\ndef f(known):\n    known.update(a=1)",
    "def f(items):\n    found = []\n    def g(item):\n        found.append(item)\n    g(items)\n    return found",
    "class A(Base):\n    def f(self):\n        self.last = 1",
    "def f(model):\n    model.memo['a'] = 1",
]


@pytest.mark.parametrize("text", REMEMBERS)
def test_memory_is_found(text: str) -> None:
    assert memory(ast.parse(f"from functools import cache, lru_cache\n{text}"))


@pytest.mark.parametrize("text", FORGETS)
def test_other_code_is_no_memory(text: str) -> None:
    assert not memory(ast.parse(f"from functools import cache, lru_cache\n{text}"))


def test_a_cache_is_known_by_its_import() -> None:
    assert not memory(ast.parse("def f(model):\n    cache = read(model)\n    return cache.get(1)"))
    assert memory(ast.parse("from functools import cache\ndef f(model):\n    return cache(read)(model)"))


def test_reading_is_found() -> None:
    assert reading(ast.parse("with open(path) as file: ..."))
    assert reading(ast.parse("Path(name).read_text()"))
    assert reading(ast.parse("for _ in os.walk(folder): ..."))
    assert not reading(ast.parse("for node in walk(tree): ...\nfor node in ast.walk(tree): ..."))


MAKER = "semantics/nominate.py"
"""The module that makes all sites."""
MADE = {"CallSite", "TruthSite", "SubscriptSite", "FormatSite", "FileSite"}


def making(tree: ast.Module) -> list[str]:
    """The places where a module makes the site of an expression itself."""
    nodes = (node for node in walk(tree) if isinstance(node, ast.Call))
    return [f"line {node.lineno}: {_last(node)}" for node in nodes if _last(node) in MADE]


def test_sites_have_one_maker() -> None:
    assert [name for name, tree in modules(*LAYERS) if making(tree)] == [MAKER]


def test_making_is_found() -> None:
    assert making(ast.parse("site = CallSite(model, call, target, None)")) and making(
        ast.parse("sites.TruthSite(model, node, 'if')")
    )
    assert not making(ast.parse("def f(site: CallSite) -> CallSite: return site.model.call(site.node)"))


TEXTUAL = {
    "rules/registry.py": "tests the conditions on texts that rules declare",
}
"""The modules of the rules that read the text of a file, and why. Others declare `mentions`, or ask the model."""


def texts(tree: ast.Module) -> list[str]:
    """The places where a module reads the text of a whole file."""
    nodes = (node for node in walk(tree) if isinstance(node, ast.Attribute) and node.attr == "text")
    return [f"line {node.lineno}" for node in nodes if _last(node.value) == "source"]


def test_rules_read_no_texts() -> None:
    assert {name for name, tree in modules("rules") if texts(tree)} == set(TEXTUAL)


def test_reading_of_texts_is_found() -> None:
    assert texts(ast.parse("def f(site): return 'norm' in site.model.source.text"))
    assert texts(ast.parse("def f(source): return len(source.text)"))
    assert not texts(ast.parse("def f(site): return site.text(site.node), site.model.says('norm')"))
