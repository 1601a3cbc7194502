#!/usr/bin/env python3
"""Compares the wait states of sim/hazards.def with those that LLVM puts between two instructions.

    witness_hazards.py PROGRAM [LLC]

PROGRAM is check_sim_checks: `PROGRAM --states ARCH` reads "first ; second" and prints the states that the table wants.
Each pair becomes a machine function of its own; LLVM's hazard recognizer runs over all of them, and the assembly that
comes out has its s_nop or v_nop between the two. TAP on stdout; without llc 22 everything is skipped, visibly.
"""
import os
import re
import shutil
import subprocess
import sys


def regs(prefix, first, count=1):
    return "$" + "_".join(f"{prefix}{i}" for i in range(first, first + count))


def v(first, count=1):
    return regs("vgpr", first, count)


# gfx950: name, machine opcode, registers of D, A, B, operands behind C
MFMA = {
    "xdl4_f16": ("V_MFMA_F32_4X4X4F16", 4, 2, 2, "0, 0, 0"),
    "xdl16_fp8": ("V_MFMA_F32_16X16X32_FP8_FP8", 4, 2, 2, "0, 0, 0"),
    "xdl16_bf16": ("V_MFMA_F32_16X16X32_BF16", 4, 4, 4, "0, 0, 0"),
    "xdl16_f16": ("V_MFMA_F32_16X16X16F16", 4, 2, 2, "0, 0, 0"),
    "xdl16_i8": ("V_MFMA_I32_16X16X64_I8", 4, 4, 4, "0, 0, 0"),
    "xdl32_fp8": ("V_MFMA_F32_32X32X16_FP8_FP8", 16, 2, 2, "0, 0, 0"),
    "xdl32_bf16": ("V_MFMA_F32_32X32X16_BF16", 16, 4, 4, "0, 0, 0"),
    "xdl32_f16": ("V_MFMA_F32_32X32X8F16", 16, 2, 2, "0, 0, 0"),
    "f8f6f4_16_f8f8": ("V_MFMA_F32_16X16X128_F8F6F4_f8_f8", 4, 8, 8, "0, 0"),
    "f8f6f4_16_f4f4": ("V_MFMA_F32_16X16X128_F8F6F4_f4_f4", 4, 4, 4, "4, 4"),
    "f8f6f4_16_f8f4": ("V_MFMA_F32_16X16X128_F8F6F4_f8_f4", 4, 8, 4, "0, 4"),
    "f8f6f4_16_f6f6": ("V_MFMA_F32_16X16X128_F8F6F4_f6_f6", 4, 6, 6, "2, 2"),
    "f8f6f4_32_f8f8": ("V_MFMA_F32_32X32X64_F8F6F4_f8_f8", 16, 8, 8, "0, 0"),
    "f8f6f4_32_f4f4": ("V_MFMA_F32_32X32X64_F8F6F4_f4_f4", 16, 4, 4, "4, 4"),
    "f8f6f4_32_f4f8": ("V_MFMA_F32_32X32X64_F8F6F4_f4_f8", 16, 4, 8, "4, 0"),
    "scale_16_f8f8": ("V_MFMA_SCALE_F32_16X16X128_F8F6F4_f8_f8", 4, 8, 8, "0, 0, $vgpr200, $vgpr201, 0, 0"),
    "scale_32_f8f8": ("V_MFMA_SCALE_F32_32X32X64_F8F6F4_f8_f8", 16, 8, 8, "0, 0, $vgpr200, $vgpr201, 0, 0"),
    "scale_32_f4f4": ("V_MFMA_SCALE_F32_32X32X64_F8F6F4_f4_f4", 16, 4, 4, "4, 4, $vgpr200, $vgpr201, 0, 0"),
    "sgemm4_f32": ("V_MFMA_F32_4X4X1F32", 4, 1, 1, "0, 0, 0"),
    "sgemm16_f32": ("V_MFMA_F32_16X16X4F32", 4, 1, 1, "0, 0, 0"),
    "sgemm32_f32": ("V_MFMA_F32_32X32X2F32", 16, 1, 1, "0, 0, 0"),
}


def mfma(kind, d, a, b, c):
    opcode, dn, an, bn, rest = MFMA[kind]
    early = "early-clobber " if dn > 4 else ""
    return (f"{early}{v(d, dn)} = {opcode}_vgprcd_e64 {v(a, an)}, {v(b, bn)}, {v(c, dn)}, {rest}, "
            "implicit $mode, implicit $exec")


