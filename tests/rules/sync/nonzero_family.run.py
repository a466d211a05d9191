import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def case_where():
    x = torch.randn(4, 5).to(DEVICE)
    mask = x > 0
    x[torch.where(mask)] = 0.5
    return x


def case_nonzero():
    x = torch.randn(4, 5).to(DEVICE)
    mask = x.isnan() | (x < -0.5)
    x[mask.nonzero(as_tuple=True)] = -1
    return x


def case_gradients():
    x = torch.randn(6, requires_grad=True)
    y = (x * 2).to(DEVICE)
    low = y < 0
    y[torch.where(low)] = 0.0
    y.square().sum().backward()
    return x, y


def case_none_and_all():
    x = torch.zeros(3).to(DEVICE)
    none = x > 1
    every = x < 1
    x[torch.where(none)] = 2.0
    x[torch.nonzero(every, as_tuple=True)] = 3.0
    return x


def case_of_the_whole_tensor():
    x = torch.tensor([[0.5, torch.nan], [2.0, -3.0]]).to(DEVICE)
    x[torch.where(x > 1.0)] = 9
    odd = (x.abs() >= 3) & ~torch.isnan(x)
    x[odd.nonzero(as_tuple=True)] = -1
    return x, odd


def kept_where_the_mask_is_of_another_shape():
    x = torch.arange(6.0).to(DEVICE)
    short = x[:3] > 0
    x[torch.where(short)] = 7.0
    x[torch.where(x.sum() > 0)] = 8.0
    other = x > 2
    x = x.view(2, 3)
    x[torch.where(other.view(2, 3))] = 9.0
    return x


def kept_where_the_mask_is_written():
    x = torch.arange(4.0, requires_grad=True)
    y = (x * 2).to(DEVICE)
    low = y < 3
    y[torch.where(low)] = 0.0
    low.zero_()
    y.square().sum().backward()
    return x


def kept_where_the_tensor_is_its_mask():
    x = torch.tensor([True, False]).to(DEVICE)
    x[torch.where(x)] = False
    x[torch.where(x.detach())] = True
    return x


def kept_where_indices_are_meant(x: torch.Tensor, index: torch.Tensor, new: torch.Tensor):
    x, index = x.to(DEVICE), index.to(DEVICE)
    x[torch.where(index)] = 0.5
    x[torch.where(x > 0)] = new.to(DEVICE)
    return x[torch.where(x < 0)]
