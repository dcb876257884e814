#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A read is one load of the right word, a test, a branch and a return: what
the compiler makes of it, instruction by instruction (x86-64).
usage: test_object_code.py COMPILER INCLUDE..."""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77

# Each reader and where page.h has its word.
READERS = {
    "ct_now_s": 0,
    "ct_now_ms": 8,
    "ct_now_us": 16,
    "ct_now_ns": 24,
    "ct_mono_ms": 64,
    "ct_mono_us": 72,
    "ct_mono_ns": 80,
    "ct_boot_ms": 88,
}

MODELS = {
    "not PIC": ["-fno-pic", "-fno-pie"],
    "PIE": ["-fPIE"],
    "PIC": ["-fPIC"],
}
LEVELS = ["-O2", "-O3", "-Os"]

FUNCTION = re.compile(r"^([0-9a-f]+) <(\w+)>:$")
INSTRUCTION = re.compile(r"^\s+([0-9a-f]+):\s+(\S+)\s*(.*?)\s*(?:#.*)?$")
RELOCATION = re.compile(r"^\s+[0-9a-f]+:\s+(R_X86_64_\w+)\s+(\S+)$")

# mov through the GOT: the address of the page.
GOT = re.compile(r"R_X86_64_(REX_)?GOTPCRELX?")
LOAD_FROM = re.compile(r"(?:0x([0-9a-f]+))?\(%(r\w\w)\),%rax$")
# A branch to where the word says "ask", or around that.
ASK, TIME = ("jle", "jng"), ("jg", "jnle")


def program():
    """extern "C": one name in both languages."""
    head = '#include <cachedtime.h>\n' \
        '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    body = "".join(f"int64_t f_{name}(void);\n"
                   f"int64_t f_{name}(void) {{ return {name}(); }}\n"
                   for name in READERS)
    return head + body + "#ifdef __cplusplus\n}\n#endif\n"


def disassemble(path):
    """{function: [(address, mnemonic, operands, relocation)]}"""
    text = subprocess.run(
        ["objdump", "-dr", "--no-show-raw-insn", path], check=True,
        capture_output=True, text=True).stdout
    functions, current = {}, None
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            current = functions.setdefault(match[2], [])
        elif match := RELOCATION.match(line):
            current[-1] = current[-1][:3] + ((match[1], match[2]),)
        elif match := INSTRUCTION.match(line):
            current.append((int(match[1], 16), match[2], match[3], None))
    return functions


def fast_path(code):
    """The instructions that run when the word holds a time."""
    at = {insn[0]: i for i, insn in enumerate(code)}
    path, i = [], 0
    while i < len(code) and len(path) < 20:
        address, mnemonic, operands, _ = code[i]
        i += 1
        # Landing pads and padding cost nothing and aren't ours.
        if mnemonic in ("endbr64", "nop", "nopl", "nopw", "data16"):
            continue
        path.append(code[i - 1])
        if mnemonic in ("ret", "retq", "repz"):
            break
        if mnemonic in TIME:
            i = at.get(int(operands.split()[0], 16), len(code))
    return path


def word_loaded(loads):
    """The offset in the page that one or two loads come from, or None."""
    _, _, operands, relocation = loads[-1]
    if len(loads) == 1:
        if relocation is None:
            return None
        kind, target = relocation
        match = re.match(r"ct_page(?:([+-]0x[0-9a-f]+))?$", target)
        if not match:
            return None
        offset = int(match[1] or "0", 16)
        # Relative to the end of the instruction, four bytes on.
        if kind == "R_X86_64_PC32":
            return offset + 4
        return offset if kind in ("R_X86_64_32S", "R_X86_64_32") else None

    relocated = loads[0][3]
    if relocated is None or not GOT.match(relocated[0]) \
            or not relocated[1].startswith("ct_page"):
        return None
    match = LOAD_FROM.match(operands)
    if not match or not loads[0][2].endswith("%" + match[2]):
        return None
    return int(match[1] or "0", 16)


def wrong_with(path, offset, most_loads):
    """What is wrong with a fast path, or None."""
    loads, rest = [], list(path)
    while rest and rest[0][1] == "mov":
        loads.append(rest.pop(0))
    if not 1 <= len(loads) <= most_loads:
        return f"{len(loads)} loads"
    if word_loaded(loads) != offset:
        return f"loads from {word_loaded(loads)}, not {offset}"
    if len(rest) != 3:
        return f"{len(rest)} instructions after the load"
    test, branch, back = rest
    if test[1:3] != ("test", "%rax,%rax"):
        return "no test of the word"
    if branch[1] not in ASK + TIME:
        return "no branch on its sign"
    if not back[1].startswith("ret"):
        return "no return"
    return None


def compile_and_check(compiler, dirs, level, model, tmp):
    source = pathlib.Path(tmp, "readers.cc" if "++" in compiler
                          else "readers.c")
    source.write_text(program())
    output = str(source) + ".o"
    subprocess.run([compiler, level, *MODELS[model]]
                   + ["-I" + d for d in dirs]
                   + ["-c", str(source), "-o", output], check=True)
    functions = disassemble(output)

    # gcc reads a datum of a PIE directly and has the linker copy it there;
    # clang goes through the GOT, as both must in PIC.
    direct = model == "not PIC" or (model == "PIE" and compiler in
                                    ("gcc", "g++"))
    failed = False
    for name, offset in READERS.items():
        path = fast_path(functions["f_" + name])
        wrong = wrong_with(path, offset, 1 if direct else 2)
        if wrong:
            print(f"{compiler} {level} {model} {name}: {wrong}")
            for _, mnemonic, operands, _ in path:
                print("\t", mnemonic, operands)
            failed = True
    return failed


def main():
    compiler, *dirs = sys.argv[1:]
    if platform.machine() != "x86_64":
        print("skipped: knows the instructions of x86-64 only")
        return SKIPPED
    for tool in (compiler, "objdump"):
        if shutil.which(tool) is None:
            print("skipped: no", tool)
            return SKIPPED

    failed = False
    with tempfile.TemporaryDirectory() as tmp:
        for level in LEVELS:
            for model in MODELS:
                failed |= compile_and_check(compiler, dirs, level, model, tmp)
    return 1 if failed else 0


sys.exit(main())
