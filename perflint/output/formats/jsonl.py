"""A JSON object in each line: the findings as files are checked, then the errors and the summary."""

from __future__ import annotations

import json
from typing import Any

from perflint.findings import Report
from perflint.output.json import finding_object, problem_object, summary_object
from perflint.output.writer import MachineWriter
from perflint.source.text import Source


class JsonLinesWriter(MachineWriter):
    """Each object is one of the document of `json`, with its `kind`."""

    def file(self, source: Source, report: Report) -> None:
        for finding in report.findings:
            self._line("finding", finding_object(finding, self.to.rule_url))

    def body(self, report: Report) -> None:
        for problem in report.problems:
            self._line("error", problem_object(problem))
        self._line("summary", summary_object(report))

    def _line(self, kind: str, values: dict[str, Any]) -> None:
        self.out.write(json.dumps({"kind": kind, **values}) + "\n")


WRITER = JsonLinesWriter
