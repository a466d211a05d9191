"""A checkpoint that is read to the host instead of the device."""

import io

import torch
from torch import nn


def case_other_things():
    model = nn.Linear(3, 2).cuda()
    file = io.BytesIO()
    written = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.ones(3, device="cuda")).sum().backward()
    written.step()
    torch.save(dict(optimizer=written.state_dict(), average=torch.ones(2)), file)
    file.seek(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    state = torch.load(file, map_location="cuda")
    optimizer.load_state_dict(state["optimizer"])
    moments = [one["exp_avg"] for one in optimizer.state.values()]
    steps = [one["step"] for one in optimizer.state.values()]
    return {"average": state["average"], "moments": moments, "steps": steps}


def change_other_things(average, steps):
    """everything else that is read from the checkpoint is on the CPU then"""
    assert average[0].device.type == "cuda" and average[1].device.type == "cpu"
    assert torch.equal(average[0].cpu(), average[1])
    assert {step.device.type for step in steps[0]} == {"cuda"} and {step.device.type for step in steps[1]} == {"cpu"}


def kept_where_a_tensor_is_saved():
    model = nn.Linear(3, 2).cuda()
    file = io.BytesIO()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    torch.save({"optimizer": optimizer.state_dict(), "temperature": torch.ones(2)}, file)
    file.seek(0)
    state = torch.load(file, map_location="cuda")
    optimizer.load_state_dict(state["optimizer"])
    return state["temperature"]
