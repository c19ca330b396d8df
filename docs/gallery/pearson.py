"""Pearson's mixture

The first five moments of a mixture of two Gaussians, as a map of the mixing weight, two means and two variances. Pearson (1894) found that five moments determine the mixture up to finitely many choices, and that a sixth moment selects one of them.
"""

# %% Moments by Stein's recursion.
import numpy as np


def moments(mean, variance, count):
    found = [1, mean]
    for k in range(2, count + 1):
        found.append(mean * found[k - 1] + (k - 1) * variance * found[k - 2])
    return found[1:]


def mixture(weight, means, variances):
    first, second = (moments(means[i], variances[i], 5) for i in range(2))
    return np.array([weight * a + (1 - weight) * b for a, b in zip(first, second, strict=True)])


model = m2bridge.from_callable(mixture, {"weight": (), "means": (2,), "variances": (2,)})
# %% Five parameters, five moments: the map is dominant, so generic fibers are finite.
answer = m2bridge.dimension(model, engine=False)
answer
assert (answer.image_dim, answer.certainty.value) == (5, "proved")
