#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The example waits as long as it must, and no stamp is in the future when it
is shown.  usage: test_commit_wait.py PROGRAM"""

import re
import subprocess
import sys
import time

LINE = re.compile(r"commit (\d) at (\d+) ns: off by ([\d.]+) ms at most, "
                  r"waited ([\d.]+) ms$")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    print("$", *command)
    print(done.stdout + done.stderr, end="", flush=True)
    return done


def check_commits(done, before_ns):
    """What is wrong, in words."""
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != 3:
        yield f"exited with {done.returncode} after {len(lines)} lines"
    last = before_ns
    for line in lines:
        match = LINE.match(line)
        if not match:
            yield "not understood: " + line
            continue
        stamp, off, waited = int(match[2]), float(match[3]), float(match[4])
        if not last <= stamp <= time.time_ns():
            yield f"{stamp} isn't between {last} and now"
        # Twice the error, less what the lines are rounded by.
        if waited < 2 * off - 0.01:
            yield f"waited for {waited} ms, not {2 * off}"
        last = stamp


def check_assumed(program, error):
    before_ns = time.time_ns()
    yield from check_commits(run(program, "--assume", error), before_ns)


def check_kernels(program):
    """By what the kernel says, be that something or nothing."""
    before_ns = time.time_ns()
    done = run(program)
    if done.returncode == 0:
        yield from check_commits(done, before_ns)
    elif done.returncode != 1 or done.stdout or \
            not re.search("unknown|adjtimex", done.stderr):
        yield "neither committed nor said why not"


def check_refused(program, error):
    done = run(program, "--assume", error)
    if done.returncode == 0 or done.stdout or error not in done.stderr:
        yield f"takes {error!r} for a time"


def main():
    program = sys.argv[1]
    wrong = [*check_assumed(program, "5ms"), *check_assumed(program, "200us"),
             *check_kernels(program)]
    for error in ("5", "ms", "-1ms", "0s", "nanms", "5 min", "1000s"):
        wrong += check_refused(program, error)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main())
