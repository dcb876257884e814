#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds a program that has the library as a meson subproject.
usage: test_subproject.py SOURCE"""

import pathlib
import sys
import tempfile

from consumer import PROGRAM, clean_environment, need, run

# Found as any dependency: what the subproject overrides is taken.
MESON_BUILD = """project('consumer', 'c', meson_version: '>=1.0')
cachedtime = dependency('cachedtime', version: '>=0.1',
  default_options: ['tests=disabled', 'bench=disabled', 'examples=disabled',
    'man=disabled'])
executable('program', 'program.c', dependencies: cachedtime)
"""
WRAP = """[wrap-file]
directory = cachedtime

[provide]
dependency_names = cachedtime
"""


def build(tmp, source, kind):
    top = tmp / kind
    (top / "subprojects").mkdir(parents=True)
    (top / "subprojects" / "cachedtime").symlink_to(source)
    (top / "subprojects" / "cachedtime.wrap").write_text(WRAP)
    (top / "meson.build").write_text(MESON_BUILD)
    (top / "program.c").write_text(PROGRAM.read_text())
    environment = clean_environment()
    run("meson", "setup", top / "build", top, "--force-fallback-for",
        "cachedtime", "--default-library", kind, env=environment)
    run("meson", "compile", "-C", top / "build", "program", env=environment)
    run(top / "build" / "program", env=environment)


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    need("meson", "cc")
    with tempfile.TemporaryDirectory() as tmp:
        build(pathlib.Path(tmp), source, "shared")
        build(pathlib.Path(tmp), source, "static")


main()