def mov(d, s):
    return f"{v(d)} = V_MOV_B32_e32 {v(s)}, implicit $exec"


def mfma_pairs():
    for one in MFMA:
        first = mfma(one, 100, 40, 60, 100)
        yield f"{one}: VALU reads D", first, mov(10, 100)
        yield f"{one}: VALU writes D", first, mov(100, 10)
        yield f"{one}: VALU overwrites A", first, mov(40, 10)
        yield f"{one}: VALU overwrites C", mfma(one, 100, 40, 60, 130), mov(130, 10)
        yield f"{one}: store of D", first, f"GLOBAL_STORE_DWORD {v(10, 2)}, {v(100)}, 0, 0, implicit $exec"
        yield f"{one}: address in D", first, f"{v(20)} = GLOBAL_LOAD_DWORD {v(100, 2)}, 0, 0, implicit $exec"
        yield f"{one}: ds_write of D", first, f"DS_WRITE_B32_gfx9 {v(10)}, {v(100)}, 0, 0, implicit $exec"
        yield f"{one}: ds_read into D", first, f"{v(100)} = DS_READ_B32_gfx9 {v(10)}, 0, 0, implicit $exec"
        yield f"{one}: load into D", first, f"{v(100)} = GLOBAL_LOAD_DWORD {v(10, 2)}, 0, 0, implicit $exec"
        yield f"{one}: VALU writes A before", mov(40, 10), first
        yield f"{one}: VALU writes C before", mov(100, 10), first
        yield (f"{one}: v_cmpx before", f"V_CMPX_EQ_U32_e32 {v(8)}, {v(9)}, implicit-def $vcc, implicit-def $exec, "
               "implicit $exec", first)
        for two in MFMA:
            same_size = MFMA[one][1] == MFMA[two][1]
            if same_size:
                yield f"{one} to {two}: same C", first, mfma(two, 100, 40, 60, 100)
            yield f"{one} to {two}: part of C", first, mfma(two, 140, 40, 60, 102)
            yield f"{one} to {two}: A", first, mfma(two, 150, 100, 60, 150)
            yield f"{one} to {two}: B", first, mfma(two, 150, 40, 100, 150)
        yield f"{one}: scale", mfma(one, 200, 40, 60, 200), mfma("scale_16_f8f8", 100, 40, 60, 100)


EXP = "$vgpr1 = V_EXP_F32_e32 $vgpr2, implicit $mode, implicit $exec"
CMPX = "V_CMPX_EQ_U32_e32 $vgpr8, $vgpr9, implicit-def $vcc, implicit-def $exec, implicit $exec"
CMP = "V_CMP_EQ_U32_e32 $vgpr8, $vgpr9, implicit-def $vcc, implicit $exec"
FIRST = "$sgpr2 = V_READFIRSTLANE_B32 $vgpr1, implicit $exec"
SWAP32 = "$vgpr1, $vgpr3 = V_PERMLANE32_SWAP_B32_e32 $vgpr1, $vgpr3, implicit $exec"
SWAP16 = "$vgpr1, $vgpr3 = V_PERMLANE16_SWAP_B32_e32 $vgpr1, $vgpr3, implicit $exec"
CVT_LO = "$vgpr1 = V_CVT_PK_FP8_F32_e64 0, $vgpr2, 0, $vgpr3, $vgpr1, 0, implicit $mode, implicit $exec"
CVT_HI = "$vgpr1 = V_CVT_PK_FP8_F32_e64 8, $vgpr2, 0, $vgpr3, $vgpr1, 0, implicit $mode, implicit $exec"
SCALE_HI = ("$vgpr1 = V_CVT_SCALEF32_PK_FP8_F32_e64 8, $vgpr2, 0, $vgpr3, 0, $vgpr6, $vgpr1, 0, implicit $mode, "
            "implicit $exec")
