"""Builds and loads the C kernels."""
import ctypes
import glob
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
# -Ofast reorders sums, which is fine for training; the reference (float64_model.py) does not use the kernels.
FLAGS = ["-Ofast", "-march=native", "-mprefer-vector-width=512", "-fopenmp", "-shared", "-fPIC"]
LIBRARIES = ["-l:libopenblas.so.0", "-lm"]


def load():
    """Compiles kernels/*.c for this CPU if needed and returns the loaded library.

    It must share the OpenMP runtime with PyTorch. BUILD_DIR overrides where the library is put.
    """
    directory = os.environ.get("BUILD_DIR", os.path.join(HERE, "build"))
    library = os.path.join(directory, "kernels.so")
    sources = sorted(glob.glob(os.path.join(HERE, "kernels", "*.c")))
    headers = glob.glob(os.path.join(HERE, "kernels", "*.h"))
    if not _is_newer(library, sources + headers):
        os.makedirs(directory, exist_ok=True)
        subprocess.check_call(["gcc", *FLAGS, *sources, "-o", library, *LIBRARIES])
    return ctypes.CDLL(library)


def _is_newer(library, inputs):
    return os.path.exists(library) and all(os.path.getmtime(library) >= os.path.getmtime(path) for path in inputs)
