"""How much a finding counts at its place, decided after its rule has looked: who wants the value, and how often.

Each policy is a small function that returns the finding, changed or not, or None if there is nothing to report.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from perflint.engine.contracts import in_sync_free_code, where_syncs_are_allowed
from perflint.engine.policy.analyses import (
    computes_metrics,
    decodes,
    feeds_batches,
    is_decoded,
    is_of_analysis,
    is_of_evaluation,
)
from perflint.engine.policy.bases import is_called_in_loops
from perflint.engine.policy.beside import holds_steps, is_beside_epoch, is_step
from perflint.engine.policy.caches import CACHE, beside_evaluation
from perflint.engine.policy.cpu_code import OF_THE_DEVICE, in_a_program_without_a_gpu, in_other_code_of_the_cpu
from perflint.engine.policy.evaluations import (
    carries_numbers,
    copies_array,
    copies_for_evaluation,
    copies_state,
    is_in_batch,
    reads_files,
    selects_for_evaluation,
    writes_results,
)
from perflint.engine.policy.numbers import FEW_NUMBERS, for_missing_argument
from perflint.engine.policy.pictures import draws_results, is_in_drawing_function, joins_pictures
from perflint.engine.policy.selections import SELECTIONS, counted
from perflint.engine.policy.taken import is_taken
from perflint.engine.policy.texts import as_text, behind_test
from perflint.engine.policy.training import outside_training
from perflint.engine.policy.unreached import does_not_run, is_unreached, serves_project
from perflint.findings import Confidence, Finding, Heat, Severity
from perflint.frozen import replace
from perflint.rules._places import inside, loops_around, repeats
from perflint.rules._wholes import is_added_up, is_same_each_turn, whole_of
from perflint.rules._words import EVERY_STEP
from perflint.rules.sync._asked import follows_wait
from perflint.semantics.dataflow.origins import Origin, Source
from perflint.semantics.facts import conventions
from perflint.semantics.model import Model
from perflint.semantics.sites import CallSite, FileSite, Site, SubscriptSite
from perflint.semantics.structure import last_name, names_in, walk
from perflint.semantics.values import Dtype

_COPIES = "TPF109"
"""The rule about copies to the CPU."""
_TO_GPU = "TPF201"
"""The rule about copies to the GPU."""
_READS = frozenset({"TPF101", _COPIES})
"""Rules about reads of single values and copies to the CPU."""
_DECIDES = frozenset({"TPF105", SELECTIONS, "TPF119"})
"""Rules about waits for an answer by which the CPU goes on: a test, the size of a selection, a number of Python."""
_LISTS = "TPF117"
"""The one of them about lists and arrays: in a loop that does not step, these are data, and are copied once."""
_POSITIONS = "TPF118"
"""The one of them about positions of an index."""
_MANY_WAITS = frozenset({"TPF102", "TPF103", "TPF104", "TPF120", "TPF125"})
"""Rules about places that wait once for each value of many."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def weighed(finding: Finding, site: Site) -> Finding | None:
    """The finding as it counts at its place, or None if there is nothing to report."""
    for policy in _POLICIES:
        weighed_so_far = policy(finding, site)
        if weighed_so_far is None:
            return None
        finding = weighed_so_far
    return finding


def _while_a_module_is_made(finding: Finding, site: Site) -> Finding | None:
    """A module is made on the CPU: nothing waits for the GPU yet, unless the place itself says so."""
    is_certain = finding.effect not in OF_THE_DEVICE or finding.confidence is Confidence.HIGH
    return finding if is_certain or isinstance(site, FileSite) or not site.model.makes_module(site.node) else None


def _where_data_are_prepared(finding: Finding, site: Site) -> Finding:
    """Data are prepared on the CPU: low confidence if nothing is known about the tensor's device."""
    if (
        finding.effect in OF_THE_DEVICE
        and finding.confidence is Confidence.MEDIUM
        and finding.heat is Heat.WARM
        and conventions.prepares_data(site.model.module.name)
        and not _works_on_results(site)
    ):
        return replace(finding, confidence=Confidence.LOW)
    return finding


