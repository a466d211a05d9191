"""How many findings each rule has."""

from __future__ import annotations

from collections import Counter

from perflint.findings import Report, Safety
from perflint.frozen import dataclass
from perflint.output.summary import MARKERS
from perflint.output.writer import Writer
from perflint.source.text import Source


@dataclass(frozen=True, slots=True)
class Count:
    """The number of findings of one rule, and the safest of their fixes, if any."""

    code: str
    name: str
    count: int
    safety: Safety | None


def counted(report: Report) -> list[Count]:
    """The rules that found something, the most frequent first."""
    counts = Counter((finding.code, finding.name) for finding in report.findings)
    fixes = {(finding.code, finding.fix.safety) for finding in report.findings if finding.fix is not None}
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        Count(code, name, count, next((safety for safety in Safety if (code, safety) in fixes), None))
        for (code, name), count in order
    ]


class StatisticsWriter(Writer):
    """A line for each rule that found something, the most frequent first."""

    def file(self, source: Source, report: Report) -> None:
        """Nothing: only the whole run counts."""

    def finish(self, report: Report) -> None:
        counts = counted(report)
        figures = max((len(str(each.count)) for each in counts), default=0)
        for each in counts:
            mark = MARKERS.get(each.safety, "") if each.safety is not None else ""
            code = self.style(each.code, "bold", "red")
            self.out.write(f"{each.count:{figures}}  {code}  {self.style(f'{mark:3}', 'green')}  {each.name}\n")
        if counts:
            self.out.write("\n")
        self.summarize(report, begin=False)
