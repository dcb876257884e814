#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the linker made of the library: its symbols are those of the map and
of the header, and its flags those that the design rests on.
usage: test_shared_object.py LIBRARY MAP HEADER"""

import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def exported(library):
    """{name: (type, version)} of the dynamic symbols."""
    symbols = {}
    for line in output_of("nm", "-D", "--defined-only", library).splitlines():
        kind, name = line.split()[-2:]
        name, _, version = name.partition("@")
        symbols[name] = kind, version.lstrip("@")
    return symbols


def in_map(path):
    """(version, names) of the one node of the map."""
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(path).read_text(), flags=re.S)
    nodes = re.findall(r"(\w[\w.]*)\s*{\s*global:(.*?)local:\s*\*;\s*}", text,
                       flags=re.S)
    assert len(nodes) == 1, nodes
    version, names = nodes[0]
    return version, {name.strip() for name in names.split(";")
                     if name.strip()}


def in_header(path):
    """What the public header declares."""
    text = pathlib.Path(path).read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    readers = re.findall(r"^CT_(?:READER|PRECISE)\((\w+),", text, flags=re.M)
    functions = re.findall(r"^CT_API [\w \*]*?(ct_\w+)\(", text, flags=re.M)
    objects = re.findall(r"^extern CT_API [\w ]*?(ct_\w+);", text, flags=re.M)
    return {*readers, *functions, *objects}


def check_symbols(library, map_file, header):
    version, mapped = in_map(map_file)
    symbols = exported(library)
    # The version itself is an absolute symbol.
    names = {name for name, (kind, _) in symbols.items() if kind != "A"}
    declared = in_header(header)

    yield from (f"exported, but not in the map: {n}" for n in names - mapped)
    yield from (f"in the map, but not exported: {n}" for n in mapped - names)
    yield from (f"declared, but not in the map: {n}"
                for n in declared - mapped)
    yield from (f"in the map, but not declared: {n}"
                for n in mapped - declared)
    yield from (f"{n} has no version {version}" for n in names
                if symbols[n][1] not in ("", version))
    if len(declared) < 15 or symbols.get("ct_page", "?")[0] not in "BD":
        yield "this test no longer understands the header"


def check_dynamic(library):
    text = output_of("readelf", "-dW", library)
    if not re.search(r"\(SONAME\).*\[libcachedtime\.so\.0\]", text):
        yield "its SONAME isn't libcachedtime.so.0"
    # A dlclose() must not pull the code from under the ticker.
    if not re.search(r"\(FLAGS_1\).*\bNODELETE\b", text):
        yield "isn't NODELETE"
    # The executable's copy of the page is everybody's.
    if re.search(r"\(SYMBOLIC\)|\(FLAGS\).*\bSYMBOLIC\b", text):
        yield "is SYMBOLIC"
    if re.search(r"\(TEXTREL\)|\(FLAGS\).*\bTEXTREL\b", text):
        yield "has TEXTREL"


def check_segments(library):
    for line in output_of("readelf", "-lW", library).splitlines():
        match = re.match(r"\s+(LOAD|GNU_STACK)\s.*\s([R ][W ][E ])\s", line)
        if match and match[2][1:] == "WE":
            yield f"writable and executable: {line.strip()}"


def check_page(library):
    """The page fills whole pages, alone, so that it can be mapped over."""
    text = output_of("readelf", "--dyn-syms", "-W", library)
    match = re.search(r":\s*([0-9a-f]+)\s+(\w+)\s+OBJECT\s+GLOBAL\s+DEFAULT"
                      r"\s+\S+\s+ct_page", text)
    if not match:
        yield "ct_page isn't a data object"
        return
    address, size = int(match[1], 16), int(match[2], 0)
    if size not in (4096, 65536) or address % size != 0:
        yield f"ct_page has {size} bytes at {address:#x}"


def main():
    library, map_file, header = sys.argv[1:]
    for tool in ("nm", "readelf"):
        if shutil.which(tool) is None:
            print("skipped: no", tool)
            return SKIPPED
    wrong = [*check_symbols(library, map_file, header),
             *check_dynamic(library), *check_segments(library),
             *check_page(library)]
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main())
