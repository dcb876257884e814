#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A read is one load of the right word, a test, a branch and a return; a
precise one, the counter and a multiplication between two looks at the latch:
what the compiler makes of it, instruction by instruction (x86-64).
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
    "ct_tai_ns": 96,
    "ct_generation": 40,
}

# The precise readers: whether they are ordered, and how many words they load.
PRECISE = {
    "ct_precise_ns": (False, 7),
    "ct_precise_mono_ns": (False, 6),
    "ct_precise_ordered_ns": (True, 7),
    "ct_precise_mono_ordered_ns": (True, 6),
}
# Where page.h has the latch's count, and both segments.
COUNT, SEGMENTS = 256, range(320, 448)

# What an object wants of the library.
INLINE_WANTS = {"ct_page", "ct_read_slow", "ct_generation_slow",
                "ct_precise_slow"}

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
# A branch to where the word says "ask", or around that. A generation has no
# sign.
ASK, TIME = ("jle", "jng", "je", "jz"), ("jg", "jnle", "jne", "jnz")
PADDING = ("endbr64", "nop", "nopl", "nopw", "data16", "cs")


def program():
    """extern "C": one name in both languages."""
    head = '#include <cachedtime.h>\n' \
        '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    body = "".join(f"int64_t f_{name}(void);\n"
                   f"int64_t f_{name}(void) {{ return (int64_t){name}(); }}\n"
                   for name in [*READERS, *PRECISE])
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
        if mnemonic in PADDING:
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


def paths(code, i=0, seen=()):
    """All ways from there to a return that make no call."""
    at = {insn[0]: j for j, insn in enumerate(code)}
    path = []
    while i < len(code) and i not in seen:
        address, mnemonic, operands, relocation = code[i]
        seen += (i,)
        i += 1
        if mnemonic in PADDING:
            continue
        path.append(code[i - 1])
        if mnemonic.startswith("ret"):
            yield path
            return
        if mnemonic.startswith("call"):
            return
        if mnemonic.startswith("j"):
            # With a relocation it goes elsewhere.
            there = at.get(int(operands.split()[0], 16))
            if relocation is None and there is not None:
                for rest in paths(code, there, seen):
                    yield path + rest
            if mnemonic == "jmp":
                return


# displacement(base,index,scale), or displacement(%rip).
MEMORY = re.compile(r"(-?0x[0-9a-f]+)?\((%\w+)?(?:,(%\w+)(?:,\d)?)?\)")


def loads_of(path):
    """[(place in the path, offset in the page or None)], the table's left out.
    An offset counts from the page, or, with an index, from its first copy."""
    loads, page, offsets = [], set(), {}
    for i, (_, mnemonic, operands, relocation) in enumerate(path):
        target = operands.rsplit(",", 1)[-1]
        if relocation and GOT.match(relocation[0]):
            page.add(target)
            offsets[target] = 0
            continue
        memory = MEMORY.search(operands)
        offset = None
        if memory and relocation and relocation[1].startswith("ct_page"):
            addend = relocation[1][len("ct_page"):] or "0"
            offset = int(addend, 16)
            offset += 4 if relocation[0] == "R_X86_64_PC32" else 0
        elif memory:
            known = [offsets[r] for r in memory.groups()[1:] if r in offsets]
            if known:
                offset = known[0] + int(memory[1] or "0", 16)
        elif relocation and relocation[1].startswith("ct_page"):
            # An address as a number.
            offset = int(relocation[1][len("ct_page"):] or "0", 16)
        else:
            known = [offsets[r] for r in re.findall(r"%\w+", operands)
                     if r in offsets]
            offset = known[0] if known else None
            number = re.match(r"\$(-?0x[0-9a-f]+),", operands)
            if known and number and mnemonic == "add":
                offset += int(number[1], 16)
        if memory and not mnemonic.startswith(("lea", "nop")):
            loads.append((i, offset))
            offsets.pop(target, None)
        elif mnemonic.startswith(("lea", "mov", "add", "or")):
            if offset is not None:
                offsets[target] = offset
            else:
                offsets.pop(target, None)
        elif not mnemonic.startswith(("cmp", "test", "j")):
            offsets.pop(target, None)
    return loads


def is_store(mnemonic, operands):
    """Of the instructions that may be there."""
    return not mnemonic.startswith(("cmp", "test", "nop")) and \
        operands.rsplit(" ", 1)[-1].endswith(")") and "," in operands


