"""safetensors_tests.py FOLDER: fetches safetensors' own tests and runs them against tenon.safetensors."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import tarfile

VERSION = "0.8.0"
NUMPY = ["test_handle.py", "test_threadable.py"]
TORCH = [
    "test_simple.py",
    "test_pread_backend.py",
    "test_multithreaded.py",
    "test_pt_comparison.py",
    "test_pt_model.py",
]
BACKEND = f"""import os
def prepare_metadata_for_build_wheel(folder, config=None):
    name = "safetensors-{VERSION}.dist-info"
    os.mkdir(os.path.join(folder, name))
    with open(os.path.join(folder, name, "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: safetensors\\nVersion: {VERSION}\\n")
    return name
"""
CONFTEST = """import sys
import tenon.safetensors, tenon.safetensors.numpy
sys.modules["safetensors"] = tenon.safetensors
sys.modules["safetensors.numpy"] = tenon.safetensors.numpy
try:
    import torch
except ImportError:         # test_simple.py needs torch for some of its tests only
    import types
    torch = sys.modules["torch"] = types.ModuleType("torch")
    stand_in = sys.modules["safetensors.torch"] = types.ModuleType("safetensors.torch")
    for name in ("_find_shared_tensors", "load_file", "save_file", "storage_ptr", "storage_size"):
        setattr(stand_in, name, None)
else:
    import tenon.safetensors.torch
    sys.modules["safetensors.torch"] = tenon.safetensors.torch
"""


def fetch(folder):
    """The source of the package.  pip asks its build system for metadata: a stand-in answers."""
    backend = pathlib.Path(sysconfig.get_path("purelib")) / "maturin.py"
    backend.write_text(BACKEND)
    try:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--disable-pip-version-check",
                "--no-deps",
                "--no-build-isolation",
                "--no-binary",
                ":all:",
                "-d",
                folder,
                f"safetensors=={VERSION}",
            ],
            check=True,
        )
    finally:
        backend.unlink()
    with tarfile.open(folder / f"safetensors-{VERSION}.tar.gz") as archive:
        for member in archive.getmembers():
            parts = pathlib.PurePath(member.name).parts
            if parts[1:4] == ("bindings", "python", "tests") and len(parts) == 5 and member.isfile():
                (folder / parts[4]).write_bytes(archive.extractfile(member).read())


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "test_simple.py").exists():
        fetch(folder)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "tests" / "data").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    has_torch = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0
    chosen = (
        NUMPY + TORCH
        if has_torch
        else [
            *NUMPY,
            "test_simple.py",
            "-k",
            "not torch and not pt and not path and not dropped and not not_found",
        ]
    )
    return subprocess.run(
        [*command, *chosen], cwd=folder, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    ).returncode


sys.exit(main(pathlib.Path(sys.argv[1])))
