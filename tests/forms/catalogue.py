"""All forms, by the name of the function that writes them."""

from __future__ import annotations

from tests.forms import locals, loops, moved, objects, order, spelling
from tests.forms.program import Form

FORMS: tuple[Form, ...] = (
    locals.operands_with_names,
    locals.operands_all_with_names,
    locals.tests_with_names,
    locals.names_inlined,
    locals.results_in_attributes,
    locals.results_in_dicts,
    locals.results_in_tuples,
    locals.results_in_unpacked_tuples,
    locals.results_in_data_classes,
    moved.loops_in_functions,
    moved.loops_in_methods,
    moved.loops_in_nested_functions,
    moved.loops_in_files,
    moved.bodies_in_functions,
    moved.bodies_in_methods,
    moved.bodies_in_nested_functions,
    moved.bodies_in_files,
    moved.script_in_main,
    moved.definitions_in_files,
    objects.objects_by_factories,
    objects.arguments_by_constructors,
    objects.names_bound_before,
    objects.chains_as_bindings,
    objects.moves_as_statements,
    objects.moves_in_chains,
    objects.moves_by_to,
    objects.moves_by_cuda,
    loops.loops_with_enumerate,
    loops.loops_with_tqdm,
    loops.loops_with_zip,
    loops.loops_with_while,
    loops.ranges_with_while,
    order.definitions_reversed,
    order.definitions_shuffled,
    order.decorators_as_calls,
    order.calls_as_decorators,
    spelling.imports_by_other_names,
    spelling.members_imported,
    spelling.arguments_by_keyword,
    spelling.arguments_by_position,
)
