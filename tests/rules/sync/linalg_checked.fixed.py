import numpy as np
import torch
from torch import nn


class Warp(nn.Module):
    def forward(self, points: torch.Tensor, homography: torch.Tensor):
        inverse = torch.linalg.inv_ex(homography)[0]
        imported = torch.linalg.inv_ex(homography)[0]
        older = torch.linalg.inv_ex(homography)[0]
        method = torch.linalg.inv_ex(homography)[0]
        solved = torch.linalg.solve_ex(homography, points, left=False)[0]
        factor = torch.linalg.cholesky_ex(homography)[0]
        lu, pivots = torch.linalg.lu_factor_ex(homography)[:2]
        u, s, v = torch.linalg.svd(homography)
        values, vectors = torch.linalg.eigh(homography)
        pseudo = torch.linalg.pinv(homography)
        least = torch.linalg.lstsq(homography, points)
        spectral = torch.linalg.matrix_norm(homography, ord=2)
        condition = torch.linalg.cond(homography)
        power = torch.linalg.matrix_power(homography, -1)
        return inverse, imported, older, method, solved, factor, lu, pivots, u, s, v, values, vectors, pseudo, least, (
            spectral, condition, power
        )


# Look-alikes.


class Unchecked(nn.Module):
    def forward(self, points: torch.Tensor, homography: torch.Tensor):
        inverse, _ = torch.linalg.inv_ex(homography)
        factor, _ = torch.linalg.cholesky_ex(homography)
        return inverse, factor, torch.linalg.solve_ex(homography, points)


class Cheap(nn.Module):
    def forward(self, x: torch.Tensor):
        q, r = torch.linalg.qr(x)
        return q, torch.linalg.det(x), torch.linalg.slogdet(x), torch.linalg.solve_triangular(r, x, upper=True)


class Norms(nn.Module):
    def forward(self, x: torch.Tensor):
        frobenius = torch.linalg.matrix_norm(x)
        return frobenius, torch.linalg.norm(x), torch.linalg.vector_norm(x, ord=2), torch.linalg.norm(x, 2, dim=-1)


def powers(x: torch.Tensor, n: int):
    return torch.linalg.matrix_power(x, 3), torch.linalg.matrix_power(x, n), torch.linalg.cond(x, 1)


def on_host():
    matrix = torch.eye(3)
    return torch.linalg.inv(matrix), torch.inverse(matrix), torch.linalg.svd(matrix)


def arrays(matrix: np.ndarray):
    return np.linalg.inv(matrix), np.linalg.svd(matrix)


class Affine:
    def inverse(self):
        return self


def a_method_of_the_same_name(affine: Affine):
    return affine.inverse()


def regularized(gram: torch.Tensor) -> torch.Tensor:
    """The error of a matrix that is not positive definite is handled."""
    gram = gram.cuda()
    try:
        return torch.linalg.cholesky(gram)
    except torch.linalg.LinAlgError:
        return torch.linalg.cholesky_ex(gram + torch.eye(len(gram), device="cuda"))[0]


class Operator:
    def inverse(self):
        return self


class Maybe(torch.nn.Module):
    def forward(self, x: torch.Tensor, y):
        other = (x + y).inverse(), torch.linalg.inv_ex(x * 2)[0]
        try:
            tried = x.inverse()
        except RuntimeError:
            tried = x
        old = torch.linalg.cholesky_ex(x)[0], torch.cholesky(x, upper=True), torch.linalg.cholesky_ex(x)[0]
        return other, tried, old, Operator().inverse()

def of_unknown(make, count: int):
    values, vectors = torch.linalg.eigh(make(count))
    return vectors * values


class Basis:
    def __init__(self, make):
        self.basis = torch.linalg.inv(make(3))