def _for_half_precision_only(finding: Finding, site: Site) -> Finding:
    """Code behind `x.dtype == torch.float16` does not run with the other dtypes: low confidence."""
    if finding.effect not in OF_THE_DEVICE or finding.confidence is Confidence.LOW or isinstance(site, FileSite):
        return finding
    inner: ast.AST = site.node
    for outer in site.model.ancestors(site.node):
        if isinstance(outer, _FUNCTIONS):
            break
        if isinstance(outer, ast.BoolOp) and isinstance(outer.op, ast.And) and inner in outer.values:
            tests = outer.values[: outer.values.index(inner)]
        else:
            tests = [outer.test] if isinstance(outer, ast.If) and inner in outer.body else []
        if any(_is_of_half_precision(site, test) for test in tests):
            return replace(finding, confidence=Confidence.LOW)
        inner = outer
    return finding


def _is_of_half_precision(site: Site, test: ast.expr) -> bool:
    """True for `x.dtype == torch.float16`, also with a further condition."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_of_half_precision(site, part) for part in test.values)
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return False
    value = site.value(test.comparators[0])
    return last_name(test.left) == "dtype" and isinstance(value, Dtype) and value.name in ("float16", "half")


def _works_on_results(site: Site) -> bool:
    functions = (outer for outer in site.model.ancestors(site.node) if isinstance(outer, ast.FunctionDef))
    return any(conventions.works_on_results(function.name) for function in functions)


def _of_a_few_numbers(finding: Finding, site: Site) -> Finding:
    """Copying a few Python numbers takes microseconds: information if it happens once for a request or an image.

    Libraries do not know how often they are called. The functions of a program, and of files that no package offers,
    that are not known to run each step run for a request, an image or a report. Beside the run of a model, a copy does
    not count.
    """
    if finding.code not in FEW_NUMBERS or isinstance(site, FileSite) or site.heat is Heat.HOT:
        return finding
    is_data = finding.code == _LISTS and repeats(site) and not _is_round_trip(site)
    beside_run = not repeats(site) and _runs_model(site)
    once_for_project = not repeats(site) and serves_project(site) and not _is_round_trip(site)
    if is_data or site.model.module.is_program or once_for_project or beside_run or _is_selected(site):
        return replace(finding, severity=Severity.INFO)
    return finding


def _runs_model(site: Site) -> bool:
    """True if the function around a place runs a whole model, which takes far longer than a copy."""
    function = site.model.function(site.node)
    if function is None or isinstance(function, ast.Lambda):
        return False
    work = site.model.heat_map.work.of(function.body)
    return work.runs or work.calls_run


def _is_round_trip(site: Site) -> bool:
    """True if numbers are computed from a tensor that was copied to the CPU: they are not data, and the copy waited.

    `torch.tensor(align(scores.cpu().numpy()), device=scores.device)`.
    """
    if not isinstance(site, CallSite) or not site.node.args:
        return False
    origins, made = site.model.origins, site.node.args[0]
    computed = origins.of(made)
    is_computed = computed.source is Source.CALL and isinstance(computed.node, ast.Call)
    operands = computed.node.args if is_computed and isinstance(computed.node, ast.Call) else [made]
    return any(_is_copy(origins.of(_without_index(each))) for each in operands)


def _is_copy(origin: Origin) -> bool:
    return origin.source is Source.MOVED and last_name(origin.node) == "cpu"


def _without_index(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _is_selected(site: Site) -> bool:
    """True if a loop comes to a place in one of its turns only: `for key in keys: … if key == "scale": …`."""
    loops = [loop for loop in loops_around(site.model, site.node) if isinstance(loop, (ast.For, ast.AsyncFor))]
    names = {name for loop in loops for name in names_in(loop.target)}
    tests = (outer.test for outer in inside(site.model, site.node) if isinstance(outer, ast.If))
    return any(
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(test.left, ast.Name)
        and test.left.id in names
        and isinstance(test.comparators[0], ast.Constant)
        for test in tests
    )


def _needed_on_cpu(finding: Finding, site: Site) -> Finding:
    """A value that the CPU needs must be copied: information, since there is nothing to save."""
    if finding.code not in _READS or isinstance(site, FileSite):
        return finding
    is_needed = site.model.demand.is_on_cpu(site.node)
    is_needed = is_needed or (finding.code == _COPIES and isinstance(site, CallSite) and is_taken(site))
    return replace(finding, severity=Severity.INFO) if is_needed else finding


def _where_pictures_are_drawn(finding: Finding, site: Site) -> Finding:
    """Code that draws pictures copies what it draws to the CPU: information, unless it runs each step.

    Reads, and copies of a few numbers, are information even there: the loop makes one picture in each step.
    """
    if finding.effect not in OF_THE_DEVICE:
        return finding
    if finding.heat is not Heat.WARM and finding.code not in _READS | FEW_NUMBERS:
        return finding
    module = site.model.module
    draws = bool(conventions.draws(module.name, module.packages))
    draws = draws or (not isinstance(site, FileSite) and is_in_drawing_function(site))
    return replace(finding, severity=Severity.INFO) if draws else finding


def _into_pictures(finding: Finding, site: Site) -> Finding:
    """Pictures are shown, written or sent by the CPU: copies into a list or dict of pictures are information."""
    if finding.code != _COPIES or isinstance(site, FileSite):
        return finding
    return replace(finding, severity=Severity.INFO) if joins_pictures(site) else finding


def _waits_once(finding: Finding) -> bool:
    """True if a place waits once when it runs, and is not known to run often."""
    return finding.effect in OF_THE_DEVICE and finding.heat is Heat.WARM and finding.code not in _MANY_WAITS


def _of_a_program(finding: Finding, site: Site) -> Finding:
    """A program calls its functions for a request, an image or a report, unless they are known to run each step.

    Information, if the code is in no loop. In the files that only programs use, a certain wait is reported.
    Answers by which the CPU goes on are information in loops, too, if the tensor is a guess: of 14 that were read, one
    was worth a change.
    """
    if isinstance(site, FileSite) or not _waits_once(finding) or _is_of_property(site):
        return finding
    is_guess = finding.confidence is not Confidence.HIGH
    if is_guess and finding.code in _DECIDES and serves_project(site):
        return replace(finding, severity=Severity.INFO)
    if repeats(site):
        return finding
    if site.model.module.is_program or (is_guess and _is_part_of_program(site)) or is_unreached(site):
        return replace(finding, severity=Severity.INFO)
    return finding


def _is_part_of_program(site: Site) -> bool:
    """True if the functions around a place belong to programs of the project alone, or compute their metrics.

    Not methods of a class whose base calls such methods in a loop, and not functions made inside another, which may be
    hooks.
    """
    model = site.model
    function = model.function(site.node)
    info = model.module.defined_by(function)
    if info is None or info.outer is not None or not model.serves_programs:
        return computes_metrics(model)
    owner = model.module.klass(info.owner) if info.owner else None
    return owner is None or not is_called_in_loops(model, owner.node)


def _of_an_evaluation(finding: Finding, site: Site) -> Finding:
    """A program that trains nothing copies arrays and a few numbers for its work, and selects results: information.

    Numbers that were read from the GPU, such as the last token, are reported: they need not leave it. So are positions
    that each iteration of a decoding copies.
    """
    if finding.code in (_COPIES, _TO_GPU):
        is_work = copies_for_evaluation(site)
    elif _is_position_of_decoding(finding, site):
        is_work = False
    elif finding.code in FEW_NUMBERS:
        is_work = selects_for_evaluation(site) and not _is_round_trip(site) and not _is_of_read(site)
    else:
        is_work = finding.code in (SELECTIONS, CACHE) and selects_for_evaluation(site)
    return replace(finding, severity=Severity.INFO) if is_work else finding


def _of_an_analysis(finding: Finding, site: Site) -> Finding:
    """Programs that evaluate or analyse read their results for the CPU, which takes little of their time: information.

    So are the copies of a loop that evaluates in another file which trains nothing.
    Not waits for each value of many, nor copies where one before or after the loop would do, nor waits of a loop that
    decodes.
    """
    if finding.effect not in OF_THE_DEVICE or finding.code in _MANY_WAITS | {CACHE}:
        return finding
    is_copy = finding.code in (_COPIES, _TO_GPU) and not _is_carried_back(site)
    if not (is_of_analysis(site) or (is_copy and is_of_evaluation(site))):
        return finding
    if _is_position_of_decoding(finding, site):
        return finding
    if finding.code == _COPIES:
        counts = isinstance(site, CallSite) and (
            whole_of(site) is not None or is_same_each_turn(site) or is_added_up(site)
        )
    elif finding.code in FEW_NUMBERS | {SELECTIONS}:
        counts = is_in_batch(site.model, site.node) or _is_round_trip(site) or _is_of_read(site)
    else:
        counts = _is_of_property(site) or (finding.code == _TO_GPU and feeds_batches(site))
    return (
        finding if counts or (finding.code != _COPIES and decodes(site)) else replace(finding, severity=Severity.INFO)
    )


def _is_position_of_decoding(finding: Finding, site: Site) -> bool:
    """True for a position that each iteration of a decoding copies."""
    return finding.code == _POSITIONS and finding.heat is Heat.HOT and is_decoded(site)


def _is_carried_back(site: Site) -> bool:
    """True if an expression copies a tensor to the CPU and back: `x.cpu()[order].cuda()`."""
    if isinstance(site, FileSite):
        return False
    copied = [node for node in walk(site.node) if isinstance(node, ast.Call) and last_name(node) in ("cpu", "numpy")]
    outer = (each for each in inside(site.model, site.node) if isinstance(each, ast.Call))
    moved = [each for each in (site.node, *outer) if isinstance(each, ast.Call) and last_name(each) in ("cuda", "to")]
    return bool(copied and moved)


def _is_of_read(site: Site) -> bool:
    """True if a name in a call is bound to a number that is read from a tensor: `token = int(logits.argmax())`."""
    if not isinstance(site, CallSite):
        return False
    model = site.model
    names = (node for given in site.node.args for node in walk(given) if isinstance(node, ast.Name))
    return any(_is_read(model, model.origins.of(name).node) for name in names)


def _is_read(model: Model, node: ast.AST) -> bool:
    """True for `int(x)` and `x.item()` of a tensor."""
    if not isinstance(node, ast.Call) or last_name(node) not in ("int", "float", "bool", "item", "tolist"):
        return False
    given = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if node.args else None
    return given is not None and model.value(given).tensor is not None


def _for_collective(finding: Finding, site: Site) -> Finding:
    """Numbers that a collective sums up must be on the GPU: information."""
    if finding.code in FEW_NUMBERS and carries_numbers(site):
        return replace(finding, severity=Severity.INFO)
    return finding


def _after_wait(finding: Finding, site: Site) -> Finding:
    """A selection right after another wait for the same mask takes little time: information. The other is reported."""
    if finding.code == SELECTIONS and isinstance(site, (SubscriptSite, CallSite)) and follows_wait(site):
        return replace(finding, severity=Severity.INFO)
    return finding


def _of_an_array(finding: Finding, site: Site) -> Finding:
    """An array that NumPy has just made must be copied: information, if it is not known to happen each step."""
    if finding.code == _TO_GPU and finding.heat is Heat.WARM and copies_array(site):
        return replace(finding, severity=Severity.INFO)
    return finding


def _beside_files(finding: Finding, site: Site) -> Finding:
    """A loop that reads a file in each iteration and trains nothing takes far longer than one wait: information."""
    if finding.effect in OF_THE_DEVICE and finding.code not in _MANY_WAITS and reads_files(site):
        return replace(finding, severity=Severity.INFO)
    return finding


def _for_files(finding: Finding, site: Site) -> Finding:
    """A function that writes results to a file, or draws them, and trains nothing needs them on the CPU: information.

    Of 15 such waits that were read, none was worth a change.
    """
    if finding.effect not in OF_THE_DEVICE or finding.code in _MANY_WAITS | {CACHE}:
        return finding
    is_work = writes_results(site) or (finding.code == _COPIES and draws_results(site))
    return replace(finding, severity=Severity.INFO) if is_work else finding


def _of_state(finding: Finding, site: Site) -> Finding:
    """The weights for a checkpoint must be copied: information, if it is not known to happen each step."""
    if finding.code == _COPIES and finding.heat is not Heat.HOT and copies_state(site):
        return replace(finding, severity=Severity.INFO)
    return finding


def _is_of_property(site: Site) -> bool:
    """True if a place is in a property, which other code reads without a call."""
    function = site.model.function(site.node)
    return any("property" in last_name(each) for each in getattr(function, "decorator_list", ()))


def _on_the_way_to_cpu(finding: Finding, site: Site) -> Finding:
    """A selection from results that the same function copies to the CPU: information, since the copy waits anyway."""
    if finding.code == SELECTIONS and not isinstance(site, FileSite) and site.model.demand.is_result(site.node):
        return replace(finding, severity=Severity.INFO)
    return finding


def _of_unknown_callers(finding: Finding, site: Site) -> Finding:
    """A copy to the CPU in code of unknown callers: information, if the tensor's device is a guess too.

    Calls in other files show how often the code runs, but not the device of its tensors.
    Not where one copy before a loop would do.
    """
    is_guess = finding.heat is not Heat.COLD and finding.confidence is not Confidence.HIGH
    if finding.code != _COPIES or not is_guess or not isinstance(site, CallSite):
        return finding
    if site.model.heat_in_file(site.node) is Heat.HOT:
        return finding
    if whole_of(site) is None and not is_same_each_turn(site):
        return replace(finding, severity=Severity.INFO)
    return finding


def _computed_in_numpy(finding: Finding, site: Site) -> Finding:
    """Outside of training, an array for NumPy must be copied: information, unless each step of an evaluation waits."""
    if finding.code != _COPIES or finding.heat is Heat.HOT or not isinstance(site, CallSite):
        return finding
    if whole_of(site) is None and site.model.in_numpy.needs(site.node):
        return replace(finding, severity=Severity.INFO)
    return finding


def _beside_the_steps(finding: Finding, site: Site) -> Finding:
    """Code before or after a loop over the steps runs once for all of them: information."""
    if isinstance(site, FileSite):
        return finding
    is_hot = finding.heat is Heat.HOT and site.heat is Heat.HOT
    if is_hot and _waits_once(replace(finding, heat=Heat.WARM)) and is_beside_epoch(site):
        return replace(
            finding, heat=Heat.WARM, severity=Severity.INFO, message=finding.message.removesuffix(EVERY_STEP)
        )
    if not _waits_once(finding):
        return finding
    around = next(loops_around(site.model, site.node), None) or site.model.function(site.node)
    is_beside = around is not None and holds_steps(site.model, around) and not is_step(site.model, around)
    return replace(finding, severity=Severity.INFO) if is_beside else finding


def _of_dead_code(finding: Finding, site: Site) -> Finding:
    """Code that no program of the project reaches does not run, whatever its name says."""
    is_shown = Severity.INFO is not finding.severity and Confidence.LOW is not finding.confidence
    if not is_shown or finding.heat is Heat.COLD or not does_not_run(site, finding.span.line):
        return finding
    return replace(finding, heat=Heat.COLD, message=finding.message.removesuffix(EVERY_STEP))


_POLICIES: tuple[Callable[[Finding, Site], Finding | None], ...] = (
    where_syncs_are_allowed,
    _while_a_module_is_made,
    _where_data_are_prepared,
    in_other_code_of_the_cpu,
    in_a_program_without_a_gpu,
    _for_half_precision_only,
    _of_a_few_numbers,
    _of_a_program,
    _of_an_evaluation,
    _of_an_analysis,
    _for_collective,
    for_missing_argument,
    _beside_files,
    _for_files,
    _of_state,
    beside_evaluation,
    outside_training,
    _after_wait,
    counted,
    _of_an_array,
    _needed_on_cpu,
    _where_pictures_are_drawn,
    _into_pictures,
    as_text,
    behind_test,
    _on_the_way_to_cpu,
    _of_unknown_callers,
    _computed_in_numpy,
    _beside_the_steps,
    in_sync_free_code,
    _of_dead_code,
)
