"""Several programs change one file at once: no change is lost."""
import json
import os
import subprocess
import time

from system import MIB, TENON, noise, run_tests, tenon, test, write_safetensors

WRITERS = 20


def make(folder, suffix, size=1000):
    source, made = os.path.join(folder, "source.safetensors"), os.path.join(folder, "m." + suffix)
    write_safetensors(source, {"t": noise(size)})
    tenon("convert", "--quiet", source, made)
    return source, made


def keys(path):
    done = subprocess.run([TENON, "meta", "--json", path], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["metadata"]


def start(*arguments):
    return subprocess.Popen([TENON, *arguments], stderr=subprocess.PIPE, text=True)


def edit_at_once(folder, suffix):
    source, made = make(folder, suffix, MIB)
    began = time.monotonic()
    running = [start("meta", "--quiet", "--set", f"key{i}=value{i}", made) for i in range(WRITERS)]
    said = [process.communicate(timeout=120)[1] for process in running]
    codes = [process.returncode for process in running]
    took = time.monotonic() - began
    assert codes == [0] * WRITERS, list(zip(codes, said))
    found = keys(made)
    expected = {f"key{i}": f"value{i}" for i in range(WRITERS)}
    assert found == expected, f"{len(found)} of {WRITERS} changes are there"
    tenon("diff", "--ignore-metadata", source, made)
    assert sorted(os.listdir(folder)) == [os.path.basename(made), "source.safetensors"], os.listdir(folder)
    return f"{WRITERS} of {WRITERS} in {took:.1f} s"


@test
def twenty_edits_of_a_ztensor_file_at_once_are_all_kept(folder):
    return edit_at_once(folder, "zt")


@test
def twenty_edits_of_a_safetensors_file_at_once_are_all_kept(folder):
    return edit_at_once(folder, "safetensors")


@test
def a_conversion_into_its_input_does_not_undo_an_edit(folder):
    """Whenever it comes: either the conversion is refused, or it came first and its file is edited."""
    refused = 0
    for i in range(12):
        source, made = make(folder, "zt", 16 * MIB)
        running = start("convert", "--quiet", "--force", "--compress", "zstd", made, made)
        time.sleep(0.01 * i)
        tenon("meta", "--quiet", "--set", "k=v", made)
        said = running.communicate(timeout=60)[1]
        assert running.returncode in (0, 3), said
        if running.returncode == 3:
            refused += 1
            text = "has changed since it was read: it is not replaced; try again"
            assert said == f"tenon: {made}: {text}\n", said
        assert keys(made) == {"k": "v"}, f"the edit is lost, {10 * i} ms after the start"
        tenon("diff", "--ignore-metadata", source, made)
        os.remove(made)
    return f"{refused} of 12 refused"


run_tests()
