"""How far a statistical model can tell wanted findings from others.

    pip install scikit-learn
    python benchmarks/accuracy/predict.py --src FOLDER [--src FOLDER …] [--rules TPF109,TPF110] [--keep FILE]

The folders hold checkouts of the projects of `judged.jsonl`, under the names of their repositories. perflint checks
each with the default profile. The judged findings that it shows are described by their rule, heat and confidence, by
the words of their message, their line and their path, and by some words of the lines around. A logistic regression and
a forest learn from nine tenths of the projects which findings readers want, and predict the last tenth, ten times. A
table shows the share of wanted findings among those that a model would show, and the share of all wanted ones among
these. The words of names are given to the models to see how far anything comes; perflint itself does not use them.

`--keep` is a JSON file for the findings, which a second run reads in place of checking all projects again.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

HERE = Path(__file__).parent
CHECK = [sys.executable, "-m", "perflint", "check", "--isolated", "--exit-zero", "--output-format", "json"]
AROUND = (
    "backward optimizer no_grad tqdm dataloader json append epoch argmax accuracy range metric print state_dict".split()
)
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", action="append", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--rules", default="", metavar="CODES")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.keep and arguments.keep.exists():
        found = json.loads(arguments.keep.read_text())
    else:
        found = list(judged_and_shown(arguments.src))
        if arguments.keep:
            arguments.keep.write_text(json.dumps(found))
    rules = set(filter(None, arguments.rules.split(",")))
    found = [each for each in found if not rules or each["code"] in rules]
    wanted = [each["wanted"] for each in found]
    projects = [each["project"] for each in found]
    print(f"{len(found)} findings of {len(set(projects))} projects, {sum(wanted)} wanted")
    models = {
        "logistic regression": LogisticRegression(C=0.1, max_iter=3000),
        "forest": RandomForestClassifier(400, min_samples_leaf=3, random_state=0),
    }
    for name, model in models.items():
        scores = predicted(model, [features(each) for each in found], wanted, projects)
        print(f"\n{name}: area under the curve {roc_auc_score(wanted, scores):.2f}\n")
        print("| shown | wanted among these | of all wanted |\n|---:|---:|---:|")
        order = sorted(range(len(found)), key=lambda at: -scores[at])
        for share in SHARES:
            shown = [wanted[at] for at in order[: round(share * len(order))]]
            print(f"| {share:.1f} | {sum(shown) / len(shown):.2f} | {sum(shown) / sum(wanted):.2f} |")


def judged_and_shown(folders: list[Path]) -> Iterator[dict[str, Any]]:
    """The judged findings that the default profile shows, with their lines."""
    judged: dict[str, dict[tuple[str, str, int], bool]] = {}
    for line in (HERE / "judged.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        judged.setdefault(row["package"], {})[row["rule"], row["path"], row["line"]] = row["true"]
    for package, verdicts in judged.items():
        name = package.partition("@")[0].rpartition("/")[2]
        for root in (folder / name for folder in folders if "@" in package and (folder / name).is_dir()):
            # The exit code is 2 if some file of the project does not parse.
            run = subprocess.run([*CHECK, "."], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            findings = json.loads(run.stdout)["findings"]
            in_file = Counter(finding["path"] for finding in findings)
            for finding in findings:
                verdict = verdicts.get((finding["code"], finding["path"], finding["line"]))
                if verdict is not None and finding["severity"] != "info":
                    yield described(root, finding, in_file[finding["path"]]) | {"project": package, "wanted": verdict}


def described(root: Path, finding: dict[str, Any], in_file: int) -> dict[str, Any]:
    """A finding with its line, and the lines around it."""
    lines = (root / finding["path"]).read_text(encoding="utf-8", errors="replace").splitlines()
    at = finding["line"] - 1
    kept = ("code", "path", "line", "heat", "confidence", "severity", "message", "function")
    return {key: finding.get(key) for key in kept} | {
        "why": finding.get("why") or "",
        "text": lines[at] if at < len(lines) else "",
        "around": "\n".join(lines[max(0, at - 15) : at + 10]),
        "in_file": in_file,
    }


def features(finding: dict[str, Any]) -> dict[str, float]:
    """The properties of a finding by their names."""
    code, heat = finding["code"], finding["heat"]
    found: dict[str, float] = dict.fromkeys(
        (f"rule {code}", f"heat {heat}", f"rule {code} {heat}", f"confidence {finding['confidence']}"), 1.0
    )
    found["indent"] = (len(finding["text"]) - len(finding["text"].lstrip())) / 16
    found["in file"] = min(finding["in_file"], 20) / 20
    for word in set(re.findall(r"[A-Za-z_]+", finding["text"].lower())):
        found[f"line {word}"] = 0.3
    for word in re.findall(r"[a-z]+", finding["path"].lower()):
        found[f"path {word}"] = 0.5
    for word in set(re.findall(r"[A-Za-z]{4,}", re.sub(r"`[^`]*`", "", finding["message"] + " " + finding["why"]))):
        found[f"message {word.lower()}"] = 0.3
    for word in AROUND:
        found[f"around {word}"] = float(word in finding["around"])
    return found


def predicted(model: Any, rows: list[dict[str, float]], wanted: list[bool], projects: list[str]) -> list[float]:
    """The scores of the findings of each tenth of the projects, by a model of the others."""
    scores = [0.0] * len(rows)
    for known, unseen in GroupKFold(10).split(rows, wanted, projects):
        table = DictVectorizer(sparse=False)
        model.fit(table.fit_transform([rows[at] for at in known]), [wanted[at] for at in known])
        for at, (_, score) in zip(
            unseen, model.predict_proba(table.transform([rows[at] for at in unseen])), strict=True
        ):
            scores[at] = float(score)
    return scores


if __name__ == "__main__":
    main()
