"""Failures of a worker in words."""

import torch

from tianji.engines.worker import in_words


def test_a_full_gpu_names_the_settings_to_change():
    text = in_words(torch.cuda.OutOfMemoryError("Tried to allocate 20.00 GiB"))
    assert "--minibatch-size" in text and "--num-envs" in text and "20.00 GiB" in text


def test_other_errors_are_told_as_they_are():
    assert in_words(ValueError("no")) == "ValueError: no"
