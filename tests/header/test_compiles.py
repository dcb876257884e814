#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The public header compiles alone, without a warning, whatever comes before
and after it.  usage: test_compiles.py COMPILER STANDARD INCLUDE..."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77

FLAGS = ["-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wundef",
         "-Wcast-align", "-Wcast-qual", "-Wpointer-arith",
         "-Wsign-conversion", "-Wfloat-equal", "-Wformat=2",
         "-Wwrite-strings"]
# No -Wshadow for C++: ct_status is a function and a struct, as stat(2) is.
C_FLAGS = ["-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes",
           "-Wold-style-definition"]
CXX_FLAGS = ["-Wno-old-style-cast", "-Woverloaded-virtual"]

ALONE = "#include <cachedtime.h>\n"
TWICE = ALONE + ALONE
PAGE_ALONE = "#include <cachedtime/page.h>\n"
VERSION_ALONE = """#include <cachedtime/version.h>
#if !defined(CT_VERSION_MAJOR) || !defined(CT_VERSION_MINOR) || \\
    !defined(CT_VERSION_PATCH) || !defined(CT_VERSION)
#error "no version"
#endif
#if CT_VERSION_NUMBER != CT_VERSION_MAJOR * 10000 + \\
    CT_VERSION_MINOR * 100 + CT_VERSION_PATCH
#error "no number"
#endif
extern int not_empty;
"""

# All that the header has, in the subset of C and C++ that all know.
USE = ALONE + """
int64_t use_readers(void);
int64_t use_precise(void);
int64_t use_moment(void);
int64_t use_control(void);
void use_step(int64_t delta_ns, void *arg);

int64_t use_readers(void)
{
    int64_t (*reader)(void) = ct_now_ms;

    return ct_now_s() + ct_now_ms() + ct_now_us() + ct_now_ns() +
        ct_mono_ms() + ct_mono_us() + ct_mono_ns() + ct_boot_ms() +
        ct_tai_ns() + ct_now_ms_fresh(5) + ct_mono_ms_fresh(5) + reader();
}

int64_t use_precise(void)
{
    int64_t (*reader)(void) = ct_precise_ordered_ns;

    return ct_precise_ns() + ct_precise_mono_ns() + ct_precise_ordered_ns() +
        ct_precise_mono_ordered_ns() + ct_precise_slow(CT_PRECISE_WALL) +
        ct_precise_slow(CT_PRECISE_MONO) + reader();
}

void use_step(int64_t delta_ns, void *arg)
{
    *(int64_t *)arg = delta_ns;
}

int64_t use_moment(void)
{
    struct ct_snapshot snapshot;
    struct ct_bounds bounds;
    int64_t step_ns = 0;
    uint64_t (*generation)(void) = ct_generation;

    if (ct_snapshot(&snapshot) != 0 || ct_bounds(&bounds) != 0 ||
        ct_on_step(use_step, &step_ns) != 0)
        return 0;
    if (ct_generation() != generation() ||
        ct_generation_slow() != snapshot.generation)
        return step_ns;
    if (bounds.status == CT_BOUNDS_UNKNOWN ||
        bounds.status == CT_BOUNDS_FREE_RUNNING ||
        bounds.status == CT_BOUNDS_SYNCHRONISED)
        return bounds.earliest_ns + bounds.latest_ns + bounds.tai_offset_s;
    return snapshot.wall_ns + snapshot.mono_ns + snapshot.wall_s +
        snapshot.tai_offset_s + snapshot.age_ns;
}

int64_t use_control(void)
{
    struct ct_clocksource source = { "mine", 0, 0xff, 1000 };
    struct ct_config config = { sizeof(config), CT_MODE_TICK, 0, 0, 0, 0 };
    struct ct_status status;
    char text[64];

    config.clocksource = &source;
    config.tick_ns = CT_TICK_MIN_NS + CT_TICK_MAX_NS + CT_TICK_DEFAULT_NS;
    status.size = sizeof(status);
    return ct_start(&config) + ct_stop() + ct_refresh() + ct_age_ns() +
        ct_status(&status) + (ct_status_text(text, sizeof(text)) != 0) +
        (ct_version() != 0) + (int)sizeof(ct_page) +
        ct_read_slow(CT_WORD_WALL_MS) + status.precise +
        status.precise_error_ns;
}
"""
DECLARED = "#define CT_NO_INLINE\n" + USE
# What a program may have defined before.
SURROUNDED = "#define _GNU_SOURCE 1\n#include <time.h>\n" + USE + """
#include <errno.h>
#include <string.h>
#include <stdio.h>
"""

SOURCES = {"alone": ALONE, "twice": TWICE, "page": PAGE_ALONE,
           "version": VERSION_ALONE, "use": USE, "declared": DECLARED,
           "surrounded": SURROUNDED}


def flags_for(standard):
    flags = ["-std=" + standard] + FLAGS
    if standard.startswith(("c++", "gnu++")):
        return flags + CXX_FLAGS + ["-pedantic"]
    # Older C has no static assertions, which -pedantic then minds.
    if standard in ("gnu89", "c99"):
        return flags + C_FLAGS
    return flags + C_FLAGS + ["-pedantic"]


def main():
    compiler, standard, *dirs = sys.argv[1:]
    if shutil.which(compiler) is None:
        print("skipped: no", compiler)
        return SKIPPED

    failed = 0
    suffix = ".cc" if "++" in standard else ".c"
    with tempfile.TemporaryDirectory() as tmp:
        for name, text in SOURCES.items():
            source = pathlib.Path(tmp, name + suffix)
            source.write_text(text)
            for level in ("-O0", "-O2"):
                run = subprocess.run(
                    [compiler, *flags_for(standard), level]
                    + ["-I" + d for d in dirs]
                    + ["-c", str(source), "-o", str(source) + ".o"],
                    capture_output=True, text=True)
                if run.returncode != 0 or run.stderr:
                    print(f"{name} {level}:\n{run.stderr}")
                    failed = 1
    return failed


sys.exit(main())
