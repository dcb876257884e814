#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the benchmarks, print what a read of each clock costs, and hold the
library to its promises. Each is a ratio within one run, never a time, and of
readers that of their quickest repetitions: a neighbour on the same core, which
a virtual machine can't even see, halves what a loop can do, at random. What a
tick costs, how late it comes and how precise the precise is, a time there, is
judged on an otherwise idle machine only.

Exit status: 0, or 1 if a promise is broken (in a full run)."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

# In CPUs; with more of the machine in use by others, a tick isn't judged.
IDLE = 0.1
TRIES = 3
# For each case; bench-precision takes a minute.
PRECISION_S = 10

KERNEL = ["clock_gettime(REALTIME)", "clock_gettime(MONOTONIC)",
          "gettimeofday", "syscall(clock_gettime)",
          "clock_gettime(REALTIME_COARSE)", "clock_gettime(MONOTONIC_COARSE)",
          "time"]
READERS = ["ct_now_s", "ct_now_ms", "ct_now_us", "ct_now_ns",
           "ct_mono_ms", "ct_mono_us", "ct_mono_ns", "ct_boot_ms"]
COUNTERS = ["rdtsc", "rdtscp", "lfence; rdtsc"]
UNORDERED = ["ct_precise_ns", "ct_precise_mono_ns"]
ORDERED = ["ct_precise_ordered_ns", "ct_precise_mono_ordered_ns"]

GROUPS = [
    ("kernel", "The kernel's clocks, through the C library"),
    ("inline", "cachedtime, inline in an executable"),
    ("inline, PIC", "cachedtime, inline in a shared object"),
    ("called", "cachedtime, its exported functions called"),
    ("live", "cachedtime while it is off: called, and live"),
    ("cores", "cachedtime, one reading thread, and one on each core"),
    ("precise", "The bare counter, and precise time, inline in an executable"),
    ("precise, PIC", "The same, inline in a shared object"),
    ("precise, called", "Precise time, its exported functions called"),
    ("precise, live", "Precise time while it is off: called, and live"),
]


