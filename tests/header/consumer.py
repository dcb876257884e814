# SPDX-License-Identifier: MIT
"""What the tests of the installed library share."""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE / "program.c"


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def need(*tools):
    for tool in tools:
        if shutil.which(tool) is None:
            skip("no " + tool)


def run(*command, **kwargs):
    """Runs it; its output goes to ours. Returns its standard output."""
    command = [str(part) for part in command]
    print("$", shlex.join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **kwargs)
    print(done.stdout, flush=True)
    if done.returncode != 0:
        sys.exit(f"failed with {done.returncode}")
    return done.stdout


def clean_environment():
    """Ours, without what the surrounding build or a user set for itself."""
    return {key: value for key, value in os.environ.items()
            if not key.startswith(("CT_", "PKG_CONFIG", "MESON", "DESTDIR",
                                   "CFLAGS", "LDFLAGS", "LD_LIBRARY_PATH"))}
