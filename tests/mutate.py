#!/usr/bin/env python3
"""Mutation test of a kernel in assembly: every small mistake must show on the simulator.

    mutate.py [options] FILE.s DRIVER [ARGUMENT...]

FILE.s is NAME_ARCH.s. Its macros are expanded; then each instruction below is changed in each of the ways listed, one
change a mutant, and each mutant is assembled and handed to

    DRIVER [ARGUMENT...] OBJECT...

which runs the kernel of each object with every check on and prints a line for each: "ok" if the results are right and
nothing was found, anything else ("wrong ...", "finding ...", "failed ...", "crash ...") if the mutant showed. The
driver for the kernels of the tests is "check_sim_kernels NAME_ARCH[:SYMBOL]"; one for another kernel brings its own
shapes and arguments. Without a change it must print "ok".

    wait          deleted; each of its counts one higher, or dropped
    s_nop, v_nop  deleted; one state less
    barrier       deleted; signal and wait deleted together; a wait in front moved behind it
    m0            set-up deleted, other by 4, behind its first user
    lanes         DPP controls, masks, swizzles, permutations: another control, a constant other by one, 32-lane and
                  16-lane forms exchanged
    offset        dropped; one access further
    constant      one more, a literal halved, in integer instructions
    format        cbsz, blgp, op_sel, abid and the formats of matrix instructions: another one
    exec          a write of EXEC deleted

A mutant that behaves like the kernel stands in the list of equivalents with the reason, one a line:

    NAME_ARCH[:SYMBOL]  PLACE: CHANGE  # reason

where * stands for anything. PLACE is the label before the instruction + how many instructions behind it. CHANGE says
"deleted behind nothing" of a no-op behind inline assembly without an instruction: the compiler does not look into it
and expects the worst. Exit status 0: every mutant showed or stands in the list, and every line of the list for this
kernel was needed.
"""

import argparse
import fnmatch
import os
import re
import subprocess
import sys
import tempfile

CONSTANT = re.compile(r"^(-?\d+|0x[0-9a-f]+)$")
# Instructions whose integer constants are part of addresses, layouts, counts or masks.
INTEGER = re.compile(
    r"^(v_(lshl|lshr|ashr|and|or|xor|bfe|add|sub|mad|mul_(lo|hi|u32|i32)|mbcnt|perm|alignb|cmp|cndmask)|"
    r"s_(lshl|lshr|ashr|and|or|xor|bfe|bfm|add|sub|mul|mov|cmp|cselect|min|max|cmov|load|bitcmp))"
)
NOT_INTEGER = re.compile(r"_f(16|32|64)\b|_bf16|saveexec")
ACCESS_BYTES = (
    (r"b128|dwordx4|x4\b", 16),
    (r"b96|dwordx3", 12),
    (r"b64|dwordx2", 8),
    (r"b16|short", 2),
    (r"b8|byte|u8|i8", 1),
)
MEMORY = ("ds_", "global_", "flat_", "buffer_", "scratch_", "s_buffer_load")


class Instruction:
    def __init__(self, lines, number, place, rows):
        line = lines[number]
        self.line, self.number, self.place = line, number, place
        self.is_behind_nothing = [b.strip() for b in lines[max(number - 2, 0) : number]] == [";;#ASMSTART", ";;#ASMEND"]
        self.rows = rows  # of 16 lanes in a wave
        text = line.split(";")[0].split("//")[0].strip()
        self.text = re.sub(r"\s+", " ", text)
        self.name = self.text.split(" ")[0]
        self.rest = self.text[len(self.name) :].strip()
        self.operands = split_operands(self.rest)


def split_operands(rest):
    """Operands without modifiers: the last of them is followed by those."""
    parts = [p.strip() for p in re.split(r",(?![^\[]*\])", rest)]
    if parts and " " in parts[-1]:
        parts[-1] = parts[-1].split(" ")[0]
    return parts


