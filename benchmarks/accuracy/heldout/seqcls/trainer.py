"""A trainer with callbacks, in the manner of the big libraries."""
import collections
import math
import random
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler, SequentialSampler


class EvalPrediction(NamedTuple):
    predictions: np.ndarray
    label_ids: np.ndarray


class PredictionOutput(NamedTuple):
    predictions: np.ndarray
    label_ids: Optional[np.ndarray]
    metrics: Dict[str, float]


@dataclass
class TrainingArguments:
    per_device_train_batch_size: int = 16
    per_device_eval_batch_size: int = 32
    gradient_accumulation_steps: int = 2
    learning_rate: float = 2e-3
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    num_train_epochs: int = 3
    warmup_ratio: float = 0.1
    logging_steps: int = 10
    eval_steps: int = 20
    seed: int = 42
    no_cuda: bool = False
    logging_nan_inf_filter: bool = True
    label_smoothing_factor: float = 0.0
    load_best_model_at_end: bool = True
    metric_for_best_model: str = "eval_accuracy"

    @property
    def device(self) -> torch.device:
        return torch.device("cuda" if torch.cuda.is_available() and not self.no_cuda else "cpu")


@dataclass
class TrainerState:
    epoch: float = 0.0
    global_step: int = 0
    max_steps: int = 0
    best_metric: Optional[float] = None
    log_history: List[Dict[str, float]] = field(default_factory=list)


@dataclass
class TrainerControl:
    should_training_stop: bool = False
    should_log: bool = False
    should_evaluate: bool = False


class TrainerCallback:
    def on_train_begin(self, args, state, control, **kwargs):
        pass

    def on_step_end(self, args, state, control, **kwargs):
        pass

    def on_evaluate(self, args, state, control, **kwargs):
        pass

    def on_log(self, args, state, control, logs=None, **kwargs):
        pass


class DefaultFlowCallback(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        control.should_log = state.global_step % args.logging_steps == 0
        control.should_evaluate = state.global_step % args.eval_steps == 0
        if state.global_step >= state.max_steps:
            control.should_training_stop = True


class PrinterCallback(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in logs.items()})


class EarlyStoppingCallback(TrainerCallback):
    def __init__(self, early_stopping_patience: int = 1, early_stopping_threshold: float = 0.0):
        self.patience, self.threshold = early_stopping_patience, early_stopping_threshold
        self.counter = 0

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        value = metrics.get(args.metric_for_best_model)
        if state.best_metric is None or value > state.best_metric + self.threshold:
            self.counter = 0
        else:
            self.counter += 1
        if self.counter >= self.patience:
            control.should_training_stop = True


def set_seed(seed: int):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def nested_detach(tensors):
    if isinstance(tensors, (list, tuple)):
        return type(tensors)(nested_detach(t) for t in tensors)
    return tensors.detach()


def nested_numpify(tensors):
    if isinstance(tensors, (list, tuple)):
        return type(tensors)(nested_numpify(t) for t in tensors)
    return tensors.cpu().numpy()


