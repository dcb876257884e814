#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs the built library to a place of its own and builds a program with
it: by pkg-config, shared or static, or by CMake.
usage: test_installed.py pkg-config|static|cmake BUILD"""

import pathlib
import shlex
import subprocess
import sys
import tempfile

from consumer import PROGRAM, clean_environment, need, run, skip

CMAKE_LISTS = """cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(PkgConfig REQUIRED)
pkg_check_modules(cachedtime REQUIRED IMPORTED_TARGET cachedtime)
add_executable(program {program})
target_link_libraries(program PkgConfig::cachedtime)
"""


def install(build, root):
    """Returns an environment in which pkg-config finds it, and its libdir."""
    # Whatever installed it, the build is not touched.
    run("meson", "install", "-C", build, "--no-rebuild", "--quiet",
        "--destdir", root, env=clean_environment())
    found = list(pathlib.Path(root).rglob("cachedtime.pc"))
    if len(found) != 1:
        sys.exit(f"not one cachedtime.pc: {found}")
    environment = clean_environment()
    environment["PKG_CONFIG_LIBDIR"] = str(found[0].parent)
    environment["PKG_CONFIG_SYSROOT_DIR"] = root
    return environment, found[0].parent.parent


def pkg_config(environment, *flags):
    return shlex.split(run("pkg-config", *flags, "cachedtime",
                           env=environment))


def needed(program):
    """The shared libraries that a program wants."""
    return subprocess.run(["readelf", "-d", program], check=True,
                          capture_output=True, text=True).stdout


def check_files(libdir):
    prefix = libdir
    while not (prefix / "include").is_dir():
        prefix = prefix.parent
    for name in ("cachedtime.h", "cachedtime/page.h", "cachedtime/version.h"):
        if not (prefix / "include" / name).is_file():
            sys.exit("not installed: " + name)
    if not (libdir / "libcachedtime.so").exists():
        skip("only the archive was built")
    if (libdir / "libcachedtime.so").resolve().name == "libcachedtime.so":
        sys.exit("libcachedtime.so should be a link to its version")


def by_pkg_config(environment, libdir, tmp):
    check_files(libdir)
    program = tmp / "program"
    run("cc", "-O2", "-Wall", "-Werror", PROGRAM, "-o", program,
        *pkg_config(environment, "--cflags", "--libs"))
    if "libcachedtime.so.0" not in needed(program):
        sys.exit("isn't linked with libcachedtime.so.0")
    return program


def by_archive(environment, libdir, tmp):
    program = tmp / "program"
    flags = pkg_config(environment, "--static", "--cflags", "--libs")
    # The archive alone: the rest of the program stays shared.
    mixed = [part for flag in flags for part in (
        ["-Wl,-Bstatic", flag, "-Wl,-Bdynamic"]
        if flag == "-lcachedtime" else [flag])]
    run("cc", "-O2", "-Wall", "-Werror", PROGRAM, "-o", program, *mixed)
    if "libcachedtime" in needed(program):
        sys.exit("is linked with the shared library")
    run(program, env=environment)

    # All of it, where the system has a static libc.
    empty = tmp / "empty.c"
    empty.write_text("int main(void) { return 0; }\n")
    if subprocess.run(["cc", "-static", str(empty), "-o", str(tmp / "empty")],
                      capture_output=True).returncode != 0:
        print("no static libc here: that part is left out")
        return program
    run("cc", "-O2", "-Wall", "-Werror", "-static", PROGRAM, "-o", program,
        *flags)
    if "NEEDED" in needed(program):
        sys.exit("isn't static")
    return program


def by_cmake(environment, libdir, tmp):
    source = tmp / "source"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(
        CMAKE_LISTS.format(program=PROGRAM))
    run("cmake", "-S", source, "-B", tmp / "build",
        "-DCMAKE_BUILD_TYPE=Release", env=environment)
    run("cmake", "--build", tmp / "build", env=environment)
    return tmp / "build" / "program"


WAYS = {
    "pkg-config": (by_pkg_config, ["cc", "pkg-config", "meson", "readelf"]),
    "static": (by_archive, ["cc", "pkg-config", "meson", "readelf"]),
    "cmake": (by_cmake, ["cc", "pkg-config", "meson", "cmake"]),
}


def main():
    way, build = sys.argv[1:]
    build_program, tools = WAYS[way]
    need(*tools)
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        environment, libdir = install(build, str(tmp / "root"))
        program = build_program(environment, libdir, tmp)
        run(program, env={**environment, "LD_LIBRARY_PATH": str(libdir)})


main()
