"""Linear algebra that checks, and that does not."""

import torch
from torch import nn


class Warp(nn.Module):
    def forward(self, points: torch.Tensor, homography: torch.Tensor):
        inverse = torch.linalg.inv(homography)
        solved = torch.linalg.solve(homography, points)
        factor = torch.linalg.cholesky(homography)
        lu, pivots = torch.linalg.lu_factor(homography)
        return inverse, solved, factor, lu, pivots


class Inverse(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.inverse(x)


class Method(nn.Module):
    def forward(self, x: torch.Tensor):
        return (x + 1).inverse(), x.inverse().T


def case_methods():
    matrix = (torch.eye(3, device="cuda") * 2 + 0.5).requires_grad_()
    found = Method()(matrix)
    sum(part.sum() for part in found).backward()
    return {"found": found, "matrix": matrix}


def case_regular():
    matrix = (torch.eye(3, device="cuda") * 2 + 0.5).requires_grad_()
    found = Warp()(torch.ones(3, 2, device="cuda"), matrix)
    sum(part.sum() for part in found[:4]).backward()
    return {"found": found, "matrix": matrix}


def case_singular():
    y = Inverse()(torch.zeros(2, 2, device="cuda"))
    return {"useless": not y.isfinite().all().item()}


def change_singular(error):
    """a singular input silently gives a useless result instead of an error"""
    assert "LinAlgError" in error[0] and "singular" in error[0] and error[1] is None
