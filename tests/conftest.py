"""One thread per process, no window, ctrl-C heard, property tests that a busy machine does not change."""

import os
import signal

from hypothesis import settings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # numpy and torch read them when first imported: after this file
os.environ.setdefault("MPLBACKEND", "agg")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # as a shell starts what it runs in the background; the commands under test would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("irtaudit", deadline=None, derandomize=True)
settings.load_profile("irtaudit")
