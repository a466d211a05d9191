"""Sums that are read in each iteration, and after the loop."""

import sys
import types

import torch
from torch import nn
from torch.utils.data import DataLoader


class OneProcess:
    """Accelerate's object in a program of one process: it gathers nothing."""

    def __init__(self):
        self.gathered = []

    def gather(self, tensor):
        self.gathered.append(len(self.gathered))
        return tensor


# The library is not installed where the tests run.
sys.modules["accelerate"] = types.ModuleType("accelerate")
sys.modules["accelerate"].Accelerator = OneProcess
from accelerate import Accelerator  # noqa: E402


def epoch(model: nn.Module, loader: DataLoader, look):
    total = 0.0
    correct = 0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        total += loss.item() * len(y)
        correct += (model(x.cuda()).argmax(dim=1) == y.cuda()).sum().item()
        look()
    return total, correct


def batches():
    return [(torch.randn(4, 3), torch.tensor([0, 1, 1, 0])) for _ in range(3)]


def case_sums():
    model = nn.Linear(3, 2).cuda()
    return {"sums": epoch(model, batches(), lambda: None), "model": model}


def change_sums(waits):
    """`total += loss.item()` becomes `total += loss.detach().double()`, with `total = float(total)` after the loop"""
    assert waits[1] < waits[0]


def case_no_turn():
    return {"sums": epoch(nn.Linear(3, 2).cuda(), [], lambda: None)}


def case_seen():
    kinds = []

    def look():
        kinds.append(type(sys._getframe(1).f_locals["total"]).__name__)

    return {"sums": epoch(nn.Linear(3, 2).cuda(), batches(), look), "kinds": kinds}


def change_seen(kinds, waits):
    """a debugger sees a tensor"""
    assert kinds == (["float"] * 3, ["Tensor"] * 3)


def losses(model: nn.Module, loader: DataLoader):
    total = 0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        total += loss.item()
    return total


def case_began_as_a_whole_number():
    model = nn.Linear(3, 2).cuda()
    return {"none": str(losses(model, [])), "some": losses(model, batches())}


def change_began_as_a_whole_number(none, waits):
    """A sum of floats that began as `0` is `0.0` if the loop has no iterations"""
    assert none == ("0", "0.0")


def kept_where_others_read_the_sum(model: nn.Module, loader: DataLoader):
    global total
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        total += loss.item()


class Average:
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def averages(model: nn.Module, loader: DataLoader, narrow: bool):
    losses = Average()
    accuracy = Average()
    for step, (x, y) in enumerate(loader):
        output = model(x.cuda())
        loss = nn.functional.cross_entropy(output, y.cuda())
        right = (output.argmax(dim=1) == y.cuda()).float().mean(0, keepdim=narrow)
        loss.backward()
        losses.update(loss.item(), len(y))
        accuracy.update(right.item(), len(y))
        if step % 20 == 0:
            print(f"{losses.val:.4f} ({losses.avg:.6f})", "{a.val:.2f} {a.avg}".format(a=accuracy))
    return losses.avg, accuracy.avg, losses.count


def case_averages():
    model = nn.Linear(3, 2).cuda()
    return {"averages": [averages(model, batches() * 4, narrow) for narrow in (False, True)], "model": model}


def change_averages(waits):
    """`meter.update(loss.item(), n)` becomes `meter.update(loss.detach().double(), n)` … `.reshape(())` follows if the tensor may have dimensions. … The averages and the texts are the same"""
    assert waits[1] < waits[0]


def logged(model: nn.Module, loader: DataLoader):
    running = 0.0
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        running += loss.item()
        if step % 20 == 19:
            print("%d %.6f" % (step, running / 20), running)
            running = 0.0
    return running


def case_logged():
    return {"left": logged(nn.Linear(3, 2).cuda(), batches() * 14)}


def change_logged(waits):
    """If something in the loop uses the sum in few iterations, as for a log every 100 steps, it gets `float(total)`"""
    assert waits[1] < waits[0]


def numbers(model: nn.Module, loader: DataLoader):
    losses, counts = [], []
    parts = []
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        losses.append(loss.item())
        parts += [(x.cuda() > 0.5).float().mean().item()]
        counts.append((y.cuda() > 0).sum().item())
        loss.backward()
        with torch.no_grad():
            loss.zero_()
    return losses, counts, parts


def case_lists():
    model = nn.Linear(3, 2).cuda()
    return {"lists": [numbers(model, batches()), numbers(model, [])], "model": model}


def change_lists(waits):
    """`losses.append(loss.item())` becomes `losses.append(loss.detach().clone())` … The numbers are the same"""
    assert waits[1] < waits[0]


