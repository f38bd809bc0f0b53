"""What the tests of the Python package share."""

import pathlib

import numpy as np
import pytest

import tenon

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def write_sample(path):
    tenon.save(
        path,
        {"embed.weight": np.arange(24, dtype="f4").reshape(4, 6), "norm.weight": np.array([1, 0.5, 2], "f4")},
        metadata={"made by": "a test"},
    )


@pytest.fixture
def sample(tmp_path):
    path = tmp_path / "sample.safetensors"
    write_sample(path)
    return path


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace, tmp_path):
    """sample and folder, which the examples of docstrings use."""
    path = tmp_path / "example.safetensors"
    write_sample(path)
    doctest_namespace["sample"] = path
    doctest_namespace["folder"] = tmp_path


@pytest.fixture
def random():
    return np.random.default_rng(20)
