"""One thread per process, no window, and property tests that do not depend on how busy the machine is."""

import os

from hypothesis import settings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # numpy and torch read them when first imported: after this file
os.environ.setdefault("MPLBACKEND", "agg")

settings.register_profile("irtaudit", deadline=None, derandomize=True)
settings.load_profile("irtaudit")