def described(x: torch.Tensor, log: list):
    x = x.cuda()
    low = torch.min(x).detach().item()
    mean = torch.mean(x).detach().item()
    high = torch.max(x).detach().item()
    log.append((x.float().std().item(), int(x.float().min() * 3), x.float().max().item()))
    return {"low": low, "mean": mean, "high": high}


def case_read_together():
    log = []
    return {"numbers": [described(torch.randn(5).to(dtype), log) for dtype in (torch.float32, torch.float16)], "log": log}


def change_read_together(waits):
    """one `torch.stack([…]).tolist()` in front of them"""
    assert waits[1] < waits[0]


def case_read_together_with_gradients():
    x = torch.randn(5, requires_grad=True)
    numbers = described(x * 2, [])
    x.sum().backward()
    return {"numbers": numbers, "x": x}


def change_read_together_with_gradients(waits):
    """one `torch.stack([…]).tolist()` in front of them"""
    assert waits[1] < waits[0]


def flags(x: torch.Tensor):
    x = x.cuda()
    return (x > 0).any().item(), (x > 1).any().item(), (x < 0).any().item()


def case_truth_values_read_together():
    return {"flags": flags(torch.tensor([0.5, torch.nan]))}


def change_truth_values_read_together(waits):
    """one `torch.stack([…]).tolist()` in front of them"""
    assert waits[1] < waits[0]


def kept_where_values_change(x: torch.Tensor):
    x = x.cuda()
    low = x.min().item()
    x.mul_(2)
    high = x.max().item()
    x += 1
    return low, high, x.mean().item()


def changed_in_the_middle(x: torch.Tensor):
    values = x.float().cuda()
    low, high, mean, total = values.min(), values.max(), values.mean(), values.sum()
    a = low.item()
    high = high * mean.item()
    b = high.item()
    c = total.item()
    return a, b, c


def case_changed_in_the_middle():
    return {"numbers": changed_in_the_middle(torch.randn(5))}


def change_changed_in_the_middle(waits):
    """one `torch.stack([…]).tolist()` in front of them"""
    assert waits[1] < waits[0]


def interleaved(x: torch.Tensor):
    x = x.float().cuda()
    a = (x.min() + 1).item()
    b = (x.min() > 0).item()
    c = (x.max() + 1).item()
    d = (x.max() > 0).item()
    e = (x.mean() + 1).item()
    f = (x.mean() > 0).item()
    return a, b, c, d, e, f


def case_interleaved():
    return {"numbers": interleaved(torch.tensor([-0.5, 1.5]))}


def change_interleaved(waits):
    """one `torch.stack([…]).tolist()` in front of them"""
    assert waits[1] < waits[0]


def kept_where_others_may_write(x: torch.Tensor, log):
    x = x.float().cuda()
    log(x.min().item())
    log(x.max().item())
    log(x.mean().item())


def kept_where_some_may_be_complex(x: torch.Tensor):
    mean = x.mean().item()
    spread = x.std().item()
    return mean, spread, x.clone().mean().item()


def kept_where_the_code_is_shown(x: torch.Tensor):
    x = x.float().cuda()
    print(f"{x.min().item()=}", f"{x.max().item() = :.2f}", f"{(x.mean().item())=!s}")


def commented(x: torch.Tensor):
    x = x.float().cuda()
    low = x.min().item()  # the smallest
    # and the others
    mean = x.mean().item()
    high = x.max().item()  # the largest
    return low, mean, high


def case_commented():
    return {"numbers": commented(torch.randn(4))}


def change_commented(waits):
    """one `torch.stack([…]).tolist()` in front of them"""
    assert waits[1] < waits[0]


def kept_where_a_sum_may_be_whole(loader: DataLoader):
    total = 0
    for x, y in loader:
        total += y.cuda().sum().item()
    return range(total)


def divided(loader: DataLoader):
    total = 0
    for x, y in loader:
        total += y.cuda().sum().item()
    total /= len(loader)
    return f"{total}"


def case_divided():
    return {"mean": divided(batches())}


def change_divided(waits):
    """`total += loss.detach().double()`, with `total = float(total)` after the loop"""
    assert waits[1] < waits[0]


def kept_where_a_list_holds_whole_numbers_and_others(loader: DataLoader):
    found = []
    for step, (x, y) in enumerate(loader):
        total = y.cuda().sum() if step % 2 else x.cuda().sum()
        found.append(total.item())
    return found


class Metrics:
    def __init__(self, gather):
        self.gather = gather
        self.found = {"mean": [], "low": [], "high": []}

    def note(self, lengths):
        lengths = self.gather(lengths)
        self.found["mean"].append(lengths.float().mean().item())
        self.found["low"].append(lengths.float().min().item())
        self.found["high"].append(lengths.float().max().item())


