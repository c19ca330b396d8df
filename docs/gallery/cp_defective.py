"""A defective family of tensors

Sums of three products in 2 x 2 x 2 x 2 should fill fifteen dimensions, and fill fourteen: the one defective case of four binary factors.
"""

# %% Three terms with twelve free weights after scaling, and one dimension less than expected.
import numpy as np


def cp(A, B, C, D):
    return np.einsum("ir,jr,kr,lr->ijkl", A, B, C, D)


model = m2bridge.from_callable(cp, dict.fromkeys("ABCD", (2, 3)))
answer = m2bridge.dimension(model, engine=False)
answer
assert answer.image_dim == 14
