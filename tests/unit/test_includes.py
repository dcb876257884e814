#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Includes in src/ point one way: along the data's path, never upward, and
in no circle.  usage: test_includes.py SRC"""

import pathlib
import re
import sys

# A part may include parts of earlier rows, and within a row those to its
# left. A new file wants a place here: think which.
LAYERS = [
    ["arith", "kernel_clock", "lock", "cpu", "latch"],
    ["timekeeper", "trust", "servo"],
    ["clocksource"],
    ["clocksource_*"],
    ["watch"],
    ["page", "handover", "steps", "moment", "segment", "precise"],
    ["publisher"],
    ["ticker"],
]
# Beside the path. What each may include, and nothing else may include them:
BESIDE = {
    "config": ["clocksource", "ticker"],
    "bounds": ["arith", "kernel_clock", "lock", "latch", "steps"],
    "readers": [],
    "cachedtime": None,  # the one file that knows all the parts
}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def place(part):
    """Sorts a part along the path; None if it has no place there."""
    for row, parts in enumerate(LAYERS):
        for column, name in enumerate(parts):
            if name == part or (name.endswith("*")
                                and part.startswith(name[:-1])):
                return row, column
    return None


def included(src):
    """{file: [files it includes]}"""
    files = sorted([*src.glob("*.c"), *src.glob("*.h")])
    return {f.name: INCLUDE.findall(f.read_text()) for f in files}


def find_circle(graph):
    """A list of files that include each other in turn, or None."""
    done, path = set(), []

    def walk(name):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return None
        path.append(name)
        for other in graph.get(name, []):
            circle = walk(other)
            if circle:
                return circle
        path.pop()
        done.add(name)
        return None

    for name in graph:
        circle = walk(name)
        if circle:
            return circle
    return None


def may_include(part, other):
    if part == other:
        return True
    if part in BESIDE:
        allowed = BESIDE[part]
        return allowed is None or other in allowed
    mine, theirs = place(part), place(other)
    return mine is not None and theirs is not None and theirs < mine


def check(graph):
    """All that is wrong, in words."""
    wrong = []
    for name, others in graph.items():
        part = pathlib.Path(name).stem
        if part not in BESIDE and place(part) is None:
            wrong.append(f"{name} has no place in the layers of this test")
        for other in others:
            if other not in graph:
                wrong.append(f"{name} includes {other}, which isn't in src/")
            elif not may_include(part, pathlib.Path(other).stem):
                wrong.append(f"{name} includes {other}: against the path")
    circle = find_circle(graph)
    if circle:
        wrong.append("a circle: " + " > ".join(circle))
    return wrong


def check_myself():
    """The test is worth something only if it fails."""
    good = {"lock.h": [], "lock.c": ["lock.h"], "ticker.h": [],
            "ticker.c": ["ticker.h", "lock.h"]}
    assert not check(good)
    upward = dict(good, **{"lock.c": ["lock.h", "ticker.h"]})
    assert any("against the path" in w for w in check(upward))
    circle = dict(good, **{"ticker.h": ["lock.h"], "lock.h": ["ticker.h"]})
    assert any("a circle" in w for w in check(circle))
    stranger = dict(good, **{"sundial.c": []})
    assert any("no place" in w for w in check(stranger))


def main():
    check_myself()
    graph = included(pathlib.Path(sys.argv[1]))
    if not graph:
        print("nothing found in", sys.argv[1])
        return 1
    wrong = check(graph)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main())
