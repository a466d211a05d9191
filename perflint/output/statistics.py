"""How many findings each rule has."""

from __future__ import annotations

from collections import Counter

from perflint.findings import Report
from perflint.output.summary import MARKERS, summary_text
from perflint.output.writer import Writer
from perflint.source.text import Source


class StatisticsWriter(Writer):
    """A line for each rule that found something, the most frequent first."""

    def file(self, source: Source, report: Report) -> None:
        """Nothing: only the whole run counts."""

    def finish(self, report: Report) -> None:
        counts = Counter((finding.code, finding.name) for finding in report.findings)
        # A rule's line shows the safest of its fixes.
        fixes = {(finding.code, finding.fix.safety) for finding in report.findings if finding.fix is not None}
        fixable = {code: mark for safety, mark in reversed(MARKERS.items()) for code, of_it in fixes if of_it is safety}
        figures = len(str(max(counts.values(), default=0)))
        for (code, name), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            mark = self.style(f"{fixable.get(code, ''):3}", "green")
            self.out.write(f"{count:{figures}}  {self.style(code, 'bold', 'red')}  {mark}  {name}\n")
        if counts:
            self.out.write("\n")
        self.out.write(summary_text(report, self.style))