def run_readers(folder, repetitions, min_time):
    """ns a read: {group: {name: [of each repetition]}}"""
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "readers.json")
        subprocess.run(
            [os.path.join(folder, "readers"),
             f"--benchmark_repetitions={repetitions}",
             f"--benchmark_min_time={min_time}",
             f"--benchmark_out={out}", "--benchmark_out_format=json"],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(out, encoding="utf-8") as file:
            runs = json.load(file)["benchmarks"]

    groups = {}
    for run in runs:
        if run["run_type"] == "iteration":
            group, name = run["run_name"].split("/", 1)
            # The thread's CPU time: being preempted doesn't count.
            groups.setdefault(group, {}).setdefault(name, []).append(
                run["cpu_time"])
    return groups


def machine_cpu_s():
    """CPU time of everybody since boot, a hypervisor's share included."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, softirq, steal = map(
            int, file.readline().split()[1:9])
    total = user + nice + system + irq + softirq + steal
    return total / os.sysconf("SC_CLK_TCK")


def own_cpu_s():
    return sum(os.times()[:4])


def run_json(folder, name, *options):
    """What it measured, and how many CPUs others had in use meanwhile."""
    start = time.monotonic()
    others = machine_cpu_s() - own_cpu_s()
    done = subprocess.run([os.path.join(folder, name), "--json", *options],
                          check=True, stdout=subprocess.PIPE)
    others = machine_cpu_s() - own_cpu_s() - others
    return {**json.loads(done.stdout),
            "others": max(0, others) / (time.monotonic() - start)}


def run_when_idle(folder, name, *options):
    best = run_json(folder, name, *options)
    for _ in range(1, TRIES):
        if best["others"] <= IDLE:
            break
        best = min(best, run_json(folder, name, *options),
                   key=lambda r: r["others"])
    return best


def first_line(path, default):
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().strip()
    except OSError:
        return default


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def print_machine():
    source = first_line("/sys/devices/system/clocksource/clocksource0/"
                        "current_clocksource", "unknown")
    print(f"{cpu_model()}, {len(os.sched_getaffinity(0))} CPUs, "
          f"Linux {platform.release()}, clocksource {source}")


def p90(values):
    return sorted(values)[(len(values) - 1) * 9 // 10]


def print_table(groups):
    base = min(groups["kernel"]["clock_gettime(REALTIME)"])

    print(f"\n{'ns a read':45} {'min':>8} {'median':>8} {'p90':>8}"
          "   clock_gettime(REALTIME) is")
    for group, title in GROUPS:
        print(f"\n{title}")
        for name, values in sorted(
                groups.get(group, {}).items(),
                key=lambda item: order(item[0])):
            print(f"  {name:43} {min(values):8.2f} "
                  f"{statistics.median(values):8.2f} {p90(values):8.2f}"
                  f"   {base / min(values):6.1f} times that")


def order(name):
    known = (KERNEL + ["plain load"] + READERS + ["ct_now_ms_fresh"]
             + COUNTERS + UNORDERED + ORDERED)
    return (known.index(name.split("/")[0]), name)


class Verdicts:
    """The promises, and whether they were kept."""

    def __init__(self):
        self.broken = 0

    def judge(self, promise, value, limit, at_least=False, others=0):
        kept = value >= limit if at_least else value <= limit
        verdict = "kept" if kept else "BROKEN"
        if not kept and others > IDLE:
            verdict = "unsure"
        self.broken += verdict == "BROKEN"
        print(f"  {verdict:7} {promise:57} {value:7.3f}"
              f"  ({'at least' if at_least else 'at most'} {limit:g})")


def judge_readers(verdicts, groups):
    def ratio(name, group, over, over_group):
        return min(groups[group][name]) / min(groups[over_group][over])

    def judge(promise, group, over, over_group, limit, names=READERS):
        value, name = max((ratio(name, group, over, over_group), name)
                          for name in names)
        verdicts.judge(f"{promise} ({name})", value, limit)

    for group in ("inline", "inline, PIC"):
        judge(f"{group}: to a plain load", group, "plain load", group, 1.5)
        judge(f"{group}: to REALTIME", group,
              "clock_gettime(REALTIME)", "kernel", 1 / 20)
        judge(f"{group}: to REALTIME_COARSE", group,
              "clock_gettime(REALTIME_COARSE)", "kernel", 1 / 4)

    verdicts.judge(
        "called: to REALTIME_COARSE (ct_now_ms_fresh)",
        ratio("ct_now_ms_fresh", "called",
              "clock_gettime(REALTIME_COARSE)", "kernel"), 1.6)

    for name in ("ct_now_ms", "ct_mono_ns"):
        alone = f"{name}/threads:1"
        for together in groups["cores"]:
            if together.startswith(name) and together != alone:
                verdicts.judge(
                    f"{together}: to alone",
                    ratio(together, "cores", alone, "cores"), 1.15)

    if "precise" not in groups or "rdtsc" not in groups["precise"]:
        print("  no counter can be used here: what precise time costs isn't "
              "judged")
        return
    for group in ("precise", "precise, PIC"):
        judge(f"{group}: to rdtsc", group, "rdtsc", group, 1.15, UNORDERED)
        judge(f"{group}: to REALTIME", group,
              "clock_gettime(REALTIME)", "kernel", 0.75, UNORDERED)
        judge(f"{group}: to lfence; rdtsc", group, "lfence; rdtsc", group,
              1.2, ORDERED)
        judge(f"{group}: to REALTIME", group,
              "clock_gettime(REALTIME)", "kernel", 1, ORDERED)


def print_others(measured):
    if measured["others"] > IDLE:
        print(f"  (others had {measured['others']:.1f} CPUs in use: a broken "
              "promise says nothing)")


def judge_ticker(verdicts, ticker):
    print(f"\nCPU per tick of 1 ms: library {ticker['library_ns']:.0f} ns, "
          f"bare loop {ticker['bare_ns']:.0f} ns; ratio in a round: quartiles "
          f"{ticker['ratio_q1']:.3f} and {ticker['ratio_q3']:.3f}")
    print_others(ticker)
    verdicts.judge("ticker: to a bare loop, median", ticker["ratio"], 1.1,
                   others=ticker["others"])


def judge_truth(verdicts, truth):
    print("\nReads at random moments:")
    for manner in ("asleep", "busy"):
        seen = truth[manner]
        print(f"  {manner:6} {seen['reads']} reads; age p50 "
              f"{seen['p50_us']:.0f}, p99 {seen['p99_us']:.0f}, p99.9 "
              f"{seen['p999_us']:.0f}, max {seen['max_us']:.0f} us")
    print_others(truth)
    for manner in ("asleep", "busy"):
        verdicts.judge(f"the millisecond is the true one, reader {manner}",
                       truth[manner]["right"], 0.95, at_least=True,
                       others=truth["others"])


def judge_precision(verdicts, precision):
    print("\nPrecise time less the kernel's, from a second after the first "
          "read:")
    for case in precision["cases"]:
        print(f"  {case['load']}, {case['reader'] + ',':8} "
              f"{'ticker,' if case['ticker'] else '':7} "
              f"{case['samples']:10} reads; p50 {case['p50_ns']}, "
              f"p99 {case['p99_ns']}, p99.9 {case['p999_ns']}, "
              f"p99.99 {case['p9999_ns']}, worst {case['worst_ns']:.0f}, "
              f"mean {case['mean_ns']:.1f} ns; {case['dropped']} dropped")
    print_others(precision)
    for load in ("idle", "busy"):
        cases = [case for case in precision["cases"]
                 if case["load"] == load and case["reader"] != "control"]
        if not all(case["precise"] for case in cases):
            print(f"  {load}: no counter was in use: not judged")
            continue
        for name, key, limit in (("p50", "p50_ns", 30), ("p99", "p99_ns", 150),
                                 ("p99.99", "p9999_ns", 1000)):
            verdicts.judge(
                f"precision, {load}, the worst case's {name}, ns",
                max(case[key] for case in cases), limit,
                others=precision["others"])


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="of the built benchmarks")
    parser.add_argument("--short", action="store_true",
                        help="the table only, in half a minute")
    parser.add_argument("--json", metavar="FILE",
                        help="keep everything measured there")
    return parser.parse_args()


def main():
    args = parse_args()
    measured = {}

    print_machine()
    sys.stdout.flush()
    measured["readers"] = run_readers(
        args.folder, *((41, 0.005) if args.short else (101, 0.005)))
    print_table(measured["readers"])

    verdicts = Verdicts()
    if not args.short:
        print("\nPromises, as ratios within this run")
        judge_readers(verdicts, measured["readers"])
        sys.stdout.flush()
        measured["ticker"] = run_when_idle(args.folder, "ticker")
        judge_ticker(verdicts, measured["ticker"])
        sys.stdout.flush()
        measured["truth"] = run_when_idle(args.folder, "truth")
        judge_truth(verdicts, measured["truth"])
        sys.stdout.flush()
        measured["precision"] = run_when_idle(
            args.folder, "precision", f"--seconds={PRECISION_S}")
        judge_precision(verdicts, measured["precision"])

    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(measured, file, indent=1)
    return 1 if verdicts.broken else 0


if __name__ == "__main__":
    sys.exit(main())
