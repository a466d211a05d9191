"""Names that mean something by convention."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from perflint.semantics.facts import conventions, rule_conventions
from perflint.semantics.facts.concepts import Entry, Judged, Table, concept, concept_of, tables

HOT = ("each-step-method", "each-step-part", "each-step-function", "each-step-stand-in")
COLD = ("set-up", "rarely")


def test_entries_are_names_or_parts_of_names_or_patterns() -> None:
    found = concept_of("any", {"loads": "load_* weights", "ends": "*_end *mid* /\\w+_(a|\n b)/"})
    names = ("load_all", "weights", "the_end", "amide", "x_a", "x_b", "load", "x_c", "endless")
    entries = [entry for entry in map(found.of, names) if entry is not None]
    assert [entry.why for entry in entries] == ["loads"] * 2 + ["ends"] * 4
    assert [entry.text for entry in entries[:-1]] == ["load_*", "weights", "*_end", "*mid*", "/\\w+_(a|b)/"]
    assert {entry.concept for entry in entries} == {"any"}
    assert found.of_any(("x", "weights")) == Entry("any", "weights", "loads") and found.of_any(("x", "y")) is None
    assert found.judged is None


@pytest.mark.parametrize("text", ["load load", "**load", "a.b", "load_* load_*", "*"])
def test_an_entry_must_have_one_meaning(text: str) -> None:
    with pytest.raises(ValueError, match=r"load|a\.b|\*"):
        concept_of("any", {"loads": text})


def test_counts_of_judged_findings() -> None:
    counts: dict[str, int | str] = {"true": 3, "of": 4, "date": "2026-11"}
    assert concept_of("any", {"loads": "load", "judged": counts}).judged == Judged(3, 4, "2026-11")


COUNTS: list[dict[str, int | str]] = [
    {"true": 3, "of": 4},
    {"true": 5, "of": 4, "date": "2026-11"},
    {"true": 0, "of": 0, "date": "2026-11"},
    {"true": 3, "of": 4, "date": "2026-13"},
    {"true": "3", "of": 4, "date": "2026-11"},
    {"true": 3, "of": 4, "date": "2026-11", "by": 1},
]


@pytest.mark.parametrize("counts", COUNTS)
def test_counts_must_be_right(counts: dict[str, int | str]) -> None:
    with pytest.raises(ValueError, match=r"judged|\d"):
        concept_of("any", {"loads": "load", "judged": counts})


@pytest.mark.parametrize("table", [{"judged": "load"}, {"loads": {"true": 1, "of": 1, "date": "2026-11"}}])
def test_only_counts_are_called_judged(table: Table) -> None:
    with pytest.raises(ValueError, match=r"judged|loads"):
        concept_of("any", table)


@pytest.mark.parametrize("name", tables())
def test_each_concept_can_be_read_and_gives_reasons(name: str) -> None:
    made = concept(name)
    kinds = (made.names, made.prefixes, made.suffixes, made.parts, made.patterns)
    reasons = {entry.why for kind in kinds for entry in kind.values()}
    assert all(map(re.compile, made.patterns))
    assert reasons == set(tables()[name]) - {"judged"}
    assert all(entry.concept == name for kind in kinds for entry in kind.values())
    # "by its name, it draws a picture"
    assert all(reason.split()[0].rstrip(",").endswith("s") for reason in reasons)


def test_no_name_is_both_hot_and_cold() -> None:
    cold = {name for each in COLD for name in concept(each).names}
    assert cold.isdisjoint(name for each in HOT for name in concept(each).names)


def test_words_of_names() -> None:
    assert conventions.is_model("ema_model") and conventions.is_model("netG")
    assert not conventions.is_model("get_model") and not conventions.is_model("model_name")
    assert conventions.counts_steps("global_step") and not conventions.counts_steps("micro_step")
    assert conventions.prepares_data("project.data.images") and not conventions.prepares_data("project.metadata")
    assert conventions.draws("tools.viz_lanes", ["torch", "matplotlib"]) and conventions.draws(
        "p.grpo_viz~3", ["plotly"]
    )
    assert not conventions.draws("tools.viz_lanes", ["torch"]) and not conventions.draws("p.vision", ["matplotlib"])
    assert conventions.is_optimizer("Optimizer_G") and not conventions.is_optimizer("option")


WORDS = [
    (conventions.is_other_framework, "tensorflow jax", "torch cupy numpy"),
    (conventions.has_other_tensors, "tensorflow cupy", "torch numpy"),
    (conventions.has_other_arrays, "tensorflow cupy numpy", "torch"),
    (conventions.has_environments, "gym gymnasium", "torch"),
    (conventions.compiles_kernels, "triton numba", "torch"),
    (conventions.makes_kernel, "njit autotune", "compile"),
    (conventions.gets_batch, "forward training_step", "forward_step backward"),
    (conventions.is_batch_hook, "on_train_batch_end", "on_train_epoch_end train_batch"),
    (conventions.is_evaluation_hook, "validation_step", "training_step"),
    (conventions.is_device, "device DEVICE base_device", "device_map devices"),
    (
        conventions.gives_device,
        "dev get_device_id _get_device current_device device",
        "to_device get_device_name is_device",
    ),
    (conventions.is_loader, "loader data_loader loader_eval dataloader_train", "loader_name loaders image_loader_fn"),
    (conventions.holds_loaders, "loaders dataloaders", "loader"),
    (
        conventions.gives_loader,
        "get_train_loader build_dataloader val_dataloader",
        "image_loader loader get_loader_name",
    ),
    (conventions.belongs_to_training, "DETRLoss HungarianMatcher train_epoch", "Trainee lossless Decoder"),
    (
        conventions.makes_bytes,
        "save_image write_volume_slices imshow plot_mask_pairs",
        "show image save_state draw_samples",
    ),
    (conventions.is_on_cpu, "cpu_x x_cpu CPU", "is_cpu to_cpu cpu_or_gpu num_cpus cpuset"),
    (
        conventions.works_on_cpu,
        "compute_cpu_loss adam_cpu cpu_nms",
        "to_cpu copy_cpu cpu_offload get_cpu_state x_to_cpu",
    ),
]


@pytest.mark.parametrize(("ask", "yes", "no"), WORDS)
def test_names_of_values_and_of_what_gives_them(ask: Callable[[str], Entry | None], yes: str, no: str) -> None:
    assert [name for name in yes.split() if not ask(name)] == []
    assert [name for name in no.split() if ask(name)] == []


RULE_WORDS = [
    (rule_conventions.names_evaluation, "evalOneEpoch run_validation predict", "evaluator_of lossless train"),
    (rule_conventions.names_generation, "sample_images generate", "resampled"),
    (rule_conventions.names_data, "train_loader batches", "loading"),
    (rule_conventions.holds_positions, "index sorted_indices", "index_mask keep"),
    (conventions.belongs_to_training, "train_epoch loss", "trainable is_valid"),
    (conventions.computes_gradients, "train_epoch optimize", "loss fit is_training"),
    (conventions.is_optimizer_or_scaler, "d_optim loss_scaler", "optimizer_name"),
    (rule_conventions.makes_optimizer, "SGD build_optimizer", "build_model"),
    (rule_conventions.is_scheduler, "lr_scheduler", "schedule_of"),
    (conventions.leaves_optimizer, "save_checkpoint print", "step update"),
    (rule_conventions.feeds_others, "encode_text teacher", "predict"),
    (rule_conventions.returns_loss, "training_step", "validation_step"),
    (conventions.works_on_model, "save_model build", "training forward"),
    (rule_conventions.is_no_model_class, "torch.nn.CrossEntropyLoss Compose", "Lossless Model"),
    (rule_conventions.runs_its_model, "forward forward_features", "forward_hooks"),
    (rule_conventions.gives_result, "encode_image get_image", "get_image_paths encode image"),
    (rule_conventions.computes_loss, "criterion mse_loss loss_fn", "loss_scaler scale_loss fn"),
    (rule_conventions.samples_dropout, "mc_predict DeepEnsemble", "predict"),
    (rule_conventions.updates_weights, "soft_update copy_params", "predict"),
    (rule_conventions.freezes, "freeze_backbone requires_grad RequiresGrad", "free"),
    (rule_conventions.suspends_autograd, "torch_no_grad inference_mode", "grad"),
    (rule_conventions.is_evaluation_context, "eval_mode inferring", "value"),
    (rule_conventions.tries_out, "test_x debug", "train"),
    (rule_conventions.is_on_purpose, "set_seed deterministic test", "train"),
    (rule_conventions.is_image, "img real_images", "imgs2 image2 imagery"),
    (rule_conventions.is_model_of_images, "UNet net_d my_network", "netG planets"),
    (rule_conventions.frees_memory, "empty_cache gpu_memory_used get_device_name print", "forward clear"),
    (rule_conventions.holds_parameters, "params model_params grads", "params_of parameter"),
]


@pytest.mark.parametrize(("ask", "yes", "no"), RULE_WORDS)
def test_names_that_rules_ask_about(ask: Callable[[str], Entry | None], yes: str, no: str) -> None:
    assert [name for name in yes.split() if not ask(name)] == []
    assert [name for name in no.split() if ask(name)] == []


def test_each_concept_is_asked_for() -> None:
    asked = {
        name
        for module in (conventions, rule_conventions)
        for name in re.findall(r'concept\("([\w-]+)"\)', Path(str(module.__file__)).read_text("utf-8"))
    }
    assert asked == set(tables())
