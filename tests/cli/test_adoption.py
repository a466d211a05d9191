"""Adopting perflint in code with findings: the baseline, changed lines, comments, thresholds, in real repositories."""

from __future__ import annotations

import json
import os
import subprocess
import zlib
from pathlib import Path

import pytest

from perflint.cli import adding
from perflint.engine import git as engine_git
from perflint.engine.git import _comparison
from perflint.findings import Finding
from perflint.source.text import Source
from tests.cli.command import Command

pytestmark = pytest.mark.usefixtures("stated_torch")
SCALER = "scaler = torch.cuda.amp.GradScaler()\n"
OTHER = "with torch.cuda.amp.autocast():\n    pass\n"
BAD = f"import torch\n\n{SCALER}"
RULES = "--select=TPF9"
BASELINE = "perflint-baseline.json"


@pytest.fixture(autouse=True)
def pedantic(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other profiles show a deprecation once in a file."""
    monkeypatch.setenv("PERFLINT_PROFILE", "pedantic")


def git(folder: Path, *arguments: str) -> None:
    """Run git without the settings of the user."""
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    environment = os.environ | who | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, env=environment)


def commit(perflint: Command, message: str = "m") -> None:
    """Commit all files, in a new repository if there is none."""
    if not (perflint.folder / ".git").exists():
        git(perflint.folder, "init", "-q", "-b", "main")
    git(perflint.folder, "add", "-A")
    git(perflint.folder, "commit", "-qm", message)


def shown(perflint: Command, *options: str) -> list[str]:
    """The places that a check shows."""
    ran = perflint("check", ".", RULES, "--output-format=concise", *options)
    assert ran.code in (0, 1), ran.err
    return [":".join(line.split(":")[:2]) for line in ran.out.splitlines()]


@pytest.fixture
def adopted(perflint: Command) -> Command:
    """A project with two known findings of the same text in one file, and one in another."""
    perflint.write("pyproject.toml", f'[tool.perflint]\nbaseline = "{BASELINE}"\n')
    perflint.write("a.py", BAD + SCALER)
    perflint.write("src/b.py", BAD)
    assert perflint("baseline", RULES).code == 0
    return perflint


def test_a_baseline_hides_what_is_known(adopted: Command) -> None:
    ran = adopted("check", ".", RULES)
    assert (ran.code, ran.out) == (0, "No findings in 2 files.\n3 in the baseline.\n")
    document = json.loads((adopted.folder / BASELINE).read_text())
    assert list(document["findings"]) == ["a.py", "src/b.py"]
    assert [(each["code"], each.get("count")) for each in document["findings"]["a.py"]] == [("TPF902", 2)]


def test_new_findings_are_shown(adopted: Command) -> None:
    adopted.write("a.py", BAD + SCALER + OTHER)
    assert shown(adopted) == ["a.py:5"]
    # A third one with the same text is one more than the baseline has.
    adopted.write("a.py", BAD + SCALER + SCALER)
    assert shown(adopted) == ["a.py:5"]
    # The same text in another file is new while the first file exists.
    adopted.write("a.py", BAD + SCALER)
    adopted.write("c.py", BAD)
    assert shown(adopted) == ["c.py:3"]


def test_moved_lines_and_renamed_files_stay_known(adopted: Command) -> None:
    adopted.write("a.py", "import os\nimport torch\n\n\nif os.name:\n    " + SCALER + SCALER)
    assert shown(adopted) == []
    (adopted.folder / "src" / "b.py").rename(adopted.folder / "moved.py")
    assert shown(adopted) == []
    assert adopted("check", ".", RULES).err == ""
    assert adopted("baseline", RULES).code == 0
    assert list(json.loads((adopted.folder / BASELINE).read_text())["findings"]) == ["a.py", "moved.py"]


def test_stale_entries_are_reported_and_removed(adopted: Command) -> None:
    adopted.write("a.py", BAD)
    ran = adopted("check", ".", RULES)
    assert ran.code == 0
    assert ran.err == (
        "warning: 1 entry of the baseline matches no finding any more\n  help: `perflint baseline` removes them\n"
    )
    # What other rules, profiles and paths have is not stale.
    for options in (["--select=TPF1"], [RULES, "--profile=audit"], ["src"]):
        assert adopted("check", *options).err == ""
    ran = adopted("baseline", RULES)
    assert (ran.code, ran.out) == (0, f"{adopted.folder / BASELINE}: 2 findings (1 removed).\n")
    assert adopted("check", ".", RULES).err == ""
    (adopted.folder / "src" / "b.py").unlink()
    assert "1 entry" in adopted("check", ".", RULES).err


def test_updating_only_shrinks(adopted: Command) -> None:
    adopted.write("src/b.py", BAD + OTHER)
    before = (adopted.folder / BASELINE).read_text()
    ran = adopted("baseline", RULES)
    assert (ran.code, ran.out) == (1, f"{adopted.folder / BASELINE}: 3 findings (1 new, which `--add` adds).\n")
    assert (adopted.folder / BASELINE).read_text() == before
    ran = adopted("baseline", RULES, "--add")
    assert (ran.code, ran.out) == (0, f"{adopted.folder / BASELINE}: 4 findings (1 added).\n")
    assert shown(adopted) == []


def test_a_part_of_the_project_leaves_the_other_entries(adopted: Command) -> None:
    adopted.write("a.py", "x = 1\n")
    adopted.write("src/b.py", "x = 1\n")
    assert adopted("baseline", RULES, "src").out.endswith("2 findings (1 removed).\n")
    assert adopted("baseline", "--select=TPF1").out.endswith("2 findings.\n")


def test_a_file_that_cannot_be_parsed_keeps_its_entries(adopted: Command) -> None:
    adopted.write("a.py", "if")
    assert adopted("baseline", RULES).code == 2
    adopted.write("a.py", BAD + SCALER)
    assert shown(adopted) == []


def test_a_baseline_by_option_and_its_faults(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    ran = perflint("check", "a.py", "--baseline", "known.json")
    assert ran.code == 2 and "known.json cannot be read" in ran.err and "`perflint baseline` writes it" in ran.err
    ran = perflint("baseline", "a.py", "--baseline", "known.json")
    assert ran.code == 0 and "does not use the baseline yet" in ran.err
    assert perflint("check", "a.py", "--baseline", "known.json").code == 0
    assert perflint("baseline", "a.py", "--baseline", "known.json", "--profile", "audit").code == 2
    for text in ("", "[]", '{"version": 2, "findings": {}}', '{"version": 1, "findings": {"a": [1]}}', "[" * 9999):
        perflint.write("known.json", text)
        ran = perflint("check", "a.py", "--baseline", "known.json")
        assert ran.code == 2 and "is not a baseline of perflint" in ran.err, text


def test_sarif_has_the_baseline_as_suppressions(adopted: Command) -> None:
    run = json.loads(adopted("check", ".", RULES, "--output-format=sarif").out)["runs"][0]
    assert [each["suppressions"] for each in run["results"]] == [[{"kind": "external"}]] * 3


def test_since_shows_findings_on_changed_lines(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    perflint.write("old name.py", BAD)
    commit(perflint)
    assert shown(perflint, "--since", "HEAD") == []
    assert "2 on unchanged lines." in perflint("check", ".", RULES, "--since=HEAD").out
    perflint.write("a.py", "# one\n" + BAD + OTHER)
    perflint.write('größe ".py', BAD)
    assert shown(perflint, "--since", "HEAD") == ["a.py:5", 'größe ".py:3']
    commit(perflint)
    assert shown(perflint, "--since", "HEAD") == []
    assert shown(perflint, "--since", "HEAD~1") == ["a.py:5", 'größe ".py:3']
    # A file that was only renamed has no changed lines.
    git(perflint.folder, "mv", "old name.py", "new.py")
    assert shown(perflint, "--since", "HEAD") == []


def test_since_a_branch_means_since_it_was_left(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    commit(perflint)
    git(perflint.folder, "checkout", "-qb", "topic")
    perflint.write("b.py", BAD)
    commit(perflint)
    git(perflint.folder, "checkout", "-q", "main")
    perflint.write("a.py", "import torch\n")
    commit(perflint)
    git(perflint.folder, "checkout", "-q", "topic")
    # The line that main has removed meanwhile is not a change of the topic.
    assert shown(perflint, "--since", "main") == ["b.py:3"]


def test_faults_of_since(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    ran = perflint("check", "a.py", "--since", "HEAD")
    assert ran.code == 2 and "`--since` needs a git repository" in ran.err
    commit(perflint)
    for revision in ("nothing", "--output=x", "-h", "HEAD..HEAD"):
        ran = perflint("check", "a.py", f"--since={revision}")
        assert ran.code == 2 and f"git knows no revision `{revision}`" in ran.err
    assert sorted(path.name for path in perflint.folder.iterdir()) == [".git", "a.py", "requirements.txt"]


def test_git_runs_no_program_of_the_repository(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    perflint.write("a.py", BAD)
    perflint.write("b.py", BAD)
    commit(perflint)
    mark = perflint.folder.parent / "ran"
    run = f"touch '{mark}'; cat"
    for name in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"):
        git(perflint.folder, "config", name, run)
    for name in ("diff.evil.command", "diff.external", "core.fsmonitor", "core.sshCommand", "core.pager", "pager.diff"):
        git(perflint.folder, "config", name, run)
    for name in ("rev-parse", "merge-base", "ls-tree", "ls-files", "cat-file", "diff"):
        git(perflint.folder, "config", f"alias.{name}", f"!{run}")
    perflint.write(".git/info/attributes", "*.py diff=evil filter=evil\n")
    perflint.write(".gitattributes", "*.py diff=evil filter=evil\n")
    hooks = ("post-index-change", "reference-transaction", "fsmonitor-watchman", "post-checkout")
    for name in (*(f".git/hooks/{hook}" for hook in hooks), "git", "bin/git"):
        perflint.write(name, f"#!/bin/sh\ntouch '{mark}'\n")
        (perflint.folder / name).chmod(0o755)
    folders = [str(perflint.folder), str(perflint.folder / "bin"), "bin", "", os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    perflint.write("a.py", BAD + OTHER)
    os.utime(perflint.folder / "b.py", (0, 0))
    index = (perflint.folder / ".git/index").read_bytes()
    assert shown(perflint, "--since", "HEAD") == ["a.py:4"]
    assert (perflint.folder / ".git/index").read_bytes() == index
    assert not mark.exists()


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        ("", {"GIT_DIFF_OPTS": "--unified=9"}),
        ("[diff]\ninterHunkContext = 20\n", {}),
        ("[diff]\norderFile = nowhere\n", {}),
        ("[core]\nattributesFile = attributes\n", {}),
    ],
    ids=["context", "joined", "order", "encoding"],
)
def test_settings_of_the_user_change_no_findings(
    perflint: Command, monkeypatch: pytest.MonkeyPatch, settings: str, variables: dict[str, str]
) -> None:
    perflint.write("home/.gitconfig", settings)
    perflint.write("attributes", "*.py working-tree-encoding=UTF-16LE\n")
    rest = "".join(f"n{number} = {number}\n" for number in range(9))
    perflint.write("a.py", f"{BAD}{rest}o = 1\n{SCALER}p = 1\n{rest}")
    commit(perflint)
    perflint.write("a.py", f"import torch\n{OTHER}{rest}o = 2\n{SCALER}{rest}{SCALER}")
    before = shown(perflint, "--since", "HEAD")
    assert before == ["a.py:2", "a.py:24"]
    monkeypatch.setenv("HOME", str(perflint.folder / "home"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert shown(perflint, "--since", "HEAD") == before


@pytest.mark.parametrize("remote", ["ssh", "file", "helper", "ext"])
def test_git_fetches_nothing(perflint: Command, remote: str) -> None:
    perflint.write("a.py", BAD)
    commit(perflint)
    mark = perflint.folder.parent / "ran"
    run = f"touch '{mark}'; false"
    address = {"ssh": "ssh://host/p", "file": str(perflint.folder), "helper": "x::y", "ext": f"ext::sh -c {run!r}"}
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": address[remote],
        "remote.origin.uploadpack": run,
        "core.sshCommand": run,
        "protocol.allow": "always",
        "protocol.file.allow": "always",
        "protocol.ext.allow": "always",
    }.items():
        git(perflint.folder, "config", name, value)
    perflint.write("a.py", BAD + OTHER)
    for blob in (perflint.folder / ".git/objects").glob("??/*"):
        if zlib.decompress(blob.read_bytes()).startswith(b"blob"):
            blob.unlink()
    ran = perflint("check", "a.py", "--since=HEAD")
    assert ran.code == 2 and "git has no text of a.py" in ran.err
    assert not mark.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_git_does_not_wait_for_ever(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    perflint.write("a.py", BAD)
    commit(perflint)
    (perflint.folder / "b").mkdir()
    os.mkfifo(perflint.folder / "b/.gitignore")
    monkeypatch.setattr(engine_git, "_LONGEST", 1)
    ran = perflint("check", "a.py", "--since=HEAD")
    assert ran.code == 2 and "`git ls-files` did not end in 1 seconds" in ran.err


def test_lines_that_look_like_a_diff(perflint: Command) -> None:
    perflint.write("a.py", f"{BAD}# x\n'''\n-- a/y.py\n'''\n")
    commit(perflint)
    perflint.write("a.py", f"{BAD}'''\n++ new/0/0\n@@ -1 +9,9 @@\n:1 2 A\tnew/0/0\n'''\n{SCALER}")
    assert shown(perflint, "--since", "HEAD") == ["a.py:9"]


def test_lines_may_end_in_a_carriage_return(perflint: Command) -> None:
    for code in (BAD, f"import torch\n{OTHER}{SCALER}"):
        commit(perflint)
        cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": code.splitlines(True)}]
        document = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1)
        for name, text in (("a.py", code), ("b.ipynb", document)):
            (perflint.folder / name).write_bytes(text.replace("\n", "\r").encode())
    assert shown(perflint, "--since", "HEAD") == ["a.py:2", "b.ipynb:cell 1"]


def test_files_in_another_form_than_committed(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    perflint.write("old/m.py", BAD + SCALER)
    perflint.write("empty.py", "")
    perflint.write("away.py", BAD)
    perflint.write("there.py", BAD)
    commit(perflint)
    (perflint.folder / "a.py").write_bytes((BAD + OTHER).replace("\n", "\r\n").encode())
    (perflint.folder / "new").mkdir()
    git(perflint.folder, "mv", "old/m.py", "new/m.py")
    perflint.write("new/m.py", BAD + SCALER + OTHER)
    git(perflint.folder, "update-index", "--skip-worktree", "away.py", "there.py")
    (perflint.folder / "away.py").unlink()
    perflint.write("there.py", BAD + OTHER)
    assert shown(perflint, "--since", "HEAD") == ["a.py:4", "new/m.py:5", "there.py:4"]


TOOL = "import torch\n\n\ndef note(x: torch.Tensor):\n    return x.cuda().sum().item()\n"
MAIN = (
    "from tool import note\n\n\ndef train(model, loader, optimizer):\n    for step, batch in enumerate(loader):\n"
    "        loss = model(batch.cuda()).sum()\n        loss.backward()\n        optimizer.step()\n"
    "        if step % 100 == 0:\n            note(loss)\n"
)


def test_effects_of_a_change_on_other_lines(perflint: Command) -> None:
    def found(*options: str) -> list[str]:
        ran = perflint("check", ".", "--select=TPF101", "--output-format=concise", "--profile=default", *options)
        assert ran.code in (0, 1), ran.err
        return [":".join(line.split(":")[:2]) for line in ran.out.splitlines()]

    perflint.write("tool.py", TOOL)
    perflint.write("main.py", MAIN)
    perflint.write("old.py", TOOL.replace("note", "other"))
    commit(perflint)
    assert found("--since=HEAD", "--effects") == []
    # A call in each step makes a line of another file hot, which stays as it was.
    assert found() == ["old.py:5"]
    perflint.write("main.py", MAIN.replace("step % 100 == 0", "loss.ndim == 0"))
    assert found() == ["old.py:5", "tool.py:5"]
    assert found("--since=HEAD") == []
    assert found("--since=HEAD", "--effects") == ["tool.py:5"]
    # A renamed file and a new one keep what they had.
    git(perflint.folder, "mv", "old.py", "renamed.py")
    perflint.write("new.py", TOOL.replace("note", "another"))
    assert found("--since=HEAD", "--effects") == ["new.py:5", "tool.py:5"]
    ran = perflint("check", ".", "--effects")
    assert ran.code == 2 and "`--effects` needs `--since REV`" in ran.err


IGNORES = [
    (SCALER, "scaler = torch.cuda.amp.GradScaler()  # perflint: ignore[TPF902] old code\n"),
    (
        "scaler = torch.cuda.amp.GradScaler()  # type: ignore\n",
        "scaler = torch.cuda.amp.GradScaler()  # type: ignore  # perflint: ignore[TPF902] old code\n",
    ),
    (
        "scaler = torch.cuda.amp.GradScaler()  # perflint: ignore[TPF101] no\n",
        "scaler = torch.cuda.amp.GradScaler()  # perflint: ignore[TPF101, TPF902] no\n",
    ),
    (
        "scaler = torch.cuda.amp.GradScaler(), \\\n  '''\n  '''\n",
        "scaler = torch.cuda.amp.GradScaler(), \\\n  '''\n  '''  # perflint: ignore[TPF902] old code\n",
    ),
    (
        "scaler = torch.cuda.amp.GradScaler(\n    enabled=True,\n)\r\n",
        "scaler = torch.cuda.amp.GradScaler(  # perflint: ignore[TPF902] old code\n    enabled=True,\n)\r\n",
    ),
    (SCALER.rstrip(), f"{SCALER.rstrip()}  # perflint: ignore[TPF902] old code"),
]


@pytest.mark.parametrize(("before", "after"), IGNORES)
def test_add_ignore(perflint: Command, before: str, after: str) -> None:
    perflint.write("a.py", "import torch\n" + before)
    ran = perflint("check", "a.py", RULES, "--add-ignore", "--reason", "old code")
    assert (ran.code, ran.out, ran.err) == (0, "Silenced 1 finding in 1 file.\n", "")
    assert (perflint.folder / "a.py").read_bytes() == ("import torch\n" + after).encode()
    assert perflint("check", "a.py", RULES).code == 0
    assert perflint("check", "a.py", RULES, "--add-ignore").out == "Silenced 0 findings in 0 files.\n"


def test_add_ignore_leaves_a_file_that_changed_meanwhile(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    perflint.write("a.py", BAD)
    write = adding.with_ignores

    def edited(source: Source, findings: list[Finding], reason: str) -> tuple[str, list[Finding]]:
        perflint.write("a.py", "# another text\n")
        return write(source, findings, reason)

    monkeypatch.setattr(adding, "with_ignores", edited)
    ran = perflint("check", "a.py", RULES, "--add-ignore")
    assert ran.code == 2 and "changed while it was checked" in ran.err
    assert (perflint.folder / "a.py").read_text() == "# another text\n"


def test_the_cache_and_the_baseline(adopted: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFLINT_NO_CACHE", raising=False)
    monkeypatch.setenv("PERFLINT_CACHE_DIR", str(adopted.folder / "cache"))
    for _ in range(2):
        assert adopted("check", "a.py", RULES).out == "No findings in 1 file.\n2 in the baseline.\n"
        assert "Found 2 findings" in adopted("check", "a.py", RULES, "--isolated").out


def test_add_ignore_follows_no_link_out_of_the_folder(
    perflint: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "mine.py"
    for path in (outside, perflint.folder / "a.py"):
        path.write_text(BAD)
    (perflint.folder / "link.py").symlink_to(outside)
    ran = perflint("check", ".", RULES, "--add-ignore")
    assert ran.code == 1 and f"link.py leads to {outside.resolve()}, outside of the folder to change" in ran.err
    assert outside.read_text() == BAD and (perflint.folder / "a.py").read_text() != BAD
    assert perflint("check", "link.py", RULES, "--add-ignore").code == 0 and outside.read_text() != BAD


def test_add_ignore_with_other_options(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    commit(perflint)
    perflint.write("a.py", BAD + OTHER)
    assert perflint("check", "a.py", "--add-ignore", "--since=HEAD").out == "Silenced 1 finding in 1 file.\n"
    assert (perflint.folder / "a.py").read_text().count("ignore[") == 1
    assert perflint("check", "-", "--add-ignore", stdin=b"").code == 2
    assert perflint("check", "a.py", "--reason", "x").code == 2
    assert perflint("check", "a.py", "--add-ignore", "--reason", "a # b").code == 2
    perflint.write("pyproject.toml", "[tool.perflint]\nrequire-reasons = true\n")
    assert perflint("check", "a.py", "--add-ignore").code == 2


def test_severities_are_remapped(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    for table, expected in (
        ('{ TPF902 = "error" }', "error"),
        ('{ deprecated-amp = "info", TPF9 = "error" }', "info"),
        ('{ ALL = "error", TPF90 = "info" }', "info"),
        ('{ TPF902 = "error", deprecated-amp = "info" }', "info"),
        ('{ TPF1 = "error" }', "warning"),
    ):
        perflint.write("pyproject.toml", f"[tool.perflint]\nseverity = {table}\n")
        found = json.loads(perflint("check", "a.py", "--output-format=json").out)["findings"]
        assert [each["severity"] for each in found] == [expected]
    perflint.write("pyproject.toml", '[tool.perflint]\nseverity = { TPF1O1 = "error" }\n')
    ran = perflint("check", "a.py")
    assert ran.code == 2 and "unknown rule `TPF1O1` in `severity`" in ran.err


def test_thresholds(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    assert perflint("check", "a.py", "--min-severity=warning", "--min-confidence=high").code == 1
    assert perflint("check", "a.py", "--min-severity=error").code == 0
    perflint.write("pyproject.toml", '[tool.perflint]\nmin-severity = "error"\nseverity = { TPF902 = "error" }\n')
    assert perflint("check", "a.py").code == 1


def test_fixable(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    for options in (["--unfixable=TPF902"], ["--fixable=TPF1"], ["--fixable=ALL", "--unfixable=deprecated-amp"]):
        ran = perflint("fix", "a.py", "--torch-version=2.9", *options)
        assert (ran.out, ran.err) == ("", "Nothing to fix. 1 finding left.\n"), options
    for options in ([], ["--fixable=TPF9"], ["--unfixable=TPF9", "--fixable=TPF902"]):
        assert "+scaler" in perflint("fix", "a.py", "--torch-version=2.9", *options).out, options


def test_fix_may_fail_if_it_changed_a_file(perflint: Command) -> None:
    perflint.write("a.py", BAD)
    options = ("a.py", "--torch-version=2.9", "--apply", "--exit-non-zero-on-fix")
    assert perflint("fix", *options).code == 1
    assert perflint("fix", *options).code == 0


def test_files_that_are_gone_or_no_files_any_more(perflint: Command) -> None:
    for name in ("a.py", "b.py", "c.py"):
        perflint.write(name, BAD)
    commit(perflint)
    (perflint.folder / "a.py").unlink()
    (perflint.folder / "b.py").unlink()
    (perflint.folder / "b.py").mkdir()
    perflint.write("c.py", BAD + OTHER)
    assert shown(perflint, "--since", "HEAD") == ["c.py:4"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX")
def test_git_that_fails_or_is_not_there(perflint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    perflint.write("a.py", BAD)
    commit(perflint)
    with monkeypatch.context() as patched:
        patched.setattr("perflint.engine.git._DIFF", ("--no-such-option",))
        perflint.write("a.py", BAD + OTHER)
        ran = perflint("check", "a.py", "--since=HEAD")
        assert ran.code == 2 and "`git diff --no-index` failed: error: unknown option `no-such-option'\n" in ran.err
    (perflint.folder / ".git" / "index").write_bytes(b"no index")
    ran = perflint("check", "a.py", "--since=HEAD")
    assert ran.code == 2 and "`git ls-files` failed in" in ran.err and "`git fsck` says more" in ran.err
    monkeypatch.setenv("PATH", str(perflint.folder / "nothing"))
    ran = perflint("check", "a.py", "--since=HEAD")
    assert ran.code == 2 and "git cannot be run: no folder of PATH has it" in ran.err


def test_a_diff_that_is_cut_off() -> None:
    found = _comparison(b"+++ new/0/0\n@@ -0,0 +1,5 @@\n+x", {"0/0": "a.py"})
    assert found.lines == {"a.py": [range(1, 6)]}