DOT2 = "$vgpr1 = V_DOT2_F32_F16 8, $vgpr2, 8, $vgpr3, 8, $vgpr4, 0, 0, 0, 0, 0, implicit $mode, implicit $exec"
DPP = "$vgpr5 = V_MOV_B32_dpp $vgpr5, $vgpr1, 0, 15, 15, 0, implicit $exec"
SGPR_MASK = "$sgpr2_sgpr3 = V_CMP_EQ_U32_e64 $vgpr8, $vgpr9, implicit $exec"
STORE4 = "GLOBAL_STORE_DWORDX4 $vgpr10_vgpr11, $vgpr20_vgpr21_vgpr22_vgpr23, 0, 0, implicit $exec"
STORE3 = "GLOBAL_STORE_DWORDX3 $vgpr10_vgpr11, $vgpr20_vgpr21_vgpr22, 0, 0, implicit $exec"
STORE2 = "GLOBAL_STORE_DWORDX2 $vgpr10_vgpr11, $vgpr20_vgpr21, 0, 0, implicit $exec"
OTHER_GFX950 = [
    ("VALU to permlane32_swap", mov(1, 2), SWAP32),
    ("VALU to permlane16_swap", mov(3, 2), SWAP16),
    ("swap to VALU", SWAP32, mov(5, 1)),
    ("swap to swap", SWAP32, SWAP16),
    ("v_cmpx to swap", CMPX, SWAP32),
    ("trans to VALU", EXP, "$vgpr5 = V_ADD_F32_e32 $vgpr1, $vgpr1, implicit $mode, implicit $exec"),
    ("trans to trans", EXP, "$vgpr5 = V_EXP_F32_e32 $vgpr1, implicit $mode, implicit $exec"),
    ("trans, overwritten", EXP, mov(1, 3)),
    ("cvt_pk_fp8 low to high", CVT_LO, CVT_HI),
    ("cvt_pk_fp8 high to VALU", CVT_HI, mov(5, 1)),
    ("cvt_pk_fp8 low to VALU", CVT_LO, mov(5, 1)),
    ("cvt_scalef32_pk_fp8 high to VALU", SCALE_HI, mov(5, 1)),
    ("VALU SGPR to VMEM", FIRST, "$vgpr5 = GLOBAL_LOAD_DWORD_SADDR $sgpr2_sgpr3, $vgpr4, 0, 0, implicit $exec"),
    ("VALU SGPR to VALU", FIRST, "$vgpr5 = V_MOV_B32_e32 $sgpr2, implicit $exec"),
    ("VALU SGPR to SALU", FIRST, "$sgpr5 = S_MOV_B32 $sgpr2"),
    ("VCC to v_cndmask", CMP, "$vgpr5 = V_CNDMASK_B32_e32 $vgpr1, $vgpr2, implicit $vcc, implicit $exec"),
    ("SGPR mask to v_cndmask", SGPR_MASK,
     "$vgpr5 = V_CNDMASK_B32_e64 0, $vgpr1, 0, $vgpr2, $sgpr2_sgpr3, implicit $exec"),
    ("VCC to v_addc", "$vgpr6 = V_ADD_CO_U32_e32 $vgpr8, $vgpr9, implicit-def $vcc, implicit $exec",
     "$vgpr5 = V_ADDC_U32_e32 $vgpr1, $vgpr2, implicit-def $vcc, implicit $vcc, implicit $exec"),
    ("SGPR to lane select", SGPR_MASK, "$sgpr8 = V_READLANE_B32 $vgpr1, $sgpr2"),
    ("VALU to v_readlane", mov(1, 2), "$sgpr8 = V_READLANE_B32 $vgpr1, $sgpr2"),
    ("VALU to v_readfirstlane", mov(1, 2), "$sgpr8 = V_READFIRSTLANE_B32 $vgpr1, implicit $exec"),
    ("VALU to DPP", mov(1, 2), DPP),
    ("v_cmpx to DPP", CMPX, DPP),
    ("M0 to global_load_lds", "$m0 = S_MOV_B32 $sgpr1",
     "GLOBAL_LOAD_LDS_DWORDX4 $vgpr2_vgpr3, 0, 0, implicit $m0, implicit $exec"),
    ("M0 to buffer_load lds", "$m0 = S_MOV_B32 $sgpr1",
     "BUFFER_LOAD_DWORDX4_LDS_OFFEN $vgpr2, $sgpr4_sgpr5_sgpr6_sgpr7, $sgpr8, 0, 0, 0, implicit $m0, implicit $exec"),
    ("store x4, overwritten", STORE4, mov(20, 1)),
    ("store x3, overwritten", STORE3, mov(22, 1)),
    ("store x2, overwritten", STORE2, mov(20, 1)),
    ("store x4, loaded over", STORE4, "$vgpr20 = DS_READ_B32_gfx9 $vgpr1, 0, 0, implicit $exec"),
    ("ds_write x4, overwritten",
     "DS_WRITE_B128_gfx9 $vgpr10, $vgpr20_vgpr21_vgpr22_vgpr23, 0, 0, implicit $exec", mov(20, 1)),
    ("setreg to getreg", "S_SETREG_B32 $sgpr1, 2049, implicit-def $mode, implicit $mode",
     "$sgpr2 = S_GETREG_B32 2049, implicit $mode"),
    ("VCC to v_div_fmas", CMP,
     "$vgpr1 = V_DIV_FMAS_F32_e64 0, $vgpr2, 0, $vgpr3, 0, $vgpr4, 0, 0, implicit $mode, implicit $vcc, "
     "implicit $exec"),
    ("dot2 to VALU", DOT2, mov(5, 1)),
]

