"""The cache gives the reports that a check would give, after any edits, and costs nothing but time if it is damaged."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perflint.config.settings import Profile, Settings
from perflint.engine import workers
from perflint.engine.active import active_rules
from perflint.engine.cache import places, store
from perflint.engine.cache.cache import Handle, joined
from perflint.engine.cache.caches import Caches
from perflint.engine.cache.files import digest_of, stamp_of
from perflint.engine.cache.pickles import Damaged, dumped, loaded
from perflint.engine.cache.store import Result, Row, Store
from perflint.engine.cache.upkeep import bring_up
from perflint.engine.files import PLAIN, Means, check_files
from perflint.engine.projects import Projects
from perflint.frozen import replace
from perflint.output.json import document
from perflint.semantics.blocks import blocks_of
from perflint.semantics.model import summary_of
from perflint.semantics.texts import Texts
from perflint.semantics.view import Record
from perflint.source.files import below
from tests.cli.command import Command

AUDIT = Settings(profile=Profile.AUDIT)
SAMPLE = Path(__file__).parent.parent / "order_sample"


KNOWN: dict[tuple[frozenset[tuple[str, bytes]], Settings], dict[str, str]] = {}
"""The findings of a folder without a cache, by its files: many tests compare with those of the sample."""
SOME_FOLDER = "/some/folder"


def documents(folder: Path, means: Means = PLAIN, settings: Settings = AUDIT) -> dict[str, str]:
    """The findings of each file of a folder, as JSON."""
    if means != PLAIN:
        return checked(folder, means, settings)
    paths = (path for path in folder.rglob("*") if path.is_file())
    files = frozenset((str(path.relative_to(folder)), path.read_bytes()) for path in paths)
    if (files, settings) not in KNOWN:
        KNOWN[files, settings] = renamed(checked(folder, PLAIN, settings), str(folder), SOME_FOLDER)
    return renamed(KNOWN[files, settings], SOME_FOLDER, str(folder))


def checked(folder: Path, means: Means, settings: Settings) -> dict[str, str]:
    """The findings of each file of a folder by a check."""
    files = list(below(str(folder), settings))
    reports = check_files(files, active_rules(settings), settings, means=means)
    return {source.path: json.dumps(document(report)) for source, report in reports}


def renamed(found: dict[str, str], old: str, new: str) -> dict[str, str]:
    """Findings as those of a folder of another name."""
    return {path.replace(old, new): text.replace(old, new) for path, text in found.items()}


def misses(folder: Path, means: Means) -> set[str]:
    """The files that the cache does not have."""
    projects = Projects(AUDIT)
    assert means.cache is not None
    caches = Caches(projects, AUDIT, active_rules(AUDIT), means.cache)
    try:
        return {Path(file).name for file in below(str(folder), AUDIT) if caches.report(file) is None}
    finally:
        caches.close()


def database(means: Means) -> Path:
    assert means.cache is not None
    (found,) = means.cache.glob("*/*.sqlite")
    return found


@pytest.fixture
def means(tmp_path: Path) -> Means:
    return Means(cache=tmp_path / "cache")


def test_the_second_run_reads_all(sample: Path, means: Means) -> None:
    plain = documents(sample)
    assert sum(len(json.loads(each)["findings"]) for each in plain.values()) >= 10
    assert documents(sample, means) == plain
    assert misses(sample, means) == set()
    assert documents(sample, means) == plain


def test_a_comment_checks_its_own_file_again(sample: Path, means: Means) -> None:
    documents(sample, means)
    ops = sample / "net" / "ops.py"
    ops.write_text(ops.read_text().replace("\n", "  # a comment\n", 1))
    assert misses(sample, means) == {"ops.py"}
    assert documents(sample, means) == documents(sample)
    ops.write_text(ops.read_text().replace("# a comment", "# another one"))
    assert misses(sample, means) == {"ops.py"}


def test_an_edit_checks_its_readers_again(sample: Path, means: Means) -> None:
    before = documents(sample, means)
    ops = sample / "net" / "ops.py"
    ops.write_text(ops.read_text().replace("x * 2", "x.cpu()"))
    stale = misses(sample, means)
    assert {"ops.py", "train.py"} <= stale
    after = documents(sample, means)
    assert after == documents(sample) != before


def test_a_new_file_may_answer_a_question(sample: Path, means: Means) -> None:
    documents(sample, means)
    new = sample / "use.py"
    new.write_text("from net.ops import *\nimport torch\nfor step in range(1000):\n    scale(torch.ones(3).cuda())\n")
    assert documents(sample, means) == documents(sample)
    new.unlink()
    assert documents(sample, means) == documents(sample)


def test_a_package_that_appears(sample: Path, means: Means) -> None:
    documents(sample, means)
    (sample / "__init__.py").write_text("")
    assert documents(sample, means) == documents(sample)


def test_folders_on_the_path_of_modules(sample: Path, means: Means) -> None:
    (sample / "more").mkdir()
    (sample / "runs").mkdir()
    (sample / "more" / "helper.py").write_text("def read(x):\n    return x.item()\n")
    (sample / "runs" / "use.py").write_text("import helper\nfor x in loader:\n    helper.read(x.cuda() + 1)\n")
    starts = sample / "runs" / "starts.py"
    found = []
    for text in ("", "import sys\nsys.path.append('more')\n", "import sys\nsys.path.append('other')\n", ""):
        starts.write_text(text)
        shown = documents(sample, means)
        assert shown == documents(sample)
        found.append(len(json.loads(shown[str(sample / "more" / "helper.py")])["findings"]))
    assert found == [0, 1, 0, 0]


EDITS: list[tuple[str, Callable[[str], str]]] = [
    ("comment", lambda text: text + "# more\n"),
    ("first line", lambda text: "\n" + text),
    ("on the GPU", lambda text: text.replace("torch.ones(", "torch.ones(2).cuda() + torch.ones(")),
    ("another name", lambda text: text.replace("import ", "import os, ", 1)),
    ("all names", lambda text: "from net.ops import *\n" + text),
    ("a read", lambda text: text + "\n\ndef extra(x):\n    return x.cuda().item()\n"),
    ("a switch", lambda text: text + "\nimport torch\ntorch.set_default_device('cuda')\n"),
    ("no code", lambda text: ""),
    ("no syntax", lambda text: text + "\ndef (\n"),
]


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_edits_and_their_undo(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("edits")
    shutil.copytree(SAMPLE, folder / "project", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "project" / "pyproject.toml").write_text("")
    means = Means(cache=folder / "cache")
    files = sorted((folder / "project").rglob("*.py"))
    texts = {file: file.read_text() for file in files}
    for _ in range(data.draw(st.integers(1, 4))):
        file = data.draw(st.sampled_from(files))
        name, edit = data.draw(st.sampled_from([*EDITS, ("undo", None), ("gone", None)]))
        if edit is not None:
            file.write_text(edit(file.read_text() if file.exists() else ""))
        elif name == "gone":
            file.unlink(missing_ok=True)
        else:
            file.write_text(texts[file])
        if data.draw(st.booleans()):
            documents(folder / "project", means)
    assert documents(folder / "project", means) == documents(folder / "project")
    assert_answers_hold(folder / "project", means)


def assert_answers_hold(folder: Path, means: Means) -> None:
    """All answers of the cache are those of the files as they are."""
    assert means.cache is not None
    projects = Projects(AUDIT)
    caches = Caches(projects, AUDIT, active_rules(AUDIT), means.cache)
    # It is brought up to date.
    assert caches.of(str(folder / "train.py")) is not None
    caches.close()
    store, fresh = Store(database(means)), Projects(AUDIT).at(folder)
    questions = [store._question(id) for id in store._column("SELECT id FROM question")]
    assert questions and store.has_imports
    wrong = [each for each in questions if store.answer(each) != fresh.answer(each)]
    assert not wrong
    names = {name for file in fresh.texts.files for name in file.imports}
    names.update(store._column("SELECT name FROM import"))
    for name in names:
        assert store.importing(name) == tuple(file.path for file in fresh.texts.importing(name))
    store.close()


def test_an_edit_reads_few_files(sample: Path, means: Means, monkeypatch: pytest.MonkeyPatch) -> None:
    documents(sample, means)
    train = sample / "train.py"
    train.write_text(train.read_text() + "\n\ndef added(x):\n    return x + 1\n")
    monkeypatch.setattr(Texts, "has_read_imports", property(lambda self: pytest.fail("all files were read")))
    monkeypatch.setattr(Texts, "_exact", property(lambda self: pytest.fail("all files were read")))
    (report,) = [report for _, report in check_files([str(train)], active_rules(AUDIT), AUDIT, means=means)]
    assert report.files == 1


def test_an_edit_asks_one_file_for_live_code(sample: Path, means: Means, monkeypatch: pytest.MonkeyPatch) -> None:
    (sample / "unused.py").write_text("import torch\n\ndef train_step(x: torch.Tensor):\n    return x.cuda().item()\n")
    documents(sample, means)
    read: list[str] = []
    monkeypatch.setattr("perflint.semantics.texts.blocks_of", lambda text: [read.append(text), blocks_of(text)][1])
    train = sample / "train.py"
    train.write_text(train.read_text() + "\nimport torch\nfrom unused import train_step\n\ntrain_step(torch.ones(3))\n")
    live = documents(sample, means)
    assert read == [train.read_text()]
    assert live == documents(sample)
    train.write_text(train.read_text().replace("\ntrain_step(", "\nprint("))
    assert documents(sample, means) == documents(sample) != live


def test_many_edits_at_once(sample: Path, means: Means, monkeypatch: pytest.MonkeyPatch) -> None:
    (sample / "unused.py").write_text("import torch\n\ndef train_step(x: torch.Tensor):\n    return x.cuda().item()\n")
    documents(sample, means)
    monkeypatch.setattr("perflint.engine.cache.cache._TOGETHER", 2)
    for file in below(str(sample), AUDIT):
        Path(file).write_text(Path(file).read_text() + "\n\ndef added(x):\n    return x + 1\n")
    before = database(means).stat().st_ino
    assert documents(sample, means) == documents(sample)
    assert database(means).stat().st_ino == before, "the cache was begun anew"
    assert misses(sample, means) == set()


def test_settings_may_name_dead_code(sample: Path, means: Means) -> None:
    (sample / "unused.py").write_text("import torch\n\ndef train_step(x: torch.Tensor):\n    return x.cuda().item()\n")
    conf = sample / "conf.yaml"
    seen = []
    for text in ("_target_: other", "_target_: unused.train_step", "", None):
        if text is None:
            conf.unlink()
        else:
            conf.write_text(text)
        seen.append(documents(sample, means))
        assert seen[-1] == documents(sample)
    assert seen[0] != seen[1] != seen[2] == seen[3]


def test_settings_may_name_a_class_with_a_flag(sample: Path, means: Means) -> None:
    (sample / "net.py").write_text(
        "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self, pulse=False):\n"
        "        super().__init__()\n        self.pulse = pulse\n\n    def forward(self, x):\n"
        "        return x.cuda().sum().item() if self.pulse else x\n"
    )
    (sample / "fit.py").write_text("from net import Net\n\nmodel = Net()\nfor step in range(9):\n    model(step)\n")
    conf = sample / "net.yaml"
    seen = []
    for text in ("_target_: other", "_target_: net.Net", None):
        if text is None:
            conf.unlink()
        else:
            conf.write_text(text)
        seen.append(documents(sample, means))
        assert seen[-1] == documents(sample)
    assert seen[0] == seen[2] != seen[1]


def test_a_folder_that_appears(sample: Path, means: Means) -> None:
    use = sample / "use.py"
    use.write_text("import torch\nfrom extra.deep.tools import moved\nfor step in range(9):\n    moved().item()\n")
    before = documents(sample, means)
    tools = sample / "extra" / "deep" / "tools.py"
    tools.parent.mkdir(parents=True)
    assert documents(sample, means) == before
    tools.write_text("import torch\n\ndef moved():\n    return torch.ones(2).cuda()\n")
    after = documents(sample, means)
    assert after == documents(sample) != before
    shutil.rmtree(sample / "extra")
    assert documents(sample, means) == before


def test_settings_have_their_own_results(sample: Path, means: Means) -> None:
    default = Settings()
    both = documents(sample, means), documents(sample, means, default)
    assert both == (documents(sample), documents(sample, settings=default))
    assert both[0] != both[1]
    assert both == (documents(sample, means), documents(sample, means, default))


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "another table"])
def test_a_damaged_cache_costs_time_alone(damage: str, sample: Path, means: Means) -> None:
    plain = documents(sample, means)
    file = database(means)
    for each in file.parent.glob("*-wal"):
        each.unlink()
    data = file.read_bytes()
    if damage == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "noise":
        file.write_bytes(data[:100] + os.urandom(len(data) - 100))
    elif damage == "empty":
        file.write_bytes(b"")
    else:
        with sqlite3.connect(file) as base:
            base.execute("DROP TABLE result")
        base.close()
    assert documents(sample, means) == plain
    assert documents(sample, means) == plain
    assert documents(sample, means) == plain and misses(sample, means) == set()


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("file", "path", 7), ("file", "written", "x"), ("file", "digest", None), ("file", "size", b"\0"),
        ("question", "answer", "x"), ("question", "answer", zlib.compress(b'{"a": 1}')), ("question", "content", "[]"),
        ("question", "word", 7), ("result", "code", "x"), ("result", "questions", b"\0"), ("result", "content", "x"),
        ("state", "shape", None), ("state", "number", "x"),
    ],
)  # fmt: skip
def test_values_of_other_types_cost_time_alone(
    table: str, column: str, value: object, sample: Path, means: Means
) -> None:
    plain = documents(sample, means)
    for statement in (
        f"UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE name = '{table}' AND name != 'result'",
        f"UPDATE OR IGNORE {table} SET {column} = ?",
    ):
        with sqlite3.connect(database(means)) as base:
            base.execute("PRAGMA writable_schema = ON")
            base.execute(statement, (value,) if "?" in statement else ())
        base.close()
    assert documents(sample, means) == plain
    ops = sample / "net" / "ops.py"
    ops.write_text(ops.read_text() + "\nz = 1\n")
    assert documents(sample, means) == documents(sample)


def test_a_cache_that_another_process_holds_costs_time_alone(
    sample: Path, means: Means, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = documents(sample, means)
    monkeypatch.setattr("perflint.engine.cache.store._PATIENCE", 0.1)
    with closing(sqlite3.connect(database(means), isolation_level=None)) as base:
        base.execute("BEGIN EXCLUSIVE")
        assert documents(sample, means) == plain
    assert misses(sample, means) == set()


def test_clocks_and_times_of_files_may_be_wrong(sample: Path, means: Means, monkeypatch: pytest.MonkeyPatch) -> None:
    documents(sample, means)
    ops, right, year = sample / "net" / "ops.py", time.time_ns, 365 * 86400 * 10**9
    texts = [ops.read_text().replace("x * 2", other) for other in ("x.cpu()", "x * 2.0", "x*2+000")]
    for shift, text in zip((-year, year, 0), texts, strict=True):
        monkeypatch.setattr(time, "time_ns", lambda shift=shift: right() + shift)
        ops.write_text(text)
        assert documents(sample, means) == documents(sample)
    for text in texts:
        ops.write_text(text)
        os.utime(ops, (2**33, 2**33))
        assert documents(sample, means) == documents(sample)


def test_damaged_results_are_made_anew(sample: Path, means: Means) -> None:
    plain = documents(sample, means)
    with sqlite3.connect(database(means)) as base:
        base.execute("UPDATE result SET content = ?", (dumped(["not", "a", "report"]),))
    base.close()
    assert documents(sample, means) == plain


def test_a_folder_that_cannot_be_written(sample: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert documents(sample, Means(cache=tmp_path / "file" / "cache")) == documents(sample)


def test_pickles_make_no_foreign_objects() -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return os.system, ("true",)

    for value in (Evil(), os.path.join, ValueError("x")):
        with pytest.raises(Damaged):
            loaded(dumped(value) if not isinstance(value, Evil) else dumped_of(value))
    for name in ("perflint.semantics.project Project", "perflint.semantics.texts re", "perflint.engine.git Repository"):
        with pytest.raises(Damaged):
            loaded(zlib.compress("c{}\n{}\n.".format(*name.split()).encode()))
    assert loaded(dumped((Path("a"), Profile.AUDIT.value))) == (Path("a"), "audit")


def dumped_of(value: object) -> bytes:
    return dumped(value)


def _check(folder: str, cache: str, results: multiprocessing.Queue[object]) -> None:
    results.put(documents(Path(folder), Means(cache=Path(cache))))


def test_processes_at_once(sample: Path, means: Means) -> None:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[object] = context.Queue()
    processes = [context.Process(target=_check, args=(str(sample), str(means.cache), results)) for _ in range(3)]
    for process in processes:
        process.start()
    found = [results.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    assert all(each == documents(sample) for each in found)
    assert misses(sample, means) == set()


def test_two_that_open_a_new_file_at_once(sample: Path, means: Means) -> None:
    assert means.cache is not None
    projects = Projects(AUDIT), Projects(AUDIT)
    file = means.cache / "version" / "a.sqlite"
    places.prepare(file)
    stores = [Store(file), Store(file)]
    for each, own in zip(projects, stores, strict=True):
        bring_up(own, each.of(sample / "train.py"))
    for own in stores:
        with own.writing() as is_current:
            assert is_current
        own.close()


def test_edits_during_a_run_are_not_kept(sample: Path, means: Means) -> None:
    """A file that is written while it is checked may have been read before or after."""
    files = list(below(str(sample), AUDIT))
    checked = check_files(files, active_rules(AUDIT), AUDIT, means=means)
    next(checked)
    ops = sample / "net" / "ops.py"
    time.sleep(0.01)
    ops.write_text(ops.read_text().replace("x * 2", "x.cpu()"))
    for _ in checked:
        pass
    assert documents(sample, means) == documents(sample)


@pytest.mark.parametrize(("jobs", "cached"), [(2, True), (2, False), (8, True)])
def test_workers_find_the_same(
    jobs: int, cached: bool, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perflint.engine.files._WORTH_A_WORKER", 0)
    means = Means(cache=tmp_path / "cache" if cached else None, jobs=jobs)
    assert documents(sample, means) == documents(sample)
    if cached:
        assert misses(sample, means) == set()


def test_new_processes_find_the_same(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other systems do not fork."""
    monkeypatch.setattr("perflint.engine.files._WORTH_A_WORKER", 0)
    monkeypatch.setattr(workers, "sys", SimpleNamespace(platform="darwin", flags=sys.flags))
    means = Means(cache=tmp_path / "cache", jobs=2)
    assert documents(sample, means) == documents(sample)
    assert misses(sample, means) == set()