def wrong_with_precise(code, ordered, words):
    """What is wrong with a precise reader, or None."""
    found = list(paths(code))
    if len(found) != 1:
        return f"{len(found)} ways to the time, not 1"
    path = found[0]
    names = [mnemonic for _, mnemonic, _, _ in path]

    for _, mnemonic, operands, _ in path:
        if re.search(r"%(xmm|ymm|zmm|st|mm)", operands):
            return f"floating point: {mnemonic} {operands}"
        if mnemonic.startswith(("lock", "xchg", "mfence", "sfence", "cpuid",
                                "div", "idiv")):
            return mnemonic
        if is_store(mnemonic, operands):
            return f"a store: {mnemonic} {operands}"
    if names.count("rdtsc") != 1 or "rdtscp" in names:
        return "not one rdtsc"
    counter = names.index("rdtsc")
    if names.count("lfence") != ordered:
        return f"{names.count('lfence')} lfence"
    if ordered and names[counter - 1] != "lfence":
        return "lfence isn't just before rdtsc"
    if sum(name.startswith(("imul", "mul")) for name in names) != 1:
        return "not one multiplication"
    # Where there is no segment the counter may not even be read.
    if not any(name.startswith("j") for name in names[:counter]):
        return "the counter is read whatever the span"

    loads = loads_of(path)
    if len(loads) != words:
        return f"{len(loads)} loads: {loads}"
    if loads[0][1] != COUNT:
        return f"looks at {loads[0][1]} first, not at the count"
    if loads[-1][1] != COUNT:
        return f"looks at {loads[-1][1]} last, not at the count"
    if any(offset not in SEGMENTS for _, offset in loads[1:-1]):
        return f"loads from {loads}"
    if loads[-1][0] < counter:
        return "looks at the count again before the counter is read"
    if ordered and not (MEMORY.search(path[loads[-1][0]][2]) and
                        depends(path, counter, loads[-1][0])):
        return "the last look may come before the counter is read"
    return None


def depends(path, counter, load):
    """Is a register of the load's address made of what rdtsc left?"""
    made = {"a", "d"}
    for _, mnemonic, operands, _ in path[counter + 1:load]:
        registers = [whole(r) for r in re.findall(r"%(\w+)", operands)]
        if not registers or mnemonic.startswith(("cmp", "test", "j")):
            continue
        *sources, target = registers
        keeps = not mnemonic.startswith(("mov", "lea"))
        if made & {*sources} or (keeps and target in made):
            made.add(target)
        elif not keeps:
            made.discard(target)
    memory = MEMORY.search(path[load][2])
    return bool(made & {whole(r[1:]) for r in memory.groups()[1:] if r})


def whole(register):
    """One name for all the widths of a register."""
    if re.match(r"[re]?[abcd]x$", register):
        return register[-2]
    if re.match(r"r\d+", register):
        return register.rstrip("dwb")
    return register[-2:]


def wanted(path):
    """The symbols that an object wants."""
    text = subprocess.run(["nm", "-u", path], check=True,
                          capture_output=True, text=True).stdout
    return {line.split()[-1] for line in text.splitlines()} - {
        "_GLOBAL_OFFSET_TABLE_"}


def build(compiler, dirs, flags, tmp):
    source = pathlib.Path(tmp, "readers.cc" if "++" in compiler
                          else "readers.c")
    source.write_text(program())
    output = str(source) + ".o"
    subprocess.run([compiler, *flags] + ["-I" + d for d in dirs]
                   + ["-c", str(source), "-o", output], check=True)
    return output


def check_wanted(compiler, dirs, tmp):
    """Inline, what they ask; not inline, themselves."""
    failed = False
    for flag, names in ((["-O2"], INLINE_WANTS),
                        (["-O2", "-DCT_NO_INLINE"], {*READERS, *PRECISE}),
                        (["-O0"], INLINE_WANTS)):
        found = wanted(build(compiler, dirs, flag, tmp))
        if found != names:
            print(f"{compiler} {flag}: wants {sorted(found ^ names)}, "
                  "or doesn't")
            failed = True
    return failed


def compile_and_check(compiler, dirs, level, model, tmp):
    output = build(compiler, dirs, [level, *MODELS[model]], tmp)
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
    for name, (ordered, words) in PRECISE.items():
        code = functions["f_" + name]
        wrong = wrong_with_precise(code, ordered, words)
        if wrong:
            print(f"{compiler} {level} {model} {name}: {wrong}")
            for address, mnemonic, operands, relocation in code:
                print(f"\t{address:x}: {mnemonic} {operands}",
                      relocation or "")
            failed = True
    return failed


def main():
    compiler, *dirs = sys.argv[1:]
    if platform.machine() != "x86_64":
        print("skipped: knows the instructions of x86-64 only")
        return SKIPPED
    for tool in (compiler, "objdump", "nm"):
        if shutil.which(tool) is None:
            print("skipped: no", tool)
            return SKIPPED

    failed = False
    with tempfile.TemporaryDirectory() as tmp:
        failed |= check_wanted(compiler, dirs, tmp)
        for level in LEVELS:
            for model in MODELS:
                failed |= compile_and_check(compiler, dirs, level, model, tmp)
    return 1 if failed else 0


sys.exit(main())
