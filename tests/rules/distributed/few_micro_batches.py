"""Schedules of pipelines."""

from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

STAGES = 8


def build(module, rank: int, device):
    stage = PipelineStage(module, rank, 8, device)
    return ScheduleGPipe(stage, n_microbatches=4)  # error: TPF932


def by_position(module, rank: int, device):
    return Schedule1F1B(PipelineStage(module, stage_index=rank, num_stages=STAGES, device=device), 2)  # error: TPF932


class Trainer:
    def __init__(self, module, rank: int, device):
        self.stage = PipelineStage(module, rank, 16, device)
        self.schedule = ScheduleGPipe(self.stage, 8)  # error: TPF932


# Look-alikes


def enough(module, rank: int, device):
    return Schedule1F1B(PipelineStage(module, rank, 8, device), n_microbatches=32)


def as_many(module, rank: int, device):
    return Schedule1F1B(PipelineStage(module, rank, 4, device), n_microbatches=4)


def as_configured(module, rank: int, device, stages: int, batches: int):
    return Schedule1F1B(PipelineStage(module, rank, stages, device), n_microbatches=batches)


def of_another(stage):
    return ScheduleGPipe(stage, n_microbatches=2)


def only_a_stage(module, rank: int, device):
    return PipelineStage(module, rank, 8, device)
