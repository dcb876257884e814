#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run precision, which prints its table, and have gnuplot draw the error over
time.

    precision.py PROGRAM PICTURE [--seconds N]
"""
import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # not into the source
import verdict  # noqa: E402


def draw(trace, picture):
    machine = (f"{verdict.cpu_model()}, {os.cpu_count()} CPUs, "
               f"Linux {platform.release().split('-')[0]}")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "precision.gp")
    # Its strings, in single quotes, have no escapes but that one.
    settings = "; ".join(
        f"{name}='{value}'".replace("\\", "") for name, value in (
            ("trace", trace), ("picture", picture), ("machine", machine)))
    subprocess.run(["gnuplot", "-e", settings, script], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("picture", help="SVG file to write")
    parser.add_argument("--seconds", type=int, default=60,
                        help="for so long each case (60)")
    options = parser.parse_args()

    verdict.print_machine()
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as scratch:
        trace = os.path.join(scratch, "trace")
        subprocess.run([options.program, f"--seconds={options.seconds}",
                        f"--trace={trace}"], check=True)
        if shutil.which("gnuplot") is None:
            print("no picture: gnuplot isn't installed", file=sys.stderr)
            return
        draw(trace, options.picture)
    print(f"\n{options.picture}: {os.path.getsize(options.picture)} bytes")


if __name__ == "__main__":
    main()
