"""Input and output may be one file, under one name or several."""
import os

from system import MIB, contents, noise, run_tests, tenon, test, write_safetensors

OPTIONS = ["--quiet", "--force", "--compress", "zstd", "--checksum", "crc32c", "--to", "ztensor"]


def make(folder, name="f.zt"):
    """A raw zTensor file of some size, and a copy to compare with."""
    source, made = os.path.join(folder, "source.safetensors"), os.path.join(folder, name)
    write_safetensors(source, {"noise": noise(2 * MIB), "zeroes": 3 * MIB, "small": b"abc"})
    tenon("convert", "--quiet", source, made)
    return source, made


def check(folder, source, names):
    """Every name holds the same tensors as the source; nothing else is in the folder."""
    for name in names:
        tenon("diff", source, os.path.join(folder, name))
        tenon("verify", os.path.join(folder, name))
    assert sorted(os.listdir(folder)) == sorted(names + ["source.safetensors"]), os.listdir(folder)


@test
def the_same_path(folder):
    source, made = make(folder)
    before = contents(made)
    tenon("convert", "--quiet", made, made, code=2)             # without --force it exists
    assert contents(made) == before
    for way in ("mmap", "pread"):
        tenon("convert", *OPTIONS, "--io", way, made, made)
        check(folder, source, ["f.zt"])
    assert os.path.getsize(made) < len(before) - 2 * MIB


@test
def the_same_file_by_another_path(folder):
    source, made = make(folder)
    tenon("convert", *OPTIONS, "f.zt", os.path.join(folder, ".", "..", os.path.basename(folder), "f.zt"), cwd=folder)
    check(folder, source, ["f.zt"])


@test
def a_hard_link_to_the_input(folder):
    source, made = make(folder)
    before, link = contents(made), os.path.join(folder, "link.zt")
    os.link(made, link)
    tenon("convert", *OPTIONS, made, link)
    assert contents(made) == before, "the other name of the old file has changed"
    assert os.stat(made).st_ino != os.stat(link).st_ino
    check(folder, source, ["f.zt", "link.zt"])


@test
def a_symbolic_link_to_the_input(folder):
    source, made = make(folder)
    link = os.path.join(folder, "link.zt")
    os.symlink("f.zt", link)
    tenon("convert", *OPTIONS, made, link)
    assert os.readlink(link) == "f.zt"
    tenon("convert", *OPTIONS, link, made)
    tenon("convert", *OPTIONS, link, link)
    assert os.readlink(link) == "f.zt" and not os.path.islink(made)
    check(folder, source, ["f.zt", "link.zt"])


@test
def a_symbolic_link_into_another_folder(folder):
    source, made = make(folder)
    other = os.path.join(folder, "other")
    os.mkdir(other)
    os.rename(made, os.path.join(other, "real.zt"))
    os.symlink(os.path.join("other", "real.zt"), made)
    tenon("convert", *OPTIONS, source, made)
    assert os.path.islink(made) and os.listdir(other) == ["real.zt"]
    tenon("diff", source, os.path.join(other, "real.zt"))


@test
def metadata_of_a_file_behind_a_link(folder):
    source, made = make(folder)
    link = os.path.join(folder, "link.zt")
    os.symlink("f.zt", link)
    os.chmod(made, 0o640)
    tenon("meta", "--set", "author=somebody", link)
    assert os.readlink(link) == "f.zt" and os.stat(made).st_mode & 0o777 == 0o640
    tenon("diff", "--ignore-metadata", source, made)
    assert sorted(os.listdir(folder)) == ["f.zt", "link.zt", "source.safetensors"]


@test
def a_set_of_shards_onto_one_of_them(folder):
    """The shards are read while they are replaced: refused or right, never mixed."""
    source, _ = make(folder)
    os.remove(os.path.join(folder, "f.zt"))
    index = os.path.join(folder, "m.safetensors.index.json")
    tenon("convert", "--quiet", "--shard-size", "2M", source, index)
    shards = sorted(name for name in os.listdir(folder) if name.startswith("m-"))
    assert len(shards) > 1, os.listdir(folder)
    tenon("convert", "--quiet", "--force", index, os.path.join(folder, "whole.safetensors"))
    tenon("convert", "--quiet", "--force", index, index, "--shard-size", "2M")
    tenon("diff", source, index)
    tenon("diff", source, os.path.join(folder, "whole.safetensors"))


@test
def one_of_several_inputs(folder):
    """Each of the inputs in turn is the output; the others stay as they are."""
    parts = [os.path.join(folder, name) for name in ("a.safetensors", "b.zt", "c.safetensors")]
    write_safetensors(parts[0], {"a": noise(2 * MIB)})
    write_safetensors(parts[2], {"c": b"abc"})
    for i, output in enumerate(parts):
        write_safetensors(os.path.join(folder, "b.safetensors"), {"b": noise(3 * MIB)})
        tenon("convert", "--quiet", "--force", os.path.join(folder, "b.safetensors"), parts[1])
        os.remove(os.path.join(folder, "b.safetensors"))
        before = [contents(path) for path in parts]
        tenon("convert", "--quiet", *parts, output, code=2)     # without --force it exists
        tenon("convert", "--quiet", *parts, os.path.join(folder, "all.zt"))
        tenon("convert", "--quiet", "--force", *parts, output)
        tenon("diff", os.path.join(folder, "all.zt"), output)
        os.remove(os.path.join(folder, "all.zt"))
        assert [contents(path) == old for path, old in zip(parts, before)] == [k != i for k in range(3)]
        with open(output, "wb") as file:
            file.write(before[i])
        assert sorted(os.listdir(folder)) == ["a.safetensors", "b.zt", "c.safetensors"]


run_tests()
