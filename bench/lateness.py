#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the ticker costs, how late it is and how old a running reader finds the
words: by tick, by load and by priority.

    lateness.py PROGRAM [--seconds N] [--json FILE]
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys

COLUMNS = ("tick", "priority", "load", "CPU us/tick", "% of a core",
           "late p50 us", "late p99", "late max", "age p50 ms", "age p99",
           "age p99.9", "age max", "% > 10 ms", "% fresh > 10 ms")
SPIN = ["sh", "-c", "while :; do :; done"]


class Quota:
    """A cgroup of our own with a fifth of one CPU; version 1 or 2."""

    def __init__(self):
        base = "/sys/fs/cgroup"
        v1 = os.path.join(base, "cpu")
        name = "cachedtime-bench-%d" % os.getpid()
        self.path = os.path.join(v1 if os.path.isdir(v1) else base, name)
        os.mkdir(self.path)
        if os.path.isdir(v1):
            self.write("cpu.cfs_period_us", "100000")
            self.write("cpu.cfs_quota_us", "20000")
        else:
            self.write("cpu.max", "20000 100000")

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w") as file:
            file.write(text)

    def enter(self):
        self.write("cgroup.procs", str(os.getpid()))

    def remove(self):
        os.rmdir(self.path)


def quantile(values, share):
    """The smallest of the values that `share` of them don't exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def run(program, kind, seconds, tick, priority, load):
    quota = Quota() if load == "quota 20 %" else None
    enter = quota.enter if quota else None
    spinners = []
    if load != "idle":
        count = 1 if quota else 2 * os.cpu_count()
        spinners = [subprocess.Popen(SPIN, preexec_fn=enter)
                    for _ in range(count)]
    environment = dict(os.environ, CT_TICK=tick, CT_PRIORITY=priority)
    try:
        output = subprocess.run([program, kind, str(seconds)], env=environment,
                                stdout=subprocess.PIPE, preexec_fn=enter,
                                check=True, text=True).stdout
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
        if quota:
            quota.remove()
    samples = collections.defaultdict(list)
    for line in output.splitlines():
        kind, value = line.split()
        samples[kind].append(int(value))
    return samples


def summary(samples, fresh, seconds, tick, priority, load):
    age, late = samples["age"], samples["late"]
    cpu = samples["cpu"][0] if samples["cpu"] else 0
    ticks = samples["ticks"][0]

    def share(values):
        return 100 * sum(v > 10e6 for v in values) / len(values)

    return dict(zip(COLUMNS, (
        tick, priority, load, cpu / 1e3, cpu * ticks / seconds / 1e7,
        statistics.median(late) / 1e3, quantile(late, .99) / 1e3,
        max(late) / 1e3, statistics.median(age) / 1e6, quantile(age, .99) / 1e6,
        quantile(age, .999) / 1e6, max(age) / 1e6, share(age), share(fresh))))


def cases():
    for tick in ("100us", "1ms", "10ms"):
        yield tick, "normal", "idle"
    for priority in ("normal", "fifo"):
        for load in ("idle", "spinners", "quota 20 %"):
            if (priority, load) != ("normal", "idle"):
                yield "1ms", priority, load


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()

    print(" | ".join(COLUMNS))
    rows = []
    for case in cases():
        try:
            samples, fresh = (
                run(options.program, kind, options.seconds, *case)
                for kind in ("plain", "fresh"))
        except OSError as error:
            print("%s | %s | %s | not possible here: %s" % (*case, error))
            continue
        rows.append(summary(samples, fresh["age"], options.seconds, *case))
        print(" | ".join("%.2f" % value if isinstance(value, float) else value
                         for value in rows[-1].values()), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    return not rows


if __name__ == "__main__":
    sys.exit(main())
