"""Results of a model that a loop copies to the CPU one by one."""

import numpy as np
import torch
from torch import nn


def batches():
    return [torch.arange(6.0).view(2, 3) + i for i in range(3)]


def predict(model: nn.Module, loader):
    scores, labels = [], []
    arrays = []
    with torch.no_grad():
        for x in loader:
            y = model(x.cuda()).view(-1, 2)
            scores.append(y.cpu())
            labels.append(y.argmax(1).to("cpu"))
            arrays.append(y.softmax(1).double().cpu().numpy())
    return scores, labels, [each.tolist() for each in arrays]


def case_lists():
    model = nn.Linear(3, 2).cuda()
    return {"some": predict(model, batches()), "none": predict(model, [])}


def with_graph(model: nn.Module, loader):
    kept = []
    dropped = []
    for x in loader:
        y = model(x.cuda()).view(-1, 2)
        kept += [y.cpu()]
        dropped.append(y.cpu().detach())
    return kept, dropped


def case_gradients():
    model = nn.Linear(3, 2).cuda()
    kept, dropped = with_graph(model, batches())
    torch.cat(kept).square().sum().backward()
    return {"model": model, "kept": kept, "requires": [each.requires_grad for each in dropped]}


def changing(model: nn.Module, loader):
    outs = []
    for x in loader:
        y = model(x.cuda()).view(-1, 2)
        outs.append(y.cpu())
        y.mul_(0)
    return outs


def case_written_afterwards():
    with torch.no_grad():
        return {"outs": changing(nn.Linear(3, 2).cuda(), batches())}


def copied(tensors, device: str):
    outs = []
    for x in tensors:
        x = x.view(2, 3).to(device)
        outs.append(x.cpu())
        x.mul_(0)
    return outs


def case_on_the_host():
    return {"outs": copied(batches(), "cpu"), "there": copied(batches(), "cuda")}


def change_on_the_host(outs):
    """A tensor that is on the CPU already is copied, so that a later write to it does not show in the list"""
    assert all(not each.any() for each in outs[0]) and all(each.any() for each in outs[1])


def kept_where_the_list_is_read(model: nn.Module, loader):
    outs, first = [], [torch.zeros(2)]
    for x in loader:
        outs.append(model(x.cuda()).view(-1, 2).cpu())
        if len(outs) > 10:
            break
    for x in loader:
        first.append(model(x.cuda()).view(-1, 2).cpu())
    return outs, first


def kept_where_several_are_added(model: nn.Module, loader, more):
    outs = []
    for x in loader:
        y = model(x.cuda()).view(-1, 2)
        outs += [y.cpu(), more]
    pairs = []
    for x in loader:
        pairs += [(x, model(x.cuda()).view(-1, 2).cpu())]
    return outs, pairs


def kept_where_others_have_the_list(model: nn.Module, loader, log):
    outs = []
    log.outs = outs
    for x in loader:
        outs.append(model(x.cuda()).view(-1, 2).cpu())

    def mean():
        return torch.cat(more).mean()

    more = []
    for x in loader:
        more.append(model(x.cuda()).view(-1, 2).cpu())
    return mean


def kept_where_images_may_not_fit(model: nn.Module, loader):
    images = []
    for x in loader:
        y = model(x.cuda()).view(-1, 3, 64, 64)
        images.append(y.cpu())
    return images


def kept_where_dimensions_are_unknown(model: nn.Module, loader):
    outs = []
    for x in loader:
        outs.append(model(x.cuda()).cpu())
    return outs


def kept_where_memory_is_freed(model: nn.Module, loader):
    outs = []
    for x in loader:
        outs.append(model(x.cuda()).view(-1, 2).cpu())
        torch.cuda.empty_cache()
    return outs


def kept_where_a_stream_computes(model: nn.Module, loader, stream: torch.cuda.Stream):
    outs = []
    for x in loader:
        with torch.cuda.stream(stream):
            outs.append(model(x.cuda()).view(-1, 2).cpu())
    return outs


def kept_where_errors_are_handled(model: nn.Module, loader):
    outs = []
    try:
        for x in loader:
            outs.append(model(x.cuda()).view(-1, 2).cpu())
    except RuntimeError:
        pass
    return outs


def kept_where_one_copy_before_the_loop_is_better(model: nn.Module, x: torch.Tensor):
    y = model(x.cuda()).view(-1, 2)
    rows = []
    for i in range(len(y)):
        rows.append(y[i].cpu())
    return rows


def kept_where_more_is_made_of_it(model: nn.Module, loader, k: int):
    outs = []
    for x in loader:
        outs.append(np.sort(model(x.cuda()).view(-1, 2).cpu().numpy()))
        k += 1
    tops = []
    for x in loader:
        tops.append(model(x.cuda()).view(-1, 2).cpu().topk(k))
    return outs, tops
