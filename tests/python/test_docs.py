"""Examples of docstrings and pages run."""

import doctest
import importlib
import re

import numpy as np
import pytest

import tenon
from conftest import ROOT


@pytest.mark.parametrize("name", ["_tensor", "_file", "_verbs", "_plan", "distributed", "_share"])
def test_examples_of_docstrings(name, doctest_namespace, tmp_path):
    module = importlib.import_module(f"tenon.{name}")
    result = doctest.testmod(module, extraglobs=dict(doctest_namespace))
    assert result.failed == 0 and result.attempted > 0


@pytest.mark.parametrize("page", ["docs/python.md"])
def test_examples_of_pages(page, doctest_namespace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(
        str(ROOT / page), module_relative=False, globs=dict(doctest_namespace), optionflags=doctest.ELLIPSIS
    )
    assert result.failed == 0 and result.attempted > 10


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tenon.save("model.safetensors", {"embed.weight": np.ones((4, 64), "f4"), "norm.weight": np.ones(64, "f4")})
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    for block in blocks:
        exec(block, {})
    assert blocks and list(tenon.open("small.zt")) == ["embed.weight", "norm.weight"]


def test_every_public_name_has_a_docstring():
    missing = [
        name for name in tenon.__all__ if not name.startswith("__") and not getattr(tenon, name).__doc__
    ]
    assert not missing
