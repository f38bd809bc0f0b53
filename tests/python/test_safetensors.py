"""tenon.safetensors in place of safetensors; their own tests are run by tests/python/run."""

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import tenon
from tenon.safetensors import SafetensorError, load, load_file, safe_open, save, save_file


@pytest.fixture
def tensors(random):
    return {
        "b": random.standard_normal((3, 4)).astype("f4"),
        "a": np.arange(5),
        "c": np.array(True),
        "e": np.zeros((0, 2), "f2"),
        "h": random.standard_normal(3).astype("f2"),
    }


def test_bytes_are_those_of_safetensors(tensors, tmp_path):
    meta = {"format": "pt"}
    assert save(tensors, meta) == safetensors.numpy.save(tensors, meta)
    save_file(tensors, tmp_path / "a", meta)
    safetensors.numpy.save_file(tensors, tmp_path / "b", meta)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_same_answers(tensors, tmp_path):
    save_file(tensors, tmp_path / "a", {"x": "y"})
    for backend in ("mmap", "pread"):
        with (
            safe_open(tmp_path / "a", "np", backend=backend) as ours,
            safetensors.safe_open(tmp_path / "a", "np") as theirs,
        ):
            assert ours.keys() == list(theirs.keys()) and ours.metadata() == theirs.metadata()
            assert ours.offset_keys() == list(theirs.offset_keys())
            for name in ours.keys():
                a, b = ours.get_tensor(name), theirs.get_tensor(name)
                assert a.dtype == b.dtype and np.array_equal(a, b)
                assert ours.get_slice(name).get_shape() == list(theirs.get_slice(name).get_shape())
                assert ours.get_slice(name).get_dtype() == theirs.get_slice(name).get_dtype()
            with pytest.raises(SafetensorError):
                ours.get_tensor("nothing")
    loaded = load_file(tmp_path / "a")
    loaded["b"][0, 0] = 7  # private: the file stays as it is
    assert load_file(tmp_path / "a")["b"][0, 0] == tensors["b"][0, 0]
    assert all(np.array_equal(array, tensors[name]) for name, array in load(save(tensors)).items())


def test_damage_is_refused(tensors, tmp_path):
    data = save(tensors)
    for n in range(0, len(data) - 1, 7):
        with pytest.raises(SafetensorError):
            load(data[:n])
    (tmp_path / "x").write_bytes(data[:-1])
    with pytest.raises(SafetensorError):
        safe_open(tmp_path / "x", "np")
    with pytest.raises(SafetensorError):
        safe_open(tmp_path / "x", "jax")


def test_compound_tensors_are_their_parts(sample, tmp_path):
    tenon.convert(sample, tmp_path / "q.safetensors", cast="mxfp4")
    with safetensors.safe_open(tmp_path / "q.safetensors", "np") as theirs:
        names = sorted(theirs.keys())
    with safe_open(tmp_path / "q.safetensors", "np") as ours:
        assert ours.keys() == names and len(names) == 4
