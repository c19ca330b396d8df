"""Pearson's mixture: the moments of two Gaussians, as a map of the mixing weight, two means and two variances.

Run ``m2bridge fiber python:examples/pearson.py:five_moments``. Five moments leave nine mixtures up to the exchange of the two
parts, six leave one (Pearson 1894; Améndola, Faugère, Sturmfels, *Moment varieties of Gaussian mixtures*, arXiv:1510.04654).
"""

import numpy as np


def gaussian_moments(mean, variance, count):
    """Return the moments from the first to the `count`-th, by Stein's recursion."""
    moments = [1, mean]
    for k in range(2, count + 1):
        moments.append(mean * moments[k - 1] + (k - 1) * variance * moments[k - 2])
    return moments[1:]


def mixture(weight, means, variances, count):
    first, second = (gaussian_moments(means[i], variances[i], count) for i in range(2))
    return np.array([weight * a + (1 - weight) * b for a, b in zip(first, second, strict=True)])


def five_moments(weight: (), means: (2,), variances: (2,)):
    return mixture(weight, means, variances, 5)


def six_moments(weight: (), means: (2,), variances: (2,)):
    return mixture(weight, means, variances, 6)
