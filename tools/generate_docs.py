"""Generates the parts of docs/ that come from perflint: rule pages, their index, output of commands.

    python tools/generate_docs.py [--check]

`docs/guide/settings.md` and `docs/settings-schema.json` are the table of settings, `docs/guide/commands.md` the verbs,
`docs/guide/profiles.md` ends with the table of judgement, `docs/catalogues.md` is `tools/catalogues.tsv`,
and `docs/images/check.svg` is a recording of a terminal.
`docs/rules/<name>.md` is the docstring of a rule with the accuracy of its findings on real code
(benchmarks/accuracy/judged.jsonl) and the verdicts of runs (benchmarks/accuracy/verdicts.py), `docs/rules/README.md`
lists all rules. In each Markdown file, a
```console block with one `$ perflint …` command gets the output of that command, run beside a
copy of docs/examples. With `--check` nothing is written, and the exit status is 1 if a file is out of date.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import cache
from inspect import cleandoc
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks" / "accuracy"))
sys.path.insert(0, str(Path(__file__).parent))

import command_reference
import terminal_recording
from judged import JUDGED, scores, sentence
from verdicts import sentences

from perflint.config.keys import KEYS
from perflint.config.outside import variable
from perflint.engine.judgement import rows
from perflint.engine.rulebook import settings_schema
from perflint.findings import Frequency, Need, Purpose
from perflint.output.pages import facts, page
from perflint.rules.base import Group, Rule
from perflint.rules.registry import all_rules

ROOT = Path(__file__).parents[1]
RULES = ROOT / "docs" / "rules"
SETTINGS = ROOT / "docs" / "guide" / "settings.md"
COMMANDS = ROOT / "docs" / "guide" / "commands.md"
PROFILES = ROOT / "docs" / "guide" / "profiles.md"
RECORDING = ROOT / "docs" / "images" / "check.svg"
SETTINGS_SCHEMA = ROOT / "docs" / "settings-schema.json"
CATALOGUE = ROOT / "tools" / "catalogues.tsv"
"""Items of public catalogues, by family: who asks, the item, the rules that answer, the profile, the reason if none."""
CATALOGUES = ROOT / "docs" / "catalogues.md"
COMPARISON = ROOT / "docs" / "comparison.md"
NOT_A_RULE = RULES / "not-a-rule.md"
"""Written by hand: advice that perflint does not report from source, with the reasons."""
_TRANSCRIPT = re.compile(r"^(```console\n\$ perflint (?P<arguments>[^\n]*)\n)(?:(?!\$ |```).*\n)*(```)$", re.MULTILINE)

FAMILIES = {
    "sync": "Synchronization of CPU and GPU",
    "transfer": "Transfers and allocation",
    "model": "Model structure",
    "precision": "Sizes and precision",
    "evaluation": "Evaluation",
    "optimizer": "Optimizers and the training loop",
    "compile": "torch.compile",
    "cudagraph": "CUDA graphs",
    "data": "Data pipeline",
    "training": "Around the step",
    "distributed": "Distributed training",
    "frameworks": "Frameworks",
    "legacy": "Deprecated APIs",
    "traced": "Seen in a trace only",
    "suppressions": "Comments that silence findings",
}


_EXPERTS = {
    "N1": "NVIDIA's [guide to CUDA graphs in PyTorch](https://docs.nvidia.com/dl-cuda-graph/)",
    "N2": "NVIDIA's instructions for agents in [TensorRT-LLM](https://github.com/NVIDIA/TensorRT-LLM) and "
    "[NVIDIA/skills](https://github.com/NVIDIA/skills), on code without waits, CUDA graphs and the CPU's overhead",
    "P": "PyTorch: [tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html), "
    "[torch.compile](https://docs.pytorch.org/docs/stable/torch.compiler.html), notes and releases up to 2.13",
    "H": "[transformers](https://huggingface.co/docs/transformers/main/en/llm_optims), "
    "[accelerate](https://huggingface.co/docs/accelerate/concept_guides/performance), "
    "[diffusers](https://huggingface.co/docs/diffusers/optimization/fp16), "
    "[Lightning](https://lightning.ai/docs/pytorch/stable/advanced/speed.html), "
    "[torchtitan](https://github.com/pytorch/torchtitan), [nanochat](https://github.com/karpathy/nanochat)",
    "V": "issues and changes of [vLLM](https://github.com/vllm-project/vllm), "
    "[SGLang](https://github.com/sgl-project/sglang) and TensorRT-LLM",
    "A": "ROCm, MPS, XPU and XLA: their pages in PyTorch's documentation",
}
"""The catalogues behind the letters of `tools/catalogues.tsv`."""


_TABLE = "The first row that fits decides; an empty cell fits anything:"


def main() -> None:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description="generate the parts of docs/ that come from perflint")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is out of date")
    check: bool = parser.parse_args().check
    wanted = {**rule_files(), **transcript_files(), **settings_files(), **command_files(), **recording_files()}
    wanted |= {**judgement_files(), **catalogue_files()}
    old = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    stray = sorted(set(RULES.glob("*.md")) - wanted.keys() - {NOT_A_RULE})
    for path in [*old, *stray]:
        state = "is out of date" if path in wanted else "belongs to no rule"
        done = "" if check else ": written" if path in wanted else ": removed"
        print(f"{path.relative_to(ROOT)} {state}{done}")
    if check:
        raise SystemExit(bool(old or stray))
    for path in old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path], encoding="utf-8", newline="\n")
    for path in stray:
        path.unlink()


def rule_files() -> dict[Path, str]:
    """The page of each rule and the index."""
    judged = {code: [sentence(score)] for code, score in scores(JUDGED.read_text(encoding="utf-8")).items()}
    ran = sentences()
    pages = {
        RULES / f"{rule.name}.md": with_scores(page(rule), [*judged.get(rule.code, ()), *ran.get(rule.code, ())])
        for rule in all_rules()
    }
    return {**pages, RULES / "README.md": index()}


def with_scores(text: str, said: Sequence[str]) -> str:
    """A rule's page followed by the accuracy of its findings on real code, as far as it is known."""
    return "\n".join([text, *(f"{sentence}\n" for sentence in said)])