class Trainer:
    def __init__(
        self,
        model: nn.Module,
        args: TrainingArguments,
        data_collator: Callable,
        train_dataset: Optional[Dataset] = None,
        eval_dataset: Optional[Dataset] = None,
        compute_metrics: Optional[Callable[[EvalPrediction], Dict]] = None,
        callbacks: Optional[List[TrainerCallback]] = None,
    ):
        set_seed(args.seed)
        self.model = model.to(args.device)
        self.args = args
        self.data_collator = data_collator
        self.train_dataset, self.eval_dataset = train_dataset, eval_dataset
        self.compute_metrics = compute_metrics
        self.callbacks = [DefaultFlowCallback(), PrinterCallback(), *(callbacks or [])]
        self.state, self.control = TrainerState(), TrainerControl()
        self.optimizer = self.lr_scheduler = None
        self._best_state = None

    def call_event(self, event: str, **kwargs):
        for callback in self.callbacks:
            getattr(callback, event)(self.args, self.state, self.control, model=self.model, **kwargs)

    def get_dataloader(self, dataset: Dataset, train: bool) -> DataLoader:
        size = self.args.per_device_train_batch_size if train else self.args.per_device_eval_batch_size
        sampler = RandomSampler(dataset) if train else SequentialSampler(dataset)
        pin = self.args.device.type == "cuda"
        return DataLoader(dataset, batch_size=size, sampler=sampler, collate_fn=self.data_collator, pin_memory=pin)

    def create_optimizer_and_scheduler(self, num_training_steps: int):
        decay = [p for n, p in self.model.named_parameters() if p.ndim > 1 and "norm" not in n]
        rest = [p for n, p in self.model.named_parameters() if not (p.ndim > 1 and "norm" not in n)]
        groups = [{"params": decay, "weight_decay": self.args.weight_decay}, {"params": rest, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=self.args.learning_rate)
        warmup = math.ceil(num_training_steps * self.args.warmup_ratio)

        def lr_lambda(current_step: int):
            if current_step < warmup:
                return float(current_step) / float(max(1, warmup))
            return max(0.0, float(num_training_steps - current_step) / float(max(1, num_training_steps - warmup)))

        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lr_lambda)

    def _prepare_inputs(self, inputs: Dict[str, Union[torch.Tensor, Any]]) -> Dict[str, Union[torch.Tensor, Any]]:
        for k, v in inputs.items():
            if isinstance(v, torch.Tensor):
                inputs[k] = v.to(self.args.device)
        return inputs

    def compute_loss(self, model, inputs, return_outputs=False):
        outputs = model(**inputs)
        loss = outputs["loss"]
        return (loss, outputs) if return_outputs else loss

    def training_step(self, model: nn.Module, inputs) -> torch.Tensor:
        model.train()
        inputs = self._prepare_inputs(inputs)
        loss = self.compute_loss(model, inputs) / self.args.gradient_accumulation_steps
        loss.backward()
        return loss.detach()

    def train(self):
        args, state, control = self.args, self.state, self.control
        loader = self.get_dataloader(self.train_dataset, train=True)
        updates = max(len(loader) // args.gradient_accumulation_steps, 1)
        state.max_steps = updates * args.num_train_epochs
        self.create_optimizer_and_scheduler(state.max_steps)
        self.call_event("on_train_begin")
        tr_loss = torch.tensor(0.0).to(args.device)
        self._total_loss_scalar, self._logged_at = 0.0, 0
        start = time.time()
        self.model.zero_grad()
        for epoch in range(args.num_train_epochs):
            for step, inputs in enumerate(loader):
                tr_loss_step = self.training_step(self.model, inputs)
                if args.logging_nan_inf_filter and (torch.isnan(tr_loss_step) or torch.isinf(tr_loss_step)):
                    tr_loss += tr_loss / (1 + state.global_step - self._logged_at)
                else:
                    tr_loss += tr_loss_step
                if (step + 1) % args.gradient_accumulation_steps != 0:
                    continue
                grad_norm = nn.utils.clip_grad_norm_(self.model.parameters(), args.max_grad_norm)
                self.optimizer.step()
                self.lr_scheduler.step()
                self.optimizer.zero_grad()
                state.global_step += 1
                state.epoch = epoch + (step + 1) / len(loader)
                self.call_event("on_step_end")
                self._maybe_log_evaluate(tr_loss, grad_norm)
                if control.should_training_stop:
                    break
            if control.should_training_stop:
                break
        self._total_loss_scalar += tr_loss.item()
        if args.load_best_model_at_end and self._best_state is not None:
            self.model.load_state_dict(self._best_state)
        runtime = time.time() - start
        train_loss = self._total_loss_scalar / max(state.global_step, 1)
        self.log({"train_runtime": runtime, "train_loss": train_loss})
        return state.global_step, train_loss

    def _maybe_log_evaluate(self, tr_loss, grad_norm):
        if self.control.should_log:
            tr_loss_scalar = tr_loss.item()
            tr_loss -= tr_loss
            logs = {"loss": round(tr_loss_scalar / (self.state.global_step - self._logged_at), 4)}
            logs["grad_norm"] = grad_norm.item() if isinstance(grad_norm, torch.Tensor) else grad_norm
            logs["learning_rate"] = self.lr_scheduler.get_last_lr()[0]
            self._total_loss_scalar += tr_loss_scalar
            self._logged_at = self.state.global_step
            self.log(logs)
        if self.control.should_evaluate:
            metrics = self.evaluate()
            self.call_event("on_evaluate", metrics=metrics)
            value = metrics[self.args.metric_for_best_model]
            if self.state.best_metric is None or value > self.state.best_metric:
                self.state.best_metric = value
                self._best_state = {k: v.detach().cpu().clone() for k, v in self.model.state_dict().items()}

    def log(self, logs: Dict[str, float]):
        logs["epoch"] = round(self.state.epoch, 2)
        self.state.log_history.append({**logs, "step": self.state.global_step})
        self.call_event("on_log", logs=logs)

    def prediction_step(self, model, inputs) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad():
            loss, outputs = self.compute_loss(model, inputs, return_outputs=True)
        return loss.mean().detach(), nested_detach(outputs["logits"]), nested_detach(inputs["labels"])

    def prediction_loop(self, dataset, description: str, prefix: str = "eval") -> PredictionOutput:
        self.model.eval()
        host = collections.defaultdict(list)
        losses = None
        for inputs in self.get_dataloader(dataset, train=False):
            loss, logits, labels = self.prediction_step(self.model, inputs)
            loss = loss.repeat(len(labels))
            losses = loss if losses is None else torch.cat((losses, loss), dim=0)
            host["preds"].append(nested_numpify(logits))
            host["labels"].append(nested_numpify(labels))
        preds, label_ids = np.concatenate(host["preds"]), np.concatenate(host["labels"])
        metrics = self.compute_metrics(EvalPrediction(preds, label_ids)) if self.compute_metrics else {}
        metrics["loss"] = losses.mean().item()
        return PredictionOutput(preds, label_ids, {f"{prefix}_{k}": v for k, v in metrics.items()})

    def evaluate(self) -> Dict[str, float]:
        output = self.prediction_loop(self.eval_dataset, description="Evaluation")
        self.log(dict(output.metrics))
        return output.metrics

    def predict(self, dataset: Dataset) -> PredictionOutput:
        return self.prediction_loop(dataset, description="Prediction", prefix="test")

    def describe(self) -> Dict[str, Any]:
        return asdict(self.args)
