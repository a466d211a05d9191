"""Graphs that are retained for nothing, and graphs that another backward pass needs."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader


def only_one(loader: DataLoader) -> None:
    model = nn.Linear(8, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x = x.cuda()
        loss = F.mse_loss(model(x), y.cuda())
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # audit: TPF305
        optimizer.step()
        print(loss.item())


def scaled(model, loader, optimizer, scaler, criterion):
    for batch in loader:
        with torch.autocast("cuda"):
            output = model(batch["x"].cuda())
            loss = criterion(output, batch["y"].cuda())
        scaler.scale(loss).backward(retain_graph=True)  # audit: TPF305
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)


def parts(model, loader, optimizer, accelerator):
    for x, y in loader:
        output = model(x)
        first = F.cross_entropy(output, y)
        if y is None:
            second = output.mean()
        else:
            second = output.square().mean()
        loss = first + 0.1 * second
        accelerator.backward(loss, retain_graph=True)  # audit: TPF305
        optimizer.step()


def detached_game(generator, discriminator, loader, first, second, bce):
    for real in loader:
        noise = torch.randn(real.size(0), 64, device="cuda")
        made = generator(noise)
        judged = discriminator(made.detach())
        d_loss = bce(judged, torch.zeros_like(judged)) + bce(discriminator(real), torch.ones_like(judged))
        first.zero_grad()
        d_loss.backward(retain_graph=True)  # audit: TPF305
        first.step()
        g_loss = bce(discriminator(made), torch.ones(real.size(0), 1, device="cuda"))
        second.zero_grad()
        g_loss.backward()
        second.step()


def detached_state(cell: nn.LSTMCell, chunks, optimizer):
    state = torch.zeros(4, 8)
    for chunk in chunks:
        state = state.detach()
        state = cell(chunk, state)
        loss = state.sum()
        loss.backward(retain_graph=True)  # audit: TPF305
        optimizer.step()


def in_one_branch(model, loader, optimizer, device: torch.device, mode: str):
    weight = torch.ones(3).to(device)
    for batch in loader:
        x = batch[0].to(device)
        output = model.network(x)
        if model.two_losses:
            target = model.target(x)
            first = model.first(output, target)
            loss = first + model.second(output, weight)
        else:
            loss = model.first(output, x)
        if mode == "train":
            loss.backward(retain_graph=True)  # audit: TPF305
            optimizer.step()


# Look-alikes


def shared_game(generator, discriminator, loader, first, second, bce):
    for real in loader:
        made = generator(torch.randn(real.size(0), 64))
        d_loss = bce(discriminator(made)) - bce(discriminator(real))
        d_loss.backward(retain_graph=True)
        first.step()
        g_loss = bce(discriminator(made))
        g_loss.backward()
        second.step()


def two_losses(model, loader, optimizer, criterion, penalty):
    for x, y in loader:
        output = model(x)
        criterion(output, y).backward(retain_graph=True)
        penalty(output).backward()
        optimizer.step()


def carried_state(model, chunks, optimizer):
    state = None
    for chunk in chunks:
        output, state = model(chunk, state)
        loss = output.sum()
        loss.backward(retain_graph=True)
        optimizer.step()


def features_from_before(encoder, heads, x, optimizer):
    features = encoder(x)
    for head in heads:
        loss = head(features).sum()
        loss.backward(retain_graph=True)
        optimizer.step()


def now_and_then(encoder, head, loader, optimizer):
    for i, x in enumerate(loader):
        if i % 4 == 0:
            features = encoder(x)
        loss = head(features).sum()
        loss.backward(retain_graph=True)
        optimizer.step()


def noise_from_before(generator, critic, optimizer):
    made = generator(torch.randn(8, 64))
    for _ in range(5):
        loss = critic(made * 2).mean()
        loss.backward(retain_graph=True)
        optimizer.step()


def every_output(model, x):
    outputs = model(x)
    rows = []
    for i in range(len(outputs)):
        outputs[i].backward(retain_graph=True)
        rows.append(x.grad.clone())
    return rows


def attributed(model, loader, optimizer):
    for x in loader:
        x.requires_grad_()
        output = model(x)
        loss = output.sum()
        loss.backward(retain_graph=True)
        saliency = torch.autograd.grad(output.max(), x)[0]
        optimizer.step()
        print(saliency.norm())


def until_the_last(models, loader, optimizer, criterion):
    for x, y in loader:
        losses = [criterion(model(x), y) for model in models]
        for i, loss in enumerate(losses):
            loss.backward(retain_graph=i + 1 < len(losses))
        optimizer.step()


def running_sum(model, loader, optimizer):
    total = torch.zeros(())
    for x in loader:
        total = total + model(x).sum()
        total.backward(retain_graph=True)
        optimizer.step()


def after_the_loop(model, loader, optimizer):
    for x in loader:
        loss = model(x).sum()
        loss.backward(retain_graph=True)
        optimizer.step()
    loss.backward()


def penalised(model, loader, optimizer, gradient_penalty):
    for x in loader:
        output = model(x)
        loss = output.sum()
        loss.backward(retain_graph=True)
        gradient_penalty(output, x)
        optimizer.step()


class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.made = None

    def epoch(self, loader):
        for x in loader:
            self.made = self.model(x)
            loss = self.made.sum()
            loss.backward(retain_graph=True)
            self.optimizer.step()

    def step(self, features):
        loss = self.model(features).sum()
        loss.backward(retain_graph=True)
        self.optimizer.step()


def in_a_function(model, x, optimizer):
    loss = model(x).sum()
    loss.backward(retain_graph=True)  # audit: TPF305
    optimizer.step()


def by_functions(loader):
    model = torch.nn.Linear(8, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        in_a_function(model, x, optimizer)


def with_next(loader):
    model = torch.nn.Linear(8, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(loader)
    while True:
        try:
            x = next(batches)
        except StopIteration:
            break
        loss = model(x).sum()
        loss.backward(retain_graph=True)  # audit: TPF305
        optimizer.step()


def judge(critic, fake, optimizer):
    loss = critic(fake).mean()
    loss.backward(retain_graph=True)
    optimizer.step()


def adversarial(maker, critic, loader, first, second):
    for noise in loader:
        fake = maker(noise)
        judge(critic, fake, first)
        critic(fake).mean().backward()
        second.step()


def returned(model, x, optimizer):
    loss = model(x).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    return loss


def used_again(loader):
    model = torch.nn.Linear(8, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        returned(model, x, optimizer).backward()


def adversarial_step(maker, critic, real, noise, first, second, criterion):
    fake = maker(noise)
    second.zero_grad()
    judged = criterion(critic(real), torch.ones(8, 1)) + criterion(
        critic(fake.detach()), torch.zeros_like(critic(fake))
    )
    judged.backward(retain_graph=True)  # audit: TPF305
    second.step()
    first.zero_grad()
    criterion(critic(fake), torch.ones(8, 1)).backward()
    first.step()


def adversarial_steps(maker, critic, loader, first, second):
    for real in loader:
        noise = torch.randn(8, 4, device="cuda")
        adversarial_step(maker, critic, real.cuda(), noise, first, second, nn.BCEWithLogitsLoss())


def two_heads(encoder, first, second, loader, optimizer):
    """The name of the batch stands for features, whose graph both passes go through."""
    for x in loader:
        x = encoder(x.cuda())
        first(x).sum().backward(retain_graph=True)
        second(x).sum().backward()
        optimizer.step()


def both(first, second, x, optimizer):
    first(x).sum().backward(retain_graph=True)
    second(x).sum().backward()
    optimizer.step()


def two_heads_in_a_function(encoder, first, second, loader, optimizer):
    for x in loader:
        x = encoder(x.cuda())
        both(first, second, x, optimizer)
