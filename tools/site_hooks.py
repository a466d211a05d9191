"""Additions to MkDocs: the list of rules, and links to files that are not part of the site."""

from __future__ import annotations

import re
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from generate_docs import FAMILIES, ROOT

from perflint.output.pages import facts
from perflint.rules.registry import all_rules

DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<path>(?!\w+:)[^)#\s]+)(?:#[^)\s]*)?\)")
_FENCED = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """List the pages of rules by family."""
    for entry in config["nav"]:
        if "Rules" in entry:
            entry["Rules"] = ["rules/README.md", *_families(), {"What is not a rule": "rules/not-a-rule.md"}]
    return config


def _families() -> list[dict[str, list[dict[str, str]]]]:
    order = list(FAMILIES)
    rules = sorted(all_rules(), key=lambda rule: (order.index(facts(rule)["family"]), rule.code))
    return [
        {FAMILIES[family]: [{f"{rule.code} {rule.name}": f"rules/{rule.name}.md"} for rule in members]}
        for family, members in groupby(rules, key=lambda rule: facts(rule)["family"])
    ]


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files of the repository go to `repo_url`; without one, only their text stays."""
    here = (DOCS / page.file.src_uri).parent
    own = {str((DOCS / file.src_uri).resolve()) for file in files if file.inclusion.is_included()}

    def link(found: re.Match[str]) -> str:
        target = (here / found["path"]).resolve()
        if str(target) in own:
            return found[0]
        if not config["repo_url"]:
            return found["text"]
        kind = "tree" if target.is_dir() else "blob"
        return f"[{found['text']}]({config['repo_url']}/{kind}/main/{target.relative_to(ROOT)})"

    parts = _FENCED.split(markdown)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)