def instructions_of(lines, symbol, arch):
    """Of the text from `symbol:` on to the kernel's descriptor; of every kernel's if it is None."""
    found, label, count, inside, in_text = [], "", 0, symbol is None, False
    for number, line in enumerate(lines):
        text = line.split(";")[0].split("//")[0].strip()
        match = re.match(r"^([.$\w]+):$", text)
        if match:
            label, count = match.group(1), 0
            inside = inside or label == symbol
            in_text = True
        elif text.startswith(".amdhsa_kernel"):
            in_text = False
            inside = symbol is None
        elif in_text and inside and re.match(r"^(s_|v_|ds_|global_|flat_|buffer_|scratch_|tensor_|cluster_)", text):
            found.append(Instruction(lines, number, f"{label}+{count}", 4 if arch.startswith("gfx9") else 2))
            count += 1
    return found


def replaced(text, span, by):
    return text[: span[0]] + by + text[span[1] :]


def one_more(number):
    return hex(int(number, 16) + 1) if number.startswith("0x") else str(int(number) + 1)


def waits(i, following):
    if not i.name.startswith("s_wait"):
        return
    yield [], "deleted"
    if i.name == "s_waitcnt":
        counts = list(re.finditer(r"(\w+cnt)\((\d+)\)", i.text))
        for c in counts:
            more = f"{c.group(1)}({int(c.group(2)) + 1})"
            yield [replaced(i.text, c.span(), more)], more
            if len(counts) > 1:
                yield [replaced(i.text, c.span(), "")], f"without {c.group(1)}"
    elif re.match(r"^s_wait_\w+cnt$", i.name) and CONSTANT.match(i.rest):
        yield [f"{i.name} {one_more(i.rest)}"], one_more(i.rest)


def nops(i, following):
    if i.name == "v_nop":
        yield [], "deleted"
    if i.name == "s_nop":
        yield [], "deleted behind nothing" if i.is_behind_nothing else "deleted"
        if int(i.rest, 0) > 0:
            yield [f"s_nop {int(i.rest, 0) - 1}"], "one state less"


def is_signal(i):
    return i.name in ("s_barrier", "s_barrier_signal")


def barriers(i, following):
    if i.name.startswith("s_barrier"):
        yield [], "deleted"


def writes_m0(i):
    return i.operands[:1] == ["m0"] and i.name.startswith("s_") and not i.name.startswith("s_barrier")


def m0_setups(i, following):
    if not writes_m0(i):
        return
    yield [], "deleted"
    if len(i.operands) == 2 and not CONSTANT.match(i.operands[1]):
        yield [f"s_add_u32 m0, {i.operands[1]}, 4"], "+ 4"
    elif len(i.operands) == 2:
        yield [f"{i.name} m0, {int(i.operands[1], 0) + 4}"], "+ 4"
    else:
        yield [i.text, "s_add_u32 m0, m0, 4", "s_nop 0"], "+ 4"


def lanes(i, following):
    for c in re.finditer(r"(row_shl|row_shr|row_ror|wave_shl|wave_shr|row_newbcast|row_share|row_xmask):(\d+)", i.text):
        other = int(c.group(2)) ^ 1 if int(c.group(2)) > 1 else int(c.group(2)) + 1
        yield [replaced(i.text, c.span(), f"{c.group(1)}:{other}")], f"{c.group(1)}:{other}"
    for c in re.finditer(r"quad_perm:\[(\d),(\d),(\d),(\d)\]", i.text):
        for k in range(1, 5):
            other = list(c.groups())
            other[k - 1] = str((int(other[k - 1]) + 1) % 4)
            control = f"quad_perm:[{','.join(other)}]"
            yield [replaced(i.text, c.span(), control)], control
    for c in re.finditer(r"\b(row_mirror|row_half_mirror|row_bcast:15|row_bcast:31)\b", i.text):
        other = {"row_mirror": "row_half_mirror", "row_half_mirror": "row_mirror",
                 "row_bcast:15": "row_bcast:31", "row_bcast:31": "row_bcast:15"}[c.group(1)]
        yield [replaced(i.text, c.span(), other)], other
    for c in re.finditer(r"(row_mask|bank_mask):0x([0-9a-f])", i.text):
        mask = int(c.group(2), 16)
        for bit in range(i.rows if c.group(1) == "row_mask" else 4):
            if mask >> bit & 1:
                other = f"{c.group(1)}:{hex(mask ^ 1 << bit)}"
                yield [replaced(i.text, c.span(), other)], f"{c.group(1)} without {bit}"
    for c in re.finditer(r"permlane(16|32)_swap", i.text):
        other = f"permlane{48 - int(c.group(1))}_swap"
        yield [replaced(i.text, c.span(), other)], other
        yield [], "deleted"
    if i.name.startswith(("v_permlane16", "v_permlanex16", "v_readlane", "v_writelane", "v_permlane_")):
        yield from constants(i, following, True)
    if i.name == "ds_swizzle_b32":
        for c in re.finditer(r"offset:(0x[0-9a-f]+|\d+)", i.text):
            yield [replaced(i.text, c.span(1), one_more(c.group(1)))], "+ 1"


