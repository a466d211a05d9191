"""One JSON document for a run."""

from __future__ import annotations

import json

from perflint.findings import Report
from perflint.output.json import document
from perflint.output.writer import DocumentWriter


class JsonWriter(DocumentWriter):
    """The findings or, for statistics, their count by rule, with the errors and the summary."""

    counts = True

    def document(self, report: Report) -> str:
        values = document(report, self.to.statistics, self.to.rule_url)
        return json.dumps(values, indent=2) + "\n"


WRITER = JsonWriter
