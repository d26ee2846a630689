"""Normal noise whose values in succession are alike (coloured noise).

R: rows in time order, N: environments, A: numbers of an action.
"""

from __future__ import annotations

import numpy as np

from tianji.ops.returns import Floats


def colored_noise(rng: np.random.Generator, shape: tuple[int, int, int], color: float) -> Floats:
    """Return standard normal noise [R, N, A] with power f^-color at frequency f, along R.

    color 0: white, all values independent; 1: pink, with fluctuations of every length; 2: red, a
    slow drift. Each value alone is standard normal whatever the color. Timmer and Koenig (1995);
    for exploration: Eberhard et al. (2023), and Hollenstein et al. (2024) for PPO.
    """
    num_rows = shape[0]
    if color == 0.0 or num_rows == 1:
        return rng.standard_normal(shape, np.float32)
    frequency_F = np.fft.rfftfreq(num_rows)
    frequency_F[0] = frequency_F[1]  # as much for the mean of all rows as for the slowest wave
    scale_F = frequency_F ** (-color / 2.0)
    real_FNA = rng.standard_normal((len(scale_F), *shape[1:]), np.float32)
    imaginary_FNA = rng.standard_normal((len(scale_F), *shape[1:]), np.float32)
    # Waves that are alone at their frequency have no phase: their variance is that of one number.
    alone = [0] if num_rows % 2 else [0, -1]
    imaginary_FNA[alone] = 0.0
    real_FNA[alone] *= np.sqrt(2.0)
    waves_FNA = (real_FNA + 1j * imaginary_FNA) * scale_F[:, None, None]
    count_F = np.full(len(scale_F), 2.0)
    count_F[alone] = 1.0
    variance = 2.0 * np.sum(count_F * np.square(scale_F)) / num_rows**2
    noise_RNA: Floats = np.fft.irfft(waves_FNA, num_rows, axis=0).astype(np.float32)
    return noise_RNA / np.float32(np.sqrt(variance))