def offsets(i, following):
    if i.name == "ds_swizzle_b32" or not i.name.startswith(MEMORY):
        return
    size = next((n for pattern, n in ACCESS_BYTES if re.search(pattern, i.name)), 4)
    for c in re.finditer(r"\b(offset0|offset1|offset):(-?\d+)", i.text):
        step = 1 if c.group(1) != "offset" else size
        yield [replaced(i.text, c.span(2), str(int(c.group(2)) + step))], f"{c.group(1)} + {step}"
        if int(c.group(2)) != 0:
            yield [replaced(i.text, c.span(), "")], f"without {c.group(1)}"
    if "offset" not in i.text and not i.name.startswith("s_"):
        yield [f"{i.text} offset:{size}"], f"offset + {size}"


def constants(i, following, any_name=False):
    if writes_m0(i):
        return
    if not any_name and (not INTEGER.match(i.name) or NOT_INTEGER.search(i.name)):
        return
    parts = re.split(r"(,(?![^\[]*\])|\s)", i.text)
    first = True
    for k, part in enumerate(parts):
        if not CONSTANT.match(part):
            continue
        for other in others_of(i, part):
            yield ["".join(parts[:k] + [other] + parts[k + 1 :])], f"{part} -> {other}" + ("" if first else " (second)")
        first = False