def index() -> str:
    """The list of rules by family."""
    lines = ["# Rules", ""]
    lines += [f"{len(all_rules())} rules. `perflint rule NAME` prints a page, `perflint rules` this list.", ""]
    lines += ["The severity follows from the measured cost of the pattern; rules of severity info are shown by"]
    lines += ["`--profile pedantic`. Safe fixes keep the meaning. Unsafe fixes need `--unsafe-fixes`. Risky fixes"]
    lines += ["may change what is learned and need `--risky-fixes`."]
    lines += [f"[What is not a rule]({NOT_A_RULE.name}) explains why other advice has no rule."]
    families = sorted(all_rules(), key=lambda rule: (list(FAMILIES).index(facts(rule)["family"]), rule.code))
    for family, rules in groupby(families, key=lambda rule: facts(rule)["family"]):
        lines += ["", f"## {FAMILIES[family]}", ""]
        lines += ["| code | name | summary | severity | fixes |", "|---|---|---|---|---|"]
        lines += map(_row, rules)
    return "\n".join(lines) + "\n"


def _row(rule: Rule) -> str:
    summary = _summary(rule).replace("|", "\\|")
    known = facts(rule)
    fixes = ", ".join(known["fixes"]) or "–"
    return f"| {rule.code} | [{rule.name}]({rule.name}.md) | {summary} | {known['severity']} | {fixes} |"


def _summary(rule: Rule) -> str:
    """The first sentence of the first section of a rule's page, or the line above it."""
    whole = cleandoc(type(rule).__doc__ or "")
    first, text = re.split(r"^## What it does\n", whole, maxsplit=1, flags=re.MULTILINE)
    sentence = re.split(r"(?<=[^.])[.:](?:\s|$)", first.strip() or text.strip(), maxsplit=1)[0]
    return " ".join(sentence.split())


def settings_files() -> dict[Path, str]:
    """The reference of settings, and their JSON Schema."""
    lines = ["# Settings", "", "All settings of `[tool.perflint]` in `pyproject.toml`, or of `perflint.toml`"]
    lines += ["([configuration](configuration.md)). `perflint config KEY` prints the entry of one and its value."]
    lines += ["Editors find the [JSON Schema](../settings-schema.json) useful."]
    for key in KEYS.values():
        default = "none" if key.default is None else f"`{key.kind.shown(key.default)}`"
        lines += ["", f"## {key.name}", "", key.about, "", f"- default: {default}"]
        lines += [f"- example: `{key.name} = {key.example}`"]
        lines += [f"- environment: `{variable(key.name)}`"] if key.name != "extend" else []
    schema = json.dumps(settings_schema(), indent=2, ensure_ascii=False)
    return {SETTINGS: "\n".join(lines) + "\n", SETTINGS_SCHEMA: schema + "\n"}


