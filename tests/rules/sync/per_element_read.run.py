import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def case_floats():
    scores = torch.randn(3, 4).to(DEVICE).float().flatten()
    return [score.item() for score in scores]


def case_half_precision():
    scores = torch.randn(12).to(DEVICE).to(torch.bfloat16)
    flat = scores.reshape(3, 4).flatten()
    return [float(score) for score in flat]


def case_integers():
    counts = torch.randint(9, (5, 7)).to(DEVICE).flatten()
    return [int(count) for count in counts]


def case_booleans():
    flags = torch.randn(9).to(DEVICE).flatten() > 0
    return [flag.item() for flag in flags]


def case_none():
    counts = torch.zeros(0, 3).to(DEVICE).flatten()
    return [count.item() for count in counts]


def kept_where_the_rank_is_unknown(x: torch.Tensor):
    x = x.to(DEVICE)
    return [float(row) for row in x]


def kept_where_a_list_is_read(model, batches):
    losses = [model(batch.to(DEVICE)).float().mean() for batch in batches]
    return [loss.item() for loss in losses]


def case_of_several():
    rows = [torch.arange(8.0, device=DEVICE) + i for i in range(3)]
    kept = [x.item() for row in rows for x in row[:5]]
    return kept, [float(x) for a, b in zip(rows, rows[1:]) if len(rows) for x in a - b]