def case_appended():
    metrics = Metrics(torch.clone)
    for dtype in (torch.int64, torch.float16, torch.float64):
        metrics.note(torch.arange(5, device="cuda").to(dtype) / 3 if dtype.is_floating_point else torch.arange(5).cuda())
    return {"found": metrics.found}


def change_appended(waits):
    """one `torch.stack([…]).tolist()` in front of them"""
    assert waits[1] < waits[0]


def kept_where_it_may_be_an_array(gather, lengths, found):
    lengths = gather(lengths)
    found.append(lengths.mean().item())
    found.append(lengths.min().item())
    found.append(lengths.max().item())


def kept_where_it_may_have_dimensions(gather, x, found):
    x = gather(x)
    found.append(x[0].detach().item())
    found.append(x[1].detach().item())
    found.append(x[2].detach().item())


def of_truths(x, y, seen):
    x, y = x.cuda(), y.cuda()
    seen.append((x >= 0).all().item() and (x <= 1).all().item())
    seen.append(torch.any(y > 0).item() or torch.any(y < -1).item())


def case_of_truths():
    seen = []
    for value in (-2.0, 0.0, 1.0, 2.0, torch.nan):
        of_truths(torch.full((3,), value), torch.full((2, 2), -value), seen)
    return {"seen": seen, "types": [type(each).__name__ for each in seen]}


def change_of_truths(waits):
    """`a.all().item() and b.all().item()` becomes `(a.all() & b.all()).item()`"""
    assert waits[1] < waits[0]


def kept_where_they_are_numbers(x, seen):
    x = x.cuda()
    seen.append(x.byte().any().item() and x.sum().item())


def gathered(accelerator: Accelerator, x: torch.Tensor, seen: dict):
    x = x.float().cuda()
    seen["low"] = accelerator.gather(x.min()).mean().item()
    seen["high"] = accelerator.gather(x.max()).mean().item()
    seen["mean"] = accelerator.gather(x.mean()).mean().item()


def case_gathered():
    seen, accelerator = {}, Accelerator()
    gathered(accelerator, torch.randn(5), seen)
    return {"seen": seen, "calls": accelerator.gathered}


def change_gathered(waits):
    """one `torch.stack([…]).tolist()` in front of them"""
    assert waits[1] < waits[0]


def kept_where_all_processes_meet_in_between(accelerator: Accelerator, x: torch.Tensor, seen: dict):
    x = x.float().cuda()
    seen["low"] = accelerator.gather(x.min()).mean().item()
    accelerator.wait_for_everyone()
    seen["high"] = accelerator.gather(x.max()).mean().item()
    accelerator.wait_for_everyone()
    seen["mean"] = accelerator.gather(x.mean()).mean().item()


def kept_where_one_process_gathers(accelerator: Accelerator, x: torch.Tensor, seen: dict, first: bool):
    x = x.float().cuda()
    seen["low"] = accelerator.gather(x.min()).mean().item() if first else 0
    seen["high"] = accelerator.gather(x.max()).mean().item() if first else 0
    seen["mean"] = accelerator.gather(x.mean()).mean().item() if first else 0


def kept_where_several_processes_have_several_numbers(accelerator: Accelerator, x: torch.Tensor, seen: dict):
    x = x.float().cuda()
    least = accelerator.gather(x.min())
    seen["least"] = least.item()
    seen["low"] = accelerator.gather(x.min()).item()
    seen["high"] = accelerator.gather(x.max()).item()
    seen["mean"] = accelerator.gather(x.mean()).item()


def kept_where_a_name_alone_says_who_gathers(accelerator, x: torch.Tensor, seen: dict):
    x = x.float().cuda()
    seen["low"] = accelerator.gather(x.min()).mean().item()
    seen["high"] = accelerator.gather(x.max()).mean().item()
    seen["mean"] = accelerator.gather_for_metrics(x.mean()).mean().item()


def kept_where_an_operand_may_have_dimensions(x: torch.Tensor, y: torch.Tensor, model, seen: dict):
    x, y = x.float().cuda(), y.float().cuda()
    loss, error = nn.functional.mse_loss(x, y), (x * y).mean()
    total = loss + model.penalty
    seen["loss"] = loss.item()
    seen["error"] = error.item()
    seen["total"] = total.item()
    seen["all"] = (total + error).item()


WHOLE = torch.arange(6.0).cuda()
LOW = torch.min(WHOLE).item()
MEAN = torch.mean(WHOLE).item()
HIGH = torch.max(WHOLE).item()


def case_read_at_the_top_level():
    return {"numbers": [LOW, MEAN, HIGH]}
