"""The ranks of a run, in a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perflint.output.summary import count
from perflint.output.terminal import Style, printable
from perflint.tracer.ranks import Rank, RankReport, Straggler

SHOWN = 10
"""Syncs that only some ranks make."""
RANKS = 16
"""Ranks that are named one by one."""
_COLUMNS = ("ms/step", "own work", "idle", "collectives", "of them alone")


def ranks_text(report: RankReport, style: Style) -> str:
    """A table of the ranks, the one that makes the others wait, and the syncs that not all make."""
    return "".join(f"{line}\n" for line in (*_table(report.ranks, style), *rank_notes(report)))


def rank_notes(report: RankReport) -> Iterator[str]:
    """Remarks on the ranks, in sentences."""
    yield from _judgement(report)
    yield from _syncs(report)


def _table(ranks: Sequence[Rank], style: Style) -> Iterator[str]:
    yield style(f"{'rank':>4}  {'  '.join(f'{name:>13}' for name in _COLUMNS)}", "bold")
    for rank in ranks:
        values = (rank.step_ms, rank.own_ms, rank.idle_ms, rank.collective_ms, rank.exposed_ms)
        cells = (f"{'?':>13}" if value is None else f"{value:13.2f}" for value in values)
        yield f"{rank.rank:4}  {'  '.join(cells)}"


def _judgement(report: RankReport) -> Iterator[str]:
    if report.missing:
        yield f"No trace of {_named(report.missing)}."
    if report.straggler is not None:
        yield _straggler(report.straggler)
    elif not any(rank.collective_ms for rank in report.ranks):
        yield "Which rank the others wait for is not known: no collectives were profiled."
    else:
        yield "No rank makes the others wait."


def _straggler(straggler: Straggler) -> str:
    times = f"in {straggler.steps} of {count(straggler.compared, 'profiled step')}"
    text = f"Rank {straggler.rank} makes the others wait, {straggler.wait_ms:.2f} ms per step ({times}): "
    if not straggler.cause:
        return f"{text}its GPU has {max(straggler.more_work_ms, 0.0):.2f} ms more to do."
    text += f"its GPU idles {straggler.more_idle_ms:.2f} ms longer, "
    if straggler.cause == "sync" and straggler.place is not None:
        place = straggler.place
        return f"{text}after {printable(f'{place.file}:{place.line}  {place.text}')}"
    return text + ("waiting for data." if straggler.cause == "loader" else "because its CPU is late.")


def _syncs(report: RankReport) -> Iterator[str]:
    for sync in report.uneven[:SHOWN]:
        place = sync.place
        verb = "synchronizes" if len(sync.ranks) == 1 else "synchronize"
        yield f"Only {_named(sync.ranks)} {verb}: {printable(f'{place.file}:{place.line}  {place.text}')}"
    if len(report.uneven) > SHOWN:
        yield f"{len(report.uneven) - SHOWN} more places synchronize on some ranks only."


def _named(ranks: Sequence[int]) -> str:
    numbers = ", ".join(str(rank) for rank in ranks[:RANKS])
    more = f" and {len(ranks) - RANKS} more" if len(ranks) > RANKS else ""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {numbers}{more}"