def test_processes_end_before_the_run_does(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perflint.engine.files._WORTH_A_WORKER", 0)
    documents(sample, Means(jobs=2))
    assert not multiprocessing.active_children()


def test_files_of_a_process_that_dies_are_checked(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perflint.engine.files._WORTH_A_WORKER", 0)
    expected = documents(sample)
    monkeypatch.setattr(workers.Worker, "check", lambda worker, files: os._exit(9))
    assert documents(sample, Means(jobs=2)) == expected
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("writes", [1, 99])
def test_a_cache_is_removed_while_others_write(
    sample: Path, means: Means, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    documents(sample, means)
    assert means.cache is not None
    (file,) = means.cache.glob("*/*.sqlite")
    others = [file.with_name(f"{number}.sqlite") for number in range(writes)]
    remove = os.rmdir

    def rmdir(path: str, **named: int) -> None:
        if others and file.parent.exists():
            others.pop().write_text("")
        remove(path, **named)

    monkeypatch.setattr(os, "rmdir", rmdir)
    assert places.clean(means.cache) == 1
    assert not file.exists() and means.cache.exists() is (writes > 1)


def test_a_cache_that_may_not_be_removed_is_an_error(
    sample: Path, means: Means, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(sample, means)

    def rmdir(path: str, **named: int) -> None:
        raise PermissionError(errno.EACCES, "no", path)

    monkeypatch.setattr(os, "rmdir", rmdir)
    assert means.cache is not None
    with pytest.raises(PermissionError):
        places.clean(means.cache)


def test_a_cache_is_removed_only_by_its_tag(sample: Path, means: Means) -> None:
    assert means.cache is not None
    documents(sample, means)
    assert places.clean(means.cache) == 1 and not means.cache.exists()
    means.cache.mkdir()
    (means.cache / "mine").write_text("")
    assert places.clean(means.cache) == 0 and (means.cache / "mine").exists()


@pytest.mark.parametrize("names", [[".gitignore"], ["a.py", "data/old.sqlite"], [".git/HEAD", "CACHEDIR.TAG"]])
def test_a_folder_with_other_files_is_no_cache(
    perflint: Command, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERFLINT_NO_CACHE", raising=False)
    for name in (*names, "home/a.py"):
        perflint.write(name, b"\xff")
        os.utime(perflint.folder / name, (1, 1))
    before = sorted(perflint.folder.rglob("*"))
    ran = perflint("check", "home", "--cache-dir", ".")
    assert ran.code == 2 and ". cannot be the cache: it is not empty" in ran.err
    perflint("clean", "--all", "--cache-dir", ".")
    perflint("clean", "--cache-dir", ".")
    assert sorted(perflint.folder.rglob("*")) == before
    assert {(perflint.folder / name).read_bytes() for name in names} == {b"\xff"}


def test_a_cache_that_is_removed_in_part_is_made_anew(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFLINT_NO_CACHE", raising=False)
    perflint.write("home/a.py", "x = 1\n")
    for _ in range(2):
        for _ in range(2):
            assert perflint("check", "home", "--cache-dir", "cache").code == 0
        assert (perflint.folder / "cache" / ".gitignore").read_text() == "*\n"
        (perflint.folder / "cache" / "CACHEDIR.TAG").unlink()


def test_old_files_are_removed(sample: Path, means: Means, tmp_path: Path) -> None:
    documents(sample, means)
    cache = database(means).parent.parent
    old, others = cache / "0.0.1-0123456789abcdef" / "project-1.sqlite", tmp_path / "mine" / "places.sqlite"
    for file in (old, others):
        file.parent.mkdir()
        file.write_text("")
        os.utime(file, (1, 1))
    (cache / "0.0.2-0123456789abcdef").symlink_to(others.parent)
    documents(sample, means)
    assert not old.exists() and others.exists()
    assert places.clean(cache) == 1 and others.exists()


def test_a_foreign_folder_and_files_that_vanish(sample: Path, means: Means) -> None:
    assert means.cache is not None
    documents(sample, means)
    # Another process has removed it since the folder was listed.
    file = database(means)
    (file.parent / "gone-1.sqlite").symlink_to(sample / "nothing")
    places.prepare(file)
    assert places.clean_project(means.cache, sample) == 1
    (means.cache / "CACHEDIR.TAG").write_text("Signature: of another program")
    assert places.clean_project(means.cache, sample) == 0


def test_a_file_that_vanishes_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    stamp = stamp_of(str(path))
    assert len(digest_of(str(path), stamp)) == 16
    path.unlink()
    assert digest_of(str(path), stamp) == b""


def test_a_file_that_is_too_large_is_begun_anew(sample: Path, means: Means, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = documents(sample, means)
    assert misses(sample, means) == set()
    monkeypatch.setattr(store, "_LARGEST", 1000)
    assert "train.py" in misses(sample, means)
    assert documents(sample, means) == plain


def test_results_of_an_older_state_are_not_added(sample: Path, means: Means) -> None:
    documents(sample, means)
    early, late = Store(database(means)), Store(database(means))
    with late.writing():
        late.advance("another layout")
    path = sample / "train.py"
    kept = Result(path, b"kind", b"content", Record(frozenset({path}), frozenset(), {}))
    new = Result(path, b"kind", b"content", Record(frozenset({path, sample / "new.py"}), frozenset(), {}))
    for result in (kept, new):
        early.add([result], lambda path: Row(0, str(path), False, stamp_of(str(path)), 0, b"", None, None))
    early.put_imports({str(path): {"torch"}})
    assert late.find(path, b"kind") is None and late.importing("torch") == Store(database(means)).importing("torch")
    late.add([kept], lambda path: Row(0, str(path), False, stamp_of(str(path)), 0, b"", None, None))
    assert late.find(path, b"kind") == b"content"
    assert len(late.record(path, b"kind").questions) == 0
    early.close()
    late.close()


def test_another_process_may_make_the_tables_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = Store._one

    def late(self: Store, statement: str, *values: object) -> object:
        asked.append(statement)
        return 0 if len(asked) == 1 else ask(self, statement, *values)

    Store(tmp_path / "a.sqlite").close()
    monkeypatch.setattr(Store, "_one", late)
    opened = Store(tmp_path / "a.sqlite")
    assert opened.number == 0 and asked[0] == asked[1]
    opened.close()


def test_a_summary_that_is_nested_too_deep_is_not_kept(sample: Path, means: Means) -> None:
    assert means.cache is not None
    projects, path = Projects(AUDIT), sample / "train.py"
    caches = Caches(projects, AUDIT, active_rules(AUDIT), means.cache)
    cache = caches.of(str(path))
    assert cache is not None
    made = summary_of(projects.of(str(path)), path)
    deep: tuple[object, ...] = ()
    for _ in range(100_000):
        deep = (deep,)
    waiting = len(cache._waiting)
    cache.keep(replace(made, calls={"": deep}))
    assert len(cache._waiting) == waiting
    cache.keep(made)
    assert len(cache._waiting) == waiting + 1
    caches.close()


def test_files_that_change_after_the_cache_was_opened_have_no_result(sample: Path, means: Means) -> None:
    assert means.cache is not None
    documents(sample, means)
    projects = Projects(AUDIT)
    caches = Caches(projects, AUDIT, active_rules(AUDIT), means.cache)
    cache = caches.of(str(sample / "train.py"))
    assert cache is not None and caches.report(str(sample / "train.py")) is not None
    (sample / "train.py").write_text("x = 1\n")
    assert caches.report(str(sample / "train.py")) is None and cache.blocks(sample / "train.py") is None
    caches.close()


def test_a_file_that_another_process_has_damaged_is_not_joined(sample: Path, means: Means) -> None:
    documents(sample, means)
    project = Projects(AUDIT).of(sample / "train.py")
    handle = Handle(database(means), 1)
    own = joined(handle, project)
    assert own is not None
    own.close()
    handle.file.write_bytes(b"no database" * 1000)
    assert joined(handle, project) is None


def test_values_that_are_cut_off() -> None:
    data = dumped((Path("a"), "b" * 100))
    with pytest.raises(Damaged, match="cut off"):
        loaded(data[:-3])


def test_all_questions_may_have_new_answers(sample: Path, means: Means) -> None:
    documents(sample, means)
    own = Store(database(means))
    asked = own._column("SELECT id FROM question")
    assert asked
    with own.writing():
        own.forget(set(), set(), set(), lambda question, answers: False)
        own.forget(set(), set(), None, lambda question, answers: True)
    assert len(own._column("SELECT id FROM question")) > 0
    with own.writing():
        own.forget(set(), set(), None, lambda question, answers: False)
    assert own._column("SELECT id FROM question") == []
    own.close()
