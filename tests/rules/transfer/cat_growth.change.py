"""A tensor that grows, and a list."""

import torch


def gather(parts, turns):
    found = torch.zeros(1, 3, device="cuda")
    for part in parts:
        found = torch.cat([found, part], dim=0)
        turns.append(len(turns))
    return found


def case_values():
    weight = torch.ones(2, 3, device="cuda", requires_grad=True)
    found = gather([weight, weight * 2, weight], [])
    found.sum().backward()
    return {"found": found, "weight": weight, "none": gather([], [])}


def case_misfit():
    turns = []
    try:
        gather([torch.ones(2, width, device="cuda") for width in (3, 4, 3)], turns)
    except RuntimeError as error:
        return {"turns": turns, "misfit": "Sizes of tensors must match" in str(error)}
    return {}


def change_misfit(turns):
    """shapes that do not fit raise after the loop"""
    assert turns == ([0], [0, 1, 2])


def kept_the_same_buffer(buffer: torch.Tensor, parts):
    found = torch.zeros(0, device="cuda")
    for part in parts:
        buffer.copy_(part)
        found = torch.cat([found, buffer])
    return found


def kept_what_is_written_to_later(parts):
    found = torch.zeros(0, device="cuda")
    for part in parts:
        y = part * 2
        found = torch.cat([found, y])
        y[0] = 1
    return found


def kept_a_view_of_what_is_written_to(parts, sums: torch.Tensor):
    found = torch.zeros(0, device="cuda")
    for part in parts:
        row = sums[:2]
        sums += part
        found = torch.cat([found, row])
    return found