# gfx1250: name, machine opcode, registers of D, A, B, operands with {a} {b} {c}
PLAIN = "{a}, {b}, 8, {c}, 0, 0, 0, 0"
FULL = "8, {a}, 8, {b}, 8, {c}, 0, 0, 0, 0"
WMMA = {
    "fp8_k128": ("V_WMMA_F32_16X16X128_FP8_FP8_w32_threeaddr", 8, 16, 16, PLAIN),
    "fp8_k64": ("V_WMMA_F32_16X16X64_FP8_FP8_w32_threeaddr", 8, 8, 8, PLAIN),
    "bf16_k32": ("V_WMMA_F32_16X16X32_BF16_w32_threeaddr", 8, 8, 8, FULL),
    "f16_k32": ("V_WMMA_F32_16X16X32_F16_w32_threeaddr", 8, 8, 8, FULL),
    "f32_k4": ("V_WMMA_F32_16X16X4_F32_w32_threeaddr", 8, 2, 2, FULL),
    "iu8_k64": ("V_WMMA_I32_16X16X64_IU8_w32_threeaddr", 8, 8, 8, "8, {a}, 8, {b}, {c}, 0, 0, 0, 0"),
    "f8f6f4_f8f8": ("V_WMMA_F32_16X16X128_F8F6F4_f8_f8_w32_threeaddr", 8, 16, 16, PLAIN),
    "f8f6f4_f4f4": ("V_WMMA_F32_16X16X128_F8F6F4_f4_f4_w32_threeaddr", 8, 8, 8, "{a}, {b}, 8, {c}, 4, 4, 0, 0"),
    "scale_f8f8": ("V_WMMA_SCALE_F32_16X16X128_F8F6F4_f8_f8_w32_threeaddr", 8, 16, 16,
                   "{a}, {b}, 8, {c}, $vgpr200, $vgpr201, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0"),
}


def wmma(kind, d, a, b, c):
    opcode, dn, an, bn, form = WMMA[kind]
    operands = form.format(a=v(a, an), b=v(b, bn), c=v(c, dn))
    return f"early-clobber {v(d, dn)} = {opcode} {operands}, implicit $exec"


def wmma_pairs():
    for one in WMMA:
        first = wmma(one, 100, 40, 70, 100)
        yield f"{one}: VALU reads D", first, mov(10, 100)
        yield f"{one}: VALU writes D", first, mov(100, 10)
        yield f"{one}: VALU overwrites A", first, mov(40, 10)
        yield f"{one}: VALU overwrites C", wmma(one, 100, 40, 70, 150), mov(150, 10)
        yield f"{one}: store of D", first, f"GLOBAL_STORE_DWORD {v(10, 2)}, {v(100)}, 0, 0, implicit $exec"
        yield f"{one}: ds_store of D", first, f"DS_WRITE_B32_gfx9 {v(10)}, {v(100)}, 0, 0, implicit $exec"
        yield f"{one}: VALU writes A before", mov(40, 10), first
        for two in WMMA:
            yield f"{one} to {two}: same C", first, wmma(two, 100, 40, 70, 100)
            yield f"{one} to {two}: part of C", first, wmma(two, 130, 40, 70, 104)
            yield f"{one} to {two}: A", first, wmma(two, 150, 100, 70, 150)
            yield f"{one} to {two}: B", first, wmma(two, 150, 40, 100, 150)


OTHER_GFX1250 = [
    ("trans to VALU", EXP, "$vgpr5 = V_ADD_F32_e32 $vgpr1, $vgpr1, implicit $mode, implicit $exec"),
    ("trans source overwritten", EXP, mov(2, 7)),
    ("trans to trans", EXP, "$vgpr5 = V_EXP_F32_e32 $vgpr1, implicit $mode, implicit $exec"),
]

