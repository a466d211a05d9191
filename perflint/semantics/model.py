"""The model of one file: values, call targets, heat, structure, and the sites for rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from perflint.frozen import replace
from perflint.semantics import nominate
from perflint.semantics.callers.kept import summaries
from perflint.semantics.callers.outgoing import summarised
from perflint.semantics.callers.training import is_outside_training
from perflint.semantics.heat.switches import is_off
from perflint.semantics.heated import Heated
from perflint.semantics.inferred import LAST, CallsOf
from perflint.semantics.memo import once
from perflint.semantics.regions import compiled
from perflint.semantics.regions.captured import Captures
from perflint.semantics.regions.compile_calls import is_skipped
from perflint.semantics.regions.scripted import scripted_lines
from perflint.semantics.structure import FunctionNode
from perflint.semantics.values import Function
from perflint.semantics.view import Record, no_arguments, no_call

if TYPE_CHECKING:
    from perflint.semantics.callers.summary import Summary
    from perflint.semantics.dataflow.demand import Demand
    from perflint.semantics.dataflow.destinations import Destinations
    from perflint.semantics.dataflow.in_numpy import InNumpy
    from perflint.semantics.dataflow.origins import Origins
    from perflint.semantics.project import Project
    from perflint.semantics.regions.compile_calls import Place
    from perflint.semantics.regions.compiled import Compiled
    from perflint.semantics.regions.cpu_code import HostCode
    from perflint.semantics.sites import CallSite, Site, SubscriptSite
from perflint.source.text import Source

__all__ = ["LAST", "CallsOf", "FunctionNode", "Model"]


@once
def _for_any_caller(model: Model) -> Model:
    return Model(model.source, model.view.project, CallsOf.PRIVATE, model.part)


def summary_of(project: Project, path: Path, round: int = LAST) -> Summary | None:
    """The summary of a file, which all checks of the project share; None if the file does not parse.

    In round 0 the file is run alone, in each further one with what its callers pass as their summaries of the round
    before show.
    """
    return summaries(project).of(project, path, round, _summary)


def _summary(project: Project, path: Path, round: int) -> Summary | None:
    module = project.module_at(path)
    if module is None:
        return None
    source = Source(str(path), module.text)
    source.tree = module.tree
    before = summary_of(project, path, round - 1) if round else None
    model = Model(source, project, CallsOf.FILE, round=round)
    try:
        model.infer()
        is_last = round == LAST
        if before is None or model.is_changed or is_last:
            return summarised(model, model.compiled_functions if is_last else {}, round, is_last)
        return replace(before, round=round, record=model.view.record)
    finally:
        model.close()
        summaries(project).keep_run(model.run)


@once
def _sites_by_key(model: Model) -> Mapping[tuple[object, ...], Site]:
    return {site.key: site for site in model.sites()}


class Model(Heated):
    """All facts about one file, and its sites."""

    @staticmethod
    def summary_of(project: Project, path: Path, round: int) -> Summary | None:
        """The summary of a file of a project in a round; None if the file does not parse."""
        return summary_of(project, path, round)

    def close(self) -> None:
        """Forget what refers to the model or in a circle: the command runs without a garbage collector."""
        self.view.outside, self.view.every_call = no_arguments, no_call
        other: Model | None = self.memo.get(_for_any_caller)
        if other is not None:
            other.close()
        self.memo.clear()
        if self._calls is CallsOf.PROJECT:
            summaries(self.view.project).forget_runs()

    def is_outside_training(self, function: FunctionNode) -> bool:
        """True if calls of a function of the file are known, and none that leads to it belongs to a training."""
        return is_outside_training(self, function)

    @property
    def record(self) -> Record:
        """The reads that the answers so far rest on."""
        other: Model | None = self.memo.get(_for_any_caller)
        if other is not None:
            self.view.rests_on(other.view.record)
        return self.view.record

    @property
    def for_any_caller(self) -> Model:
        """The facts that hold whatever other files pass to the functions of this one."""
        return _for_any_caller(self)

    def site_like(self, site: Site) -> Site | None:
        """The site of this model that is the same as a site of another model of the file; None if it has none."""
        return _sites_by_key(self).get(site.key)

    @cached_property
    def compiled_functions(self) -> Mapping[Place, Compiled]:
        """The functions that run under torch.compile, by place; those of other files only if this file shows it."""
        own = self.says("compile") and self.matches(compiled.COMPILES)
        others = [] if self.callers is None else [
            ((self.module.name, info.node.lineno, info.node.col_offset), found)
            for info, found in self.callers.compiled()
        ]  # fmt: skip
        if not own and not others:
            return {}
        return compiled.compiled_functions(self.view, self.module, self._recorder, others)

    def call(self, node: ast.Call) -> CallSite:
        """The site of a call; its target is empty if it is unknown."""
        return nominate.call_site(self, node)

    def subscript(self, node: ast.Subscript) -> SubscriptSite:
        """The site of an indexing."""
        return nominate.subscript_site(self, node)

    def compiled(self, node: ast.AST) -> Compiled | None:
        """How the code around a node comes to run under torch.compile; None if it does not, or passes it over."""
        if not self.compiles:
            return None
        function = self.function(node)
        while function is not None:
            found = self.compiled_functions.get((self.module.name, function.lineno, function.col_offset))
            if found is not None:
                return None if is_skipped(self.module, node) else found
            function = self.function(function)
        return None

    def compiled_function(self, function: Function) -> Compiled | None:
        """How a function of the file comes to run under torch.compile."""
        return self.compiled_functions.get((function.module, function.line, function.column))

    @cached_property
    def captures(self) -> Captures:
        """The regions of the file that CUDA graphs record."""
        return Captures(self.view, self.module, self._recorder)

    @cached_property
    def _scripted(self) -> tuple[range, ...]:
        return scripted_lines(self)

    def is_scripted(self, line: int) -> bool:
        """True if a line is in a function that TorchScript may compile."""
        return any(line in lines for lines in self._scripted)

    @cached_property
    def compiles(self) -> bool:
        """True if any function of the file runs under torch.compile."""
        return any(module == self.module.name for module, _, _ in self.compiled_functions)

    def is_off(self, setting: ast.expr) -> bool:
        """True if an argument is false in all calls: by literals, or by parameters and attributes with one value."""
        return is_off(self, setting)

    @cached_property
    def origins(self) -> Origins:
        """The origins of the tensors of the file."""
        from perflint.semantics.dataflow.origins import Origins

        return Origins(self)

    @cached_property
    def destinations(self) -> Destinations:
        """The destinations of the values of the file."""
        from perflint.semantics.dataflow.destinations import Destinations

        return Destinations(self, self.origins)

    @cached_property
    def host_code(self) -> HostCode:
        """The functions of the file that work on the CPU."""
        from perflint.semantics.regions.cpu_code import HostCode

        return HostCode(self)

    @cached_property
    def demand(self) -> Demand:
        """The code that needs the values of the file."""
        from perflint.semantics.dataflow.demand import Demand

        return Demand(self, self.destinations)

    @cached_property
    def in_numpy(self) -> InNumpy:
        """The copies of the file whose values NumPy works on."""
        from perflint.semantics.dataflow.in_numpy import InNumpy

        return InNumpy(self, self.destinations)

    def sites(self) -> Iterator[Site]:
        """All sites of the file, construct by construct, each in source order."""
        return nominate.sites(self)