def command_files() -> dict[Path, str]:
    """The reference of verbs and options."""
    return {COMMANDS: command_reference.page()}


def judgement_files() -> dict[Path, str]:
    """The guide to profiles with the table of judgement."""
    head, mark, _ = PROFILES.read_text(encoding="utf-8").partition(_TABLE)
    lines = [
        "| about | purpose of the code | frequency | need | sure | shown | since |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows():
        sure = {None: "", True: "yes", False: "no"}[row.sure]
        cells = [_any_of(Group, row.group), _any_of(Purpose, row.purpose), _any_of(Frequency, row.frequency)]
        cells += [_any_of(Need, row.need), sure, "information" if row.is_information else "by its price", row.reason]
        lines.append(f"| {' | '.join(cells)} |")
    return {PROFILES: f"{head}{mark}\n\n" + "\n".join(lines) + "\n"}


_UNSEEN = [
    "How general the rules are shows on programs that were written from the words of the items alone, in other",
    "forms: classes, trainers, settings in dicts, helpers. At first, 90 of them gave 21 of 26 items of high",
    "importance and 19 of 64 of medium importance by default, and 21 and 43 in the pedantic profile; after rules",
    "and inference were mended, another 55 gave 34 of 44 and 2 of 11 by default, and 35 and 6. A third set, of 86,",
    "gave 52 of 63 and 9 of 23 by default, and 52 and 15, with one false finding on the 86 good twins; what it",
    "missed was then mended in part. Most items of medium importance cost too little to be shown by default: the",
    "table says why.",
    "",
    "117 blind pairs, first score (30 November 2026), of which the writer had read the items, but no rule: 59 of",
    "74 of high importance and 12 of 42 of medium importance by default, 62 and 20 in the pedantic profile, 64 and",
    "22 in `audit`, with findings on 3, 13 and 18 of the good twins. Three of the misses were wrong pairs, two by a",
    "run of torch, and four more were found at a line beside the marked one. After the kinds of the others were",
    "mended in part, 67 of 71 and 13 of 42 are found by default, with one finding on a good twin. Two more sets, of",
    "high importance alone, were written after these changes. They gave 33 of 42 and 28 of 38 at first, with one and",
    "three findings on good twins; one and three pairs were wrong or doubtful, and two marked a line beside the",
    "finding. Mended in part, too, they give 36 of 41 and 31 of 35. What is missed then is measured to cost little",
    "(sharding of the root alone, gradients reduced one by one), or wanted by the code around it (a wait beside a",
    "clock, or before the CPU reads a copy), or not visible in the file (the type of an index, the layers of a list).",
    "",
    "The rules that came with the catalogues were run over 48 public projects, and all of their findings were",
    "read. Right and wanted were 22 of 28, without the 23 of TPF935, which states a fact: TPF312 2 of 2, TPF314 1",
    "of 1, TPF409 4 of 4, TPF609 2 of 2, TPF906 4 of 4, TPF907 6 of 6, TPF924 1 of 1, TPF964 2 of 2, TPF318 0 of",
    "5 and TPF817 0 of 1. The last two were narrowed, and report none of these now. The others found nothing",
    "there.",
]


def catalogue_files() -> dict[Path, str]:
    """The page of the catalogues' items, and the comparison with other tools, which has their numbers."""
    items = [line.split("\t") for line in CATALOGUE.read_text(encoding="utf-8").splitlines()[1:]]
    return {CATALOGUES: catalogues(items), COMPARISON: comparison(items)}


def catalogues(items: list[list[str]]) -> str:
    """The page that sets perflint beside the catalogues of experts, item by item."""
    lines = ["# Beside the catalogues of experts", ""]
    lines += ["What public catalogues of performance advice ask for, and which rule of perflint answers. One input was"]
    lines += ["written for each item; a rule is named here if perflint reports the marked line of it. perflint was"]
    lines += ["developed with these inputs, so that the table shows what it knows, and not its recall on programs:"]
    lines += ["[the comparison](comparison.md) has unseen code.", "", *_UNSEEN, ""]
    lines += [f"- **{letter}**: {what}" for letter, what in _EXPERTS.items()]
    lines += ["", *_numbers(items, {letter: letter for letter in _EXPERTS})]
    for family, own in groupby(items, key=lambda item: item[1]):
        lines += ["", f"## {family[0].upper()}{family[1:]}", ""]
        lines += ["| asked for | by | perflint | reason |", "|---|---|---|---|"]
        lines += [f"| {item} | {by} | {_answer(codes, shown)} | {why} |" for by, _, item, codes, shown, why in own]
    return "\n".join(lines) + "\n"


def comparison(items: list[list[str]]) -> str:
    """The comparison with other tools; the section on the catalogues is generated."""
    head, mark, rest = COMPARISON.read_text(encoding="utf-8").partition("## What experts ask for\n")
    lines = [
        "",
        "What public catalogues of advice ask for, and how many of their items perflint answers: by a rule that the",
    ]
    lines += [
        "default profile shows or a stricter one, or by a run. [Item by item](catalogues.md) names the rule, or the"
    ]
    lines += ["reason why none answers. perflint was developed with these items.", ""]
    lines += [*_numbers(items, _EXPERTS), "", "The same by what the items are about:", ""]
    families = {
        family: [item for item in items if item[1] == family] for family in dict.fromkeys(row[1] for row in items)
    }
    lines += [_COUNTS[0].replace("catalogue", "about"), _COUNTS[1]]
    for family, own in families.items():
        anchor = re.sub(r"[^\w\- ]", "", family.lower()).replace(" ", "-")
        lines += [_counted(f"[{family}](catalogues.md#{anchor})", own)]
    return "\n".join([head + mark.rstrip("\n"), *lines]) + "\n\n" + rest[rest.index("## ") :]


_COUNTS = [
    "| catalogue | items | by default | in stricter profiles | a run | no answer |",
    "|---|---:|---:|---:|---:|---:|",
]


def _numbers(items: list[list[str]], names: dict[str, str]) -> list[str]:
    """The table of the catalogues, with the number of items by what answers them."""
    own = [_counted(name, [item for item in items if letter in item[0].split()]) for letter, name in names.items()]
    return [*_COUNTS, *own, _counted("all", items)]


def _counted(name: str, items: list[list[str]]) -> str:
    shown = [item[4] for item in items]
    counts = [shown.count("default"), shown.count("pedantic") + shown.count("audit"), shown.count("run")]
    return f"| {name} | {len(items)} | {' | '.join(map(str, counts))} | {len(items) - sum(counts)} |"


def _answer(codes: str, shown: str) -> str:
    """The rules that report an item, with the profile that shows them; "a run" if a trace tells it."""
    names = {rule.code: rule.name for rule in all_rules()}
    links = ", ".join(f"[{code}](rules/{names[code]}.md)" for code in codes.split())
    return {"": "–", "run": "a run", "default": links}.get(shown, f"{links} ({shown})")


def _any_of(kind: Iterable[Enum], chosen: frozenset[Enum]) -> str:
    """The values of a column of a row, in the order of their definition."""
    return ", ".join(each.value for each in kind if each in chosen)


def recording_files() -> dict[Path, str]:
    """The recording of a terminal in README.md."""
    return {RECORDING: terminal_recording.picture(Path(_examples().name, "docs", "examples"))}


def transcript_files() -> dict[Path, str]:
    """The hand-written Markdown files with fresh output of their commands."""
    return {path: refreshed(path.read_text(encoding="utf-8")) for path in hand_written()}


def hand_written() -> Iterator[Path]:
    """README.md and its like, and docs/ without the pages of rules."""
    yield from sorted(ROOT.glob("*.md"))
    yield from (path for path in sorted((ROOT / "docs").rglob("*.md")) if RULES not in path.parents)


def refreshed(text: str) -> str:
    """A text with the output of its commands renewed."""
    return _TRANSCRIPT.sub(lambda found: f"{found[1]}{output(shlex.split(found['arguments']))}{found[3]}", text)


@cache
def _examples() -> tempfile.TemporaryDirectory[str]:
    """A project with a copy of docs/examples. In this one, perflint searches all files for callers."""
    folder = tempfile.TemporaryDirectory()
    shutil.copytree(ROOT / "docs" / "examples", Path(folder.name, "docs", "examples"))
    Path(folder.name, "pyproject.toml").touch()
    return folder


def output(arguments: list[str]) -> str:
    """The output of a perflint command in the project of the examples."""
    command = [sys.executable, "-m", "perflint", *arguments]
    done = subprocess.run(command, cwd=_examples().name, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"perflint {shlex.join(arguments)}:\n{done.stderr}")
    return done.stdout + done.stderr


if __name__ == "__main__":
    main()