# Where the table asks for more than LLVM 22 does, and why.
STRICTER = [
    ("gfx950", r"^store x4, loaded over", 1, "ISA table 11: 1 state for what is not VALU"),
    ("gfx950", r"^sgemm4_f32 to (xdl|f8f6f4|scale).*part of C", 2, "table 38 does not tell XDL from SGEMM there"),
    ("gfx950", r"^sgemm16_f32 to (xdl|f8f6f4|scale).*part of C", 8, "the same"),
    ("gfx950", r"^sgemm32_f32 to (xdl|f8f6f4|scale).*part of C", 16, "the same"),
    ("gfx1250", r"^(fp8|bf16|f16|f8f6f4_f4f4).* to f32_k4: [AB]", 4, "newer LLVM and the ISA have no exception for it"),
    ("gfx1250", r"^(iu8|f8f6f4_f8f8|scale).* to f32_k4: [AB]", 8, "the same"),
    ("gfx1250", r"^f32_k4", 1, "newer LLVM: 1 and 2 states for WMMA of four passes"),
]


def machine_function(number, first, second):
    return f"""---
name: k{number}
tracksRegLiveness: false
machineFunctionInfo:
  isEntryFunction: true
body: |
  bb.0:
    {first}
    {second}
    S_ENDPGM 0
...
"""


def run_llc(llc, arch, pairs):
    """Assembly of each pair's function, as lists of lines."""
    names = "".join(f'  define amdgpu_kernel void @k{i}() "amdgpu-agpr-alloc"="0" {{ ret void }}\n'
                    for i in range(len(pairs)))
    text = f"--- |\n{names}...\n" + "".join(machine_function(i, a, b) for i, (_, a, b) in enumerate(pairs))
    out = subprocess.run([llc, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-x=mir",
                          "-start-before=post-RA-hazard-rec", "-", "-o", "-"],
                         input=text, capture_output=True, text=True, check=False)
    if out.returncode != 0:
        said = [line for line in out.stderr.splitlines() if "rror" in line or line.startswith("***")]
        sys.exit("Bail out! llc: " + "; ".join(said[:4]))
    functions, lines = {}, None
    for line in out.stdout.splitlines():
        start = re.match(r"k(\d+):", line)
        if start:
            lines = functions.setdefault(int(start.group(1)), [])
        elif re.match(r"\.Lfunc_end", line):
            lines = None
        elif lines is not None:
            code = line.split(";")[0].strip()
            if code and not code.startswith(".") and not code.endswith(":"):
                lines.append(" ".join(code.split()))
    return [functions[i] for i in range(len(pairs))]


def states_between(lines):
    """(first, second, states): what llc left between the two instructions."""
    body = [line for line in lines if not line.startswith(("s_endpgm", "s_set_vgpr_msb", "s_setreg_imm32"))]
    states, real = 0, []
    for line in body:
        nop = re.match(r"s_nop (\d+)", line)
        if nop and len(real) == 1:
            states += int(nop.group(1)) + 1
        elif line.startswith("v_nop") and len(real) == 1:
            states += 1
        elif not line.startswith(("s_wait", "s_delay_alu", "s_nop", "v_nop")):
            real.append(line)
    return real[0], real[1], states


def compare(program, llc, arch, pairs):
    found = [states_between(lines) for lines in run_llc(llc, arch, pairs)]
    asked = "".join(f"{first} ; {second}\n" for first, second, _ in found)
    answer = subprocess.run([program, "--states", arch], input=asked, capture_output=True, text=True, check=True)
    problems = []
    for (name, _, _), (first, second, states), ours in zip(pairs, found, answer.stdout.splitlines()):
        if ours == str(states):
            continue
        allowed = any(a == arch and re.search(pattern, name) and ours.isdigit() and int(ours) - states == more
                      for a, pattern, more, _ in STRICTER)
        if not allowed:
            problems.append(f"{name}: llc {states}, table {ours}: {first} ; {second}")
    return problems


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    llc = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("LLC") or shutil.which("llc-22") or "llc-22"
    print("1..2")
    sets = [("gfx950", list(mfma_pairs()) + OTHER_GFX950), ("gfx1250", list(wmma_pairs()) + OTHER_GFX1250)]
    failed = False
    for number, (arch, pairs) in enumerate(sets, 1):
        if shutil.which(llc) is None:
            print(f"ok {number} - {arch} # SKIP no llc 22")
            continue
        problems = compare(sys.argv[1], llc, arch, pairs)
        for line in problems:
            print("# " + line)
        print(f"{'not ok' if problems else 'ok'} {number} - {arch}: {len(pairs)} pairs")
        failed = failed or bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
