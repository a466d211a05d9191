import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def batches():
    return torch.arange(12.0, device=DEVICE).reshape(3, 2, 2)


def case_sum():
    model = torch.nn.Linear(2, 1).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    total = 0.0
    for x in batches():
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return model, total.item()


def case_weighted():
    model = torch.nn.Linear(2, 1).to(DEVICE)
    total = torch.zeros((), device=DEVICE)
    for x in batches():
        loss = model(x).square().mean()
        loss.backward()
        total += loss * len(x)
    return model, float(total)


def kept_where_it_is_given_away():
    model = torch.nn.Linear(2, 1).to(DEVICE)
    total = 0.0
    for x in batches():
        loss = model(x).square().mean()
        loss.backward()
        total += loss
    return total


def kept_where_other_functions_use_the_sum():
    model = torch.nn.Linear(2, 1).to(DEVICE)
    total = 0.0

    def train():
        nonlocal total
        total = 0.0
        for x in batches():
            loss = model(x).square().mean()
            loss.backward()
            total += loss
        return float(total)

    def later():
        return total

    return train(), later()


TOTAL = 0.0


def kept_where_the_sum_is_global():
    global TOTAL
    TOTAL = 0.0
    model = torch.nn.Linear(2, 1).to(DEVICE)
    for x in batches():
        loss = model(x).square().mean()
        loss.backward()
        TOTAL += loss
    return float(TOTAL)


def kept_where_the_caller_holds_the_sum(total: torch.Tensor):
    model = torch.nn.Linear(2, 1).to(DEVICE)
    for x in batches():
        loss = model(x).square().mean()
        loss.backward()
        total += loss
    return float(total)


def kept_where_the_sum_is_part_of_a_tensor(sums: torch.Tensor):
    model = torch.nn.Linear(2, 1).to(DEVICE)
    total = sums[0]
    for x in batches():
        loss = model(x).square().mean()
        loss.backward()
        total += loss
    return float(total)


def kept_where_the_loss_may_be_no_tensor(losses):
    total = 0.0
    for loss in losses:
        loss.backward()
        total += loss
    return float(total)