def others_of(i, constant):
    """A dword further where bits 1 and 0 do not count; of a literal also the half, or only that where 1 more may set a
    bit that is set already."""
    is_literal = abs(int(constant, 0)) > 64
    if i.name.startswith("s_load"):
        yield hex(int(constant, 0) + 4)
        return
    if not (is_literal and "_or_" in i.name):
        yield one_more(constant)
    if is_literal:
        yield hex(int(constant, 0) // 2)


# Of op_sel only the destination's bit, the last, means something: a source of 32 bits has no halves.
SOURCES_OF_32_BITS = re.compile(r"^v_cvt_(scalef32_)?pk_(fp8|bf8)_f32")
FORMATS = ("FP8", "BF8", "FP6", "BF6", "FP4")


def formats(i, following):
    if not i.name.startswith(("v_mfma", "v_wmma", "v_smfmac", "v_swmmac", "v_cvt", "v_pk", "v_fma_mix", "v_dot")):
        return
    for c in re.finditer(r"\b(cbsz|blgp|abid):(\d)", i.text):
        other = f"{c.group(1)}:{(int(c.group(2)) + 1) % 2}"
        yield [replaced(i.text, c.span(), other)], other
    if "f8f6f4" in i.name:
        for name in ("cbsz", "blgp"):
            if name not in i.text:
                yield [f"{i.text} {name}:1"], f"{name}:1"
    for c in re.finditer(r"(matrix_[ab]_fmt):MATRIX_FMT_(\w+)", i.text):
        other = {"FP8": "BF8", "BF8": "FP8", "FP6": "BF6", "BF6": "FP6", "FP4": "FP6"}[c.group(2)]
        yield [replaced(i.text, c.span(2), other)], f"{c.group(1)} {other}"
    if "_fp8_fp8" in i.name:
        for other in ("_fp8_bf8", "_bf8_fp8"):
            yield [i.text.replace("_fp8_fp8", other)], other
    for c in re.finditer(r"\b(op_sel|op_sel_hi|byte_sel):\[?([\d,]+)\]?", i.text):
        digits = c.group(2).split(",")
        first = len(digits) - 1 if SOURCES_OF_32_BITS.match(i.name) else 0
        for k, d in enumerate(digits[first:], first):
            other = ",".join(digits[:k] + [str(int(d) ^ 1)] + digits[k + 1 :])
            yield [replaced(i.text, c.span(2), other)], f"{c.group(1)} {other}"


def execs(i, following):
    if i.operands and i.operands[0] in ("exec", "exec_lo") and i.name.startswith("s_"):
        yield [], "deleted"
    elif "saveexec" in i.name or i.name.startswith("v_cmpx"):
        yield [], "deleted"


RULES = (waits, nops, barriers, m0_setups, lanes, offsets, constants, formats, execs)
KINDS = tuple(rule.__name__ for rule in RULES)


class Mutant:
    def __init__(self, rule, i, change, edits):
        self.rule, self.what, self.edits = rule, f"{i.place}: {i.text} => {change}", edits
        self.verdict = None


def mutants_of(instructions):
    for at, i in enumerate(instructions):
        following = instructions[at + 1 :]
        for rule in RULES:
            for lines, change in rule(i, following):
                yield Mutant(rule.__name__, i, change, {i.number: lines})
        if i.name.startswith("s_barrier_signal"):
            for other in following:
                if other.name == "s_barrier_wait":
                    yield Mutant("barriers", i, "deleted with its wait", {i.number: [], other.number: []})
                    break
        if i.name.startswith("s_wait") and following and is_signal(following[0]):
            edits = {i.number: [following[0].text], following[0].number: [i.text]}
            yield Mutant("barriers", i, "behind the barrier", edits)
        if writes_m0(i):
            for other in following:
                if "lds" in other.name or "lds" in other.text.split(" ") or "movrel" in other.name:
                    yield Mutant("m0_setups", i, "behind its user", {i.number: [], other.number: [other.text, i.text]})
                    break
                if writes_m0(other):
                    break


def expanded(options, path):
    """The text after the C preprocessor and the assembler's macros."""
    folders = [os.path.dirname(path) or "."] + options.include
    include = [word for folder in folders for word in ("-I", folder)]
    command = [options.clang, "-E", "-P", "-x", "assembler-with-cpp", *include, path]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    command = [options.clang, "-cc1as", "-triple", "amdgcn-amd-amdhsa", "-target-cpu", options.arch, "-filetype", "asm",
               *include, "-", "-o", "-"]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout.split("\n")


def assembled(options, lines, path):
    """False: the assembler refuses it."""
    with open(path + ".s", "w", encoding="utf-8") as to:
        to.write("\n".join(lines))
    command = [options.clang, "-target", "amdgcn-amd-amdhsa", f"-mcpu={options.arch}", path + ".s", "-o", path + ".co"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def with_edits(lines, edits):
    changed = []
    for number, line in enumerate(lines):
        changed += ["\t" + text for text in edits[number]] if number in edits else [line]
    return changed


def verdicts(options, paths):
    done = subprocess.run(options.driver + paths, check=False, capture_output=True, text=True)
    printed = done.stdout.splitlines()
    if done.returncode != 0 or len(printed) != len(paths):
        what = f"status {done.returncode}, {len(printed)} lines for {len(paths)} objects"
        sys.exit(f"{options.driver[0]}: {what}\n{done.stderr}")
    return printed


def equivalents(path, name):
    rows = []
    if path is not None:
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                body, _, reason = line.partition("#")
                fields = body.strip().split(None, 1)
                if not fields:
                    continue
                if not reason.strip():
                    sys.exit(f"{path}: no reason: {line.strip()}")
                if fnmatch.fnmatchcase(name, fields[0]):
                    rows.append(fields[1])
    return rows


def matches(pattern, what):
    """Only * is special: instructions are full of brackets."""
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), what) is not None


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clang", default=os.environ.get("AMDGCN_CC", "clang-22"))
    parser.add_argument("--symbol", help="only the kernel of this name")
    parser.add_argument("--equivalent", metavar="FILE", help="mutants that behave like the kernel, with reasons")
    parser.add_argument("--batch", type=int, default=16, help="mutants that the driver gets at once")
    parser.add_argument("--quiet", action="store_true", help="print only what did not show, and the score")
    parser.add_argument("--include", metavar="FOLDER", action="append", default=[], help="where included files are, too")
    parser.add_argument("--sample", metavar="N/OF", default="0/1",
                        help="only every OF-th mutant, beginning with number N: a large kernel has thousands")
    parser.add_argument("--kinds", metavar="KIND,...", type=lambda text: text.split(","), default=list(KINDS),
                        help=f"only mutants of these kinds: {', '.join(KINDS)}")
    parser.add_argument("--only", metavar="WORDS", help="only mutants whose description holds these words")
    parser.add_argument("file")
    parser.add_argument("driver", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    unknown = sorted(set(options.kinds) - set(KINDS))
    if unknown:
        parser.error(f"no such kind: {', '.join(unknown)}")
    options.stem = os.path.splitext(os.path.basename(options.file))[0]
    options.arch = options.stem.rpartition("_")[2]
    options.name = options.stem if options.symbol is None else f"{options.stem}:{options.symbol}"
    return options


def judge(options, lines, mutants, directory):
    """Fills the verdicts in; prints as they come."""
    for at in range(0, len(mutants), options.batch):
        batch, paths = [], []
        for n, mutant in enumerate(mutants[at : at + options.batch]):
            path = os.path.join(directory, f"mutant{n}")
            if assembled(options, with_edits(lines, mutant.edits), path):
                batch.append(mutant)
                paths.append(path + ".co")
            else:
                mutant.verdict = "refused by the assembler"
        for mutant, verdict in zip(batch, verdicts(options, paths) if paths else []):
            mutant.verdict = verdict
        for mutant in mutants[at : at + options.batch]:
            if not options.quiet:
                print(f"{mutant.rule:10} {mutant.what}: {mutant.verdict[:160]}", flush=True)


def main():
    options = parse_arguments()
    lines = expanded(options, options.file)
    mutants = list(mutants_of(instructions_of(lines, options.symbol, options.arch)))
    mutants = [m for m in mutants if m.rule in options.kinds]
    first, _, step = options.sample.partition("/")
    mutants = mutants[int(first) :: int(step)]
    if options.only:
        mutants = [m for m in mutants if options.only in m.what]
    with tempfile.TemporaryDirectory(prefix="etalon-mutate.") as directory:
        path = os.path.join(directory, "kernel")
        if not assembled(options, lines, path):
            sys.exit(f"{options.file}: its expansion does not assemble")
        sound = verdicts(options, [path + ".co"])[0]
        if sound != "ok":
            sys.exit(f"{options.file}: without a change: {sound}")
        judge(options, lines, mutants, directory)
    patterns = equivalents(options.equivalent, options.name)
    used, survivors = set(), []
    for mutant in mutants:
        if mutant.verdict == "ok":
            hits = [p for p in patterns if matches(p, mutant.what)]
            used.update(hits)
            if not hits:
                survivors.append(mutant)
    refused = sum(m.verdict.startswith("refused") for m in mutants)
    excused = sum(m.verdict == "ok" for m in mutants) - len(survivors)
    ran = len(mutants) - refused
    for mutant in survivors:
        print(f"SURVIVES   {mutant.rule:10} {mutant.what}")
    is_part = options.only or step != "1" or set(options.kinds) != set(KINDS)
    stale = [] if is_part else [p for p in patterns if p not in used]
    for pattern in stale:
        print(f"STALE      {options.name}  {pattern}")
    kinds = sorted({m.rule for m in mutants})
    for kind in kinds:
        of_kind = [m for m in mutants if m.rule == kind and not m.verdict.startswith("refused")]
        print(f"{options.name}: {kind}: {sum(m.verdict != 'ok' for m in of_kind)} of {len(of_kind)} showed")
    print(f"{options.name}: {ran} mutants, {ran - excused - len(survivors)} showed, {excused} equivalent, "
          f"{len(survivors)} survive; {refused} refused by the assembler")
    return 1 if survivors or stale else 0


if __name__ == "__main__":
    sys.exit(main())
