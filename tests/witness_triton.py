"""Runs kernels that Triton makes for gfx950 and gfx1250 in the simulator, and compares with numpy. Prints TAP.

Environment: ETALON_SIM (the program); TRITON_CACHE_DIR, where Triton keeps what it compiles. Arguments: words; only the
tests whose names hold them all are run. Run it through tests/check_triton.sh.

No GPU and no torch: Triton compiles for a target that it is told. Each kernel runs in several orders with every check
on, in buffers that end where the tensor ends. The result must be right in each order, every instruction must be known,
and a finding must be one of EXPLAINED.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import traceback
import warnings

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

U = 2.0**-24
U_BF16 = 2.0**-8
U_E4M3 = 2.0**-4
TARGETS = {"gfx950": GPUTarget("hip", "gfx950", 64), "gfx1250": GPUTarget("hip", "gfx1250", 32)}
# 0: waves in turn. Odd: memory as late as the waits allow. 2, 3, 6, 7: what may complete out of order does.
ORDERS = (0, 1, 2, 3, 6)

# s_waitcnt vmcnt(0), s_wait_loadcnt 0x0
WAIT_FOR_LOADS = {"gfx950": 0xBF8C0F70, "gfx1250": 0xBFC00000}

# True properties of what Triton 3.9 emits: patterns of arch, check, kernel, one within "instruction; detail"; and why.
EXPLAINED = (
    (
        "gfx1250",
        "advice",
        ".*",
        r"^s_setreg_imm32_b32 hwreg\(HW_REG_WAVE_SCHED_MODE, 0, 2\), 2;",
        "Triton turns on the mode in which s_wait_alu stands for some of the hardware's own waits",
    ),
    (
        "gfx1250",
        "lds-bounds|advice",
        "paged_decode|causal_attention",
        r"16 bytes at (byte 2147483647 of the workgroup's|0x7fffffff, which is not a multiple)",
        "Triton masks a lane of an asynchronous copy by an address far behind the LDS, where hardware drops it",
    ),
    (
        "gfx1250",
        "bounds",
        "causal_attention",
        r"^global_load_async_to_lds_b\d+ .*; reads 16 bytes at ",
        "Triton leaves the address in memory of a lane so masked as it is, wherever it lies",
    ),
    (
        "gfx1250",
        "wait-states",
        "paged_decode|causal_attention|.*matmul",
        r"needs 4 VALU instructions after \"v_wmma_(f32_16x16x64_fp8|scale_f32_16x16x128_.*_FP4.*_FP4).*, has [123]$",
        "Triton's LLVM has 1 VALU instruction follow such a WMMA; LLVM 22 asks for 4, and the stricter counts",
    ),
    (
        "gfx1250",
        "wait-states",
        "scaled_matmul",
        r"needs 8 VALU instructions after \"v_wmma_scale_f32_16x16x128_f8f6f4.*, has [4567]$",
        "Triton's LLVM has 4 VALU instructions follow such a WMMA; LLVM 22 asks for 8, and the stricter counts",
    ),
    (
        "gfx950",
        "advice",
        "paged_decode",
        r"the high half of the same of v\d+ needs 1 wait states after .*\(a low half\), has 0$",
        "LLVM writes the two halves of a register one after the other; the ISA asks for care with partial writes",
    ),
    (
        "gfx1250",
        "advice",
        ".*",
        r"reads again if its address faults: needs s_wait_xcnt \d+$",
        "Triton's LLVM has fewer waits for the translation of addresses than the check asks for",
    ),
    (
        "gfx950",
        "lds-race",
        "causal_attention",
        r"^(ds_write_\w+ .*); writes LDS byte \d+, which \"\1\" at",
        "waves that hold the same part of a tensor write it twice",
    ),
    (
        ".*",
        "lds-race",
        "sorted_scan",
        r"^ds_(write|store)_b32 .* writes LDS byte \d+, which \"ds_(write|store)_b32 ",
        "every wave sets the bins of a histogram to 0",
    ),
)


# The kernels


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, inside) + tl.load(y + i, inside), inside)


@triton.jit
def row_softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    j = tl.arange(0, BLOCK)
    inside = j < columns
    s = tl.load(x + row + j, inside, float("-inf"))
    p = tl.exp(s - tl.max(s, 0))
    tl.store(out + row + j, p / tl.sum(p, 0), inside)


@triton.jit
def matmul(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        left = tl.load(a + m[:, None] * K + (first + k)[None, :], (m < M)[:, None] & (first + k < K)[None, :], 0.0)
        right = tl.load(b + (first + k)[:, None] * N + n[None, :], (first + k < K)[:, None] & (n < N)[None, :], 0.0)
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None] * N + n[None, :], total, (m < M)[:, None] & (n < N)[None, :])


@triton.jit
def descriptor_matmul(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """The same by tensor descriptors: gfx1250 has a unit for them."""
    left = tl.make_tensor_descriptor(a, (M, K), (K, 1), (BLOCK_M, BLOCK_K))
    right = tl.make_tensor_descriptor(b, (K, N), (N, 1), (BLOCK_K, BLOCK_N))
    result = tl.make_tensor_descriptor(c, (M, N), (N, 1), (BLOCK_M, BLOCK_N))
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        total = tl.dot(left.load((m, first)), right.load((first, n)), total)
    result.store((m, n), total)


@triton.jit
def scaled_matmul(
    a,
    a_scale,
    b,
    b_scale,
    c,
    K,
    A: tl.constexpr,
    B: tl.constexpr,
    A_PACK: tl.constexpr,
    B_PACK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """a [M, K], b [N, K], and a power of two for 32 elements of a row; whole blocks. PACK elements share a byte."""
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    N = tl.num_programs(1) * BLOCK_N
    a_k = tl.arange(0, BLOCK_K // A_PACK)
    b_k = tl.arange(0, BLOCK_K // B_PACK)
    s = tl.arange(0, BLOCK_K // 32)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        left = tl.load(a + m[:, None] * (K // A_PACK) + (first // A_PACK + a_k)[None, :])
        right = tl.load(b + n[None, :] * (K // B_PACK) + (first // B_PACK + b_k)[:, None])
        left_scale = tl.load(a_scale + m[:, None] * (K // 32) + (first // 32 + s)[None, :])
        right_scale = tl.load(b_scale + n[:, None] * (K // 32) + (first // 32 + s)[None, :])
        total = tl.dot_scaled(left, left_scale, A, right, right_scale, B, total)
    tl.store(c + m[:, None] * N + n[None, :], total)


@triton.jit
def paged_decode(
    q,
    k_cache,
    v_cache,
    block_table,
    seq_lens,
    out,
    pages,
    scale,
    kv_heads,
    GROUP: tl.constexpr,
    DIM: tl.constexpr,
    PAGE: tl.constexpr,
):
    """A program for each sequence and KV head; GROUP query heads share it. scale has log2 e in it."""
    b = tl.program_id(0)
    h = tl.program_id(1)
    d = tl.arange(0, DIM)
    t = tl.arange(0, PAGE)
    rows = ((b * kv_heads + h) * GROUP + tl.arange(0, GROUP)) * DIM
    query = tl.load(q + rows[:, None] + d[None, :])
    count = tl.load(seq_lens + b)
    top = tl.full((GROUP,), float("-inf"), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    result = tl.zeros((GROUP, DIM), tl.float32)
    for first in range(0, count, PAGE):
        page = tl.load(block_table + b * pages + first // PAGE).to(tl.int64)
        at = (page * PAGE + t) * kv_heads + h
        inside = first + t < count
        key = tl.load(k_cache + at[None, :] * DIM + d[:, None], inside[None, :], 0.0)
        s = tl.where(inside[None, :], scale * tl.dot(query, key.to(query.dtype)), float("-inf"))
        highest = tl.maximum(top, tl.max(s, 1))
        shrink = tl.exp2(top - highest)
        p = tl.exp2(s - highest[:, None])
        value = tl.load(v_cache + at[:, None] * DIM + d[None, :], inside[:, None], 0.0).to(query.dtype)
        result = tl.dot(p.to(query.dtype), value, result * shrink[:, None])
        total = total * shrink + tl.sum(p, 1)
        top = highest
    tl.store(out + rows[:, None] + d[None, :], result / total[:, None])


@triton.jit
def causal_attention(q, k, v, out, S, scale, ROWS: tl.constexpr, KEYS: tl.constexpr, DIM: tl.constexpr):
    """One head, a block of rows a program."""
    first_row = tl.program_id(0) * ROWS
    rows = first_row + tl.arange(0, ROWS)
    d = tl.arange(0, DIM)
    query = tl.load(q + rows[:, None] * DIM + d[None, :], (rows < S)[:, None], 0.0)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    result = tl.zeros((ROWS, DIM), tl.float32)
    for first in range(0, first_row + ROWS, KEYS):
        j = first + tl.arange(0, KEYS)
        key = tl.load(k + j[None, :] * DIM + d[:, None], (j < S)[None, :], 0.0)
        s = tl.where(rows[:, None] >= j[None, :], scale * tl.dot(query, key), float("-inf"))
        highest = tl.maximum(top, tl.max(s, 1))
        shrink = tl.exp2(top - highest)
        p = tl.exp2(s - highest[:, None])
        value = tl.load(v + j[:, None] * DIM + d[None, :], (j < S)[:, None], 0.0)
        result = tl.dot(p.to(value.dtype), value, result * shrink[:, None])
        total = total * shrink + tl.sum(p, 1)
        top = highest
    tl.store(out + rows[:, None] * DIM + d[None, :], result / total[:, None], (rows < S)[:, None])


@triton.jit
def sorted_scan(x, ascending, sums, places, counts, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Of each row: sorted, running sums, the place of the largest; and one histogram of all rows."""
    row = tl.program_id(0) * BLOCK
    j = tl.arange(0, BLOCK)
    v = tl.load(x + row + j)
    tl.store(ascending + row + j, tl.sort(v))
    tl.store(sums + row + j, tl.cumsum(v, 0))
    tl.store(places + tl.program_id(0), tl.argmax(v, 0))
    tl.atomic_add(counts + tl.arange(0, BINS), tl.histogram(v & (BINS - 1), BINS))


# Values


def e4m3(codes):
    c = codes.astype(np.int64)
    exponent, mantissa = c >> 3 & 15, c & 7
    size = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    return np.where(c & 128, -size, size)


def e2m1(packed):
    """Two of a byte, the low one first."""
    codes = np.stack((packed & 15, packed >> 4), -1).reshape(*packed.shape[:-1], -1)
    size = np.array((0, 0.5, 1, 1.5, 2, 3, 4, 6))[codes & 7]
    return np.where(codes & 8, -size, size)


def bf16(codes):
    return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def bf16_codes(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16)


def e4m3_codes(random, shape, below=0x7F):
    """Any finite code up to a size; 0x7F is NaN."""
    return (random.integers(0, below, shape) | random.integers(0, 2, shape) << 7).astype(np.uint8)


class Scalar:
    def __init__(self, kind, value):
        self.text = "%s:%r" % (kind, value)


class Out:
    def __init__(self, shape, dtype, want, bound=0.0, starts=None):
        self.shape, self.dtype, self.want, self.starts = shape, np.dtype(dtype), want, starts
        self.bound = np.broadcast_to(bound, want.shape)


class Launch:
    def __init__(self, grid, arguments):
        self.grid, self.arguments = grid, arguments


def add_vectors(random):
    n = 5000
    x, y = random.standard_normal((2, n), np.float32)
    return Launch((5,), {"x": x, "y": y, "out": Out((n,), np.float32, x + y), "n": Scalar("i32", n)})


def softmax_rows(random):
    """Numerator and sum: 3 u of an argument (difference, log2 e, product), 2 u of exp2; then 9 sums, 1 quotient."""
    rows, columns = 5, 389
    x = random.standard_normal((rows, columns)).astype(np.float32) * 4
    s = x.astype(np.float64) - x.max(1, keepdims=True)
    p = np.exp(s)
    p /= p.sum(1, keepdims=True)
    bound = p * U * (2 * (3 * abs(s).max() + 2) + 9 + 1)
    return Launch((rows,), {"x": x, "out": Out(x.shape, np.float32, p, bound), "columns": Scalar("i32", columns)})


def multiply(random, decode, codes, m, n, k, grid, exact=False):
    """Products of FP8 and of BF16 are exact in fp32: what remains is the rounding of k sums."""
    a, b = codes(random, (m, k)), codes(random, (k, n))
    want = decode(a) @ decode(b)
    bound = 0.0 if exact else k * U * (abs(decode(a)) @ abs(decode(b)))
    sizes = {name: Scalar("i32", x) for name, x in (("M", m), ("N", n), ("K", k))}
    return Launch(grid, {"a": a, "b": b, "c": Out((m, n), np.float32, want, bound), **sizes})


def multiply_e4m3(random):
    return multiply(random, e4m3, e4m3_codes, 100, 90, 300, (2, 2))


def multiply_exactly(random):
    """Small integers: every order of summing gives the same, so that a lane in a wrong place shows."""
    whole = np.array((0, 0x38, 0x40, 0x44, 0x48, 0x4A), np.uint8)  # 0, 1, 2, 3, 4, 5

    def codes(random, shape):
        return whole[random.integers(0, len(whole), shape)] | (random.integers(0, 2, shape) << 7).astype(np.uint8)

    return multiply(random, e4m3, codes, 128, 64, 256, (2, 1), exact=True)


def multiply_bf16(random):
    return multiply(random, bf16, lambda r, shape: bf16_codes(r.standard_normal(shape)), 100, 90, 96, (2, 2))


def scale_up(values, scale):
    return values * np.repeat(2.0 ** (scale.astype(np.float64) - 127), 32, -1)


def multiply_scaled(random, kinds):
    m, n, k = 64, 128, 256
    made = {
        "e4m3": (lambda rows: e4m3_codes(random, (rows, k)), e4m3),
        "e2m1": (lambda rows: random.integers(0, 256, (rows, k // 2)).astype(np.uint8), e2m1),
    }
    (make_a, real_a), (make_b, real_b) = (made[kind] for kind in kinds)
    a, b = make_a(m), make_b(n)
    a_scale, b_scale = (random.integers(117, 138, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    left, right = scale_up(real_a(a), a_scale), scale_up(real_b(b), b_scale).T
    c = Out((m, n), np.float32, left @ right, k * U * (abs(left) @ abs(right)))
    arguments = {"a": a, "a_scale": a_scale, "b": b, "b_scale": b_scale, "c": c, "K": Scalar("i32", k)}
    return Launch((m // 32, n // 64), arguments)


def multiply_e4m3_e4m3_scaled(random):
    return multiply_scaled(random, ("e4m3", "e4m3"))


def multiply_e4m3_e2m1_scaled(random):
    return multiply_scaled(random, ("e4m3", "e2m1"))


def multiply_e2m1_e2m1_scaled(random):
    return multiply_scaled(random, ("e2m1", "e2m1"))


def attention(q, k, v, scale, visible, blocks, unit, least):
    """Result and bound, of rows that see keys block by block. P is rounded to q's type: by `unit` of its size, or half
    of `least`, the distance of the smallest numbers."""
    s = np.where(visible, scale * (q @ k.T), -np.inf)
    p = np.exp2(s - s.max(1, keepdims=True))
    total = p.sum(1, keepdims=True)
    size = scale * (abs(q) @ abs(k).T).max(1, keepdims=True)
    # Of exp2's argument: a dot product, a product, and a difference for each block. Of the rest: a sum over the keys,
    # exp2 and a product for each block, and the quotient.
    off = (q.shape[1] + 1 + blocks) * U * size + (len(k) + 3 * blocks + 1) * U
    return p @ v / total, (p * (unit + 2 * off) + least / 2 * visible) @ abs(v) / total


def decode_pages(random, q, q_real, unit, least, page=32, dim=64, group=16):
    heads, lens = 2, np.array((1, 70, 130), np.int32)
    width = 5
    pages = len(lens) * width + 1
    table = random.permutation(pages)[: len(lens) * width].reshape(len(lens), width).astype(np.int32)
    k, v = (e4m3_codes(random, (pages, page, heads, dim), 0x44) for _ in range(2))
    scale = float(np.float32(np.log2(np.e) / np.sqrt(dim)))
    shape = (len(lens), heads, group, dim)
    want, bound = np.zeros(shape), np.zeros(shape)
    for i, count in enumerate(lens):
        j = np.arange(count)
        keys, values = (e4m3(x[table[i][j // page], j % page]) for x in (k, v))
        for h in range(heads):
            rows = q_real.reshape(shape)[i, h]
            seen = np.ones((group, count), bool)
            want[i, h], bound[i, h] = attention(rows, keys[:, h], values[:, h], scale, seen, width, unit, least)
    arguments = {"q": q, "k_cache": k, "v_cache": v, "block_table": table, "seq_lens": lens}
    arguments["out"] = Out(shape, np.float32, want, bound)
    scalars = {"pages": Scalar("i32", width), "scale": Scalar("f32", scale), "kv_heads": Scalar("i32", heads)}
    return Launch((len(lens), heads), {**arguments, **scalars})


def decode_bf16(random):
    q = bf16_codes(random.standard_normal((3, 2, 16, 64)))
    return decode_pages(random, q, bf16(q), U_BF16, 2.0**-133)


def decode_e4m3(random):
    q = e4m3_codes(random, (3, 2, 16, 64), 0x40)
    return decode_pages(random, q, e4m3(q), U_E4M3, 2.0**-9)


def attend(random, length=150, dim=64, rows=128):
    q, k, v = (bf16_codes(random.standard_normal((length, dim))) for _ in range(3))
    scale = float(np.float32(np.log2(np.e) / np.sqrt(dim)))
    causal = np.tri(length, dtype=bool)
    blocks = -(-length // 32)  # or fewer: the keys of a block are 32 or 64
    want, bound = attention(bf16(q), bf16(k), bf16(v), scale, causal, blocks, U_BF16, 2.0**-133)
    arguments = {"q": q, "k": k, "v": v, "out": Out(want.shape, np.float32, want, bound)}
    return Launch((-(-length // rows),), {**arguments, "S": Scalar("i32", length), "scale": Scalar("f32", scale)})


def sort_and_scan(random):
    rows, columns, bins = 3, 512, 64
    x = random.integers(-(2**20), 2**20, (rows, columns)).astype(np.int32)
    return Launch(
        (rows,),
        {
            "x": x,
            "ascending": Out(x.shape, np.int32, np.sort(x)),
            "sums": Out(x.shape, np.int32, np.cumsum(x, 1)),
            "places": Out((rows,), np.int32, np.argmax(x, 1)),
            "counts": Out((bins,), np.int32, np.bincount(x.reshape(-1) & bins - 1, minlength=bins), starts=0),
        },
    )


TILE = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 128}
SCALED_TILE = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 128}
DEEP_TILE = {**TILE, "BLOCK_K": 64}
PAGED = {"GROUP": 16, "DIM": 64, "PAGE": 32}
POINTERS = {"float32": "fp32", "int32": "i32", "uint8": "u8", "uint16": "bf16"}


CODES = {"a": "fp8e4nv", "b": "fp8e4nv"}
CACHES = {"k_cache": "fp8e4nv", "v_cache": "fp8e4nv"}


def formats(a, b):
    return {**SCALED_TILE, "A": a, "B": b, "A_PACK": 2 if a == "e2m1" else 1, "B_PACK": 2 if b == "e2m1" else 1}


# A kernel, its launch, its constants, options of the compiler, types that the arrays' own do not tell.
TESTS = (
    (vector_add, add_vectors, {"BLOCK": 1024}, {}, {}),
    (row_softmax, softmax_rows, {"BLOCK": 512}, {}, {}),
    (matmul, multiply_e4m3, TILE, {}, CODES),
    (matmul, multiply_exactly, TILE, {}, CODES),
    (matmul, multiply_e4m3, DEEP_TILE, {"num_warps": 2, "matrix_instr_nonkdim": 32, "num_stages": 3}, CODES),
    (matmul, multiply_bf16, {**TILE, "BLOCK_K": 32}, {}, {}),
    (descriptor_matmul, multiply_exactly, TILE, {}, CODES),
    (scaled_matmul, multiply_e4m3_e4m3_scaled, formats("e4m3", "e4m3"), {}, CODES),
    (scaled_matmul, multiply_e4m3_e2m1_scaled, formats("e4m3", "e2m1"), {}, {"a": "fp8e4nv"}),
    (scaled_matmul, multiply_e2m1_e2m1_scaled, formats("e2m1", "e2m1"), {}, {}),
    (paged_decode, decode_bf16, PAGED, {}, CACHES),
    (paged_decode, decode_e4m3, PAGED, {}, {"q": "fp8e4nv", **CACHES}),
    (causal_attention, attend, {"ROWS": 128, "KEYS": 64, "DIM": 64}, {"num_stages": 1}, {}),
    (causal_attention, attend, {"ROWS": 128, "KEYS": 32, "DIM": 64}, {"num_warps": 8, "num_stages": 3}, {}),
    (sorted_scan, sort_and_scan, {"BLOCK": 512, "BINS": 64}, {}, {}),
)


def signature_of(launch, types):
    """In the kernel's order; a multiple of 16 for each address, as torch's allocator gives."""
    signature = {}
    for name, x in launch.arguments.items():
        if isinstance(x, Scalar):
            signature[name] = {"i32": "i32", "f32": "fp32"}[x.text.split(":")[0]]
        else:
            signature[name] = "*" + types.get(name, POINTERS[x.dtype.name])
    return signature


def compile_for(arch, kernel, launch, constants, options, types):
    signature = signature_of(launch, types)
    aligned = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(signature.values()) if t.startswith("*")}
    signature.update({name: "constexpr" for name in constants})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = ASTSource(kernel, signature, constants, aligned)
        return triton.compile(source, target=TARGETS[arch], options=options)


def command_of(directory, launch, built):
    """What etalon-sim is told but the order: Triton adds two pointers to scratch memory behind the arguments."""
    metadata = built.metadata
    assert metadata.global_scratch_size == 0, "the kernel wants global scratch memory"
    block = metadata.num_warps * metadata.warp_size
    command = [os.environ["ETALON_SIM"], "run", directory + "/kernel", "--json", "--check", "all"]
    command += ["--grid", ",".join(map(str, launch.grid)), "--block", str(block), "--lds", str(metadata.shared)]
    for name, x in launch.arguments.items():
        path = directory + "/" + name
        if isinstance(x, Scalar):
            command += ["--arg", x.text]
        elif isinstance(x, Out):
            size = x.want.size * x.dtype.itemsize
            command += ["--arg", "buf:%s:%d%s" % (name, size, "" if x.starts is None else "=zero")]
            command += ["--out", name + "=" + path]
        else:
            x.tofile(path)
            command += ["--arg", "buf:%s:%d=file:%s" % (name, x.nbytes, path)]
    return command + ["--arg", "u64:0", "--arg", "u64:0"]


def reason_for(arch, finding):
    of = (arch, finding["check"], finding["kernel"])
    told = finding["instruction"] + "; " + finding["detail"]
    for *patterns, told_pattern, why in EXPLAINED:
        if all(re.fullmatch(p, x) for p, x in zip(patterns, of)) and re.search(told_pattern, told):
            return why
    return None


def compare(name, out, got):
    got = got.reshape(out.want.shape)
    good = abs(got.astype(np.float64) - out.want) <= out.bound
    bad = np.argwhere(~good)
    assert len(bad) == 0, "%s: %d of %d are wrong, first %s: %r, expected %r +- %g" % (
        name,
        len(bad),
        good.size,
        bad[0].tolist(),
        got[tuple(bad[0])],
        out.want[tuple(bad[0])],
        out.bound[tuple(bad[0])],
    )


def run_in_order(arch, directory, command, launch, order):
    """The reasons of what was found."""
    done = subprocess.run(
        command + ["--seed", str(order)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode in (0, 1), "order %d: status %d: %s" % (order, done.returncode, done.stderr[-2000:])
    findings = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert (done.returncode == 1) == bool(findings), "status %d with %d findings" % (done.returncode, len(findings))
    unexplained = [f for f in findings if reason_for(arch, f) is None]
    assert not unexplained, "order %d: %d findings, first %s" % (order, len(unexplained), json.dumps(unexplained[0]))
    for name, x in launch.arguments.items():
        if isinstance(x, Out):
            compare("order %d: %s" % (order, name), x, np.fromfile(directory + "/" + name, x.dtype))
    return {reason_for(arch, f) for f in findings}


def kernel_is_right(directory, arch, kernel, make, constants, options, types):
    launch = make(np.random.default_rng(20240607))
    built = compile_for(arch, kernel, launch, constants, options, types)
    with open(directory + "/kernel", "wb") as to:
        to.write(built.asm["hsaco"])
    command = command_of(directory, launch, built)
    return set.union(*(run_in_order(arch, directory, command, launch, order) for order in ORDERS))


def a_missing_wait_is_found(directory, arch):
    """The control: the waits for the loads of vector_add become s_nop."""
    launch = add_vectors(np.random.default_rng(20240607))
    built = compile_for(arch, vector_add, launch, {"BLOCK": 1024}, {}, {})
    wait, nop = (struct.pack("<I", word) for word in (WAIT_FOR_LOADS[arch], 0xBF800000))
    assert wait in built.asm["hsaco"], "the kernel waits in another way"
    with open(directory + "/kernel", "wb") as to:
        to.write(built.asm["hsaco"].replace(wait, nop))
    command = command_of(directory, launch, built) + ["--check", "wait"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1, "status %d, expected 1\n%s%s" % (done.returncode, done.stdout, done.stderr)
    return set()


def name_of(arch, kernel, make, constants, options):
    told = {**{k: v for k, v in constants.items() if "PACK" not in k}, **options}
    words = " ".join("%s=%s" % pair for pair in told.items())
    return "%s: %s, %s, %s" % (arch, kernel.__name__, make.__name__, words)


def report(number, name, test):
    """One TAP line; true unless the test failed."""
    with tempfile.TemporaryDirectory(prefix="etalon-triton.") as directory:
        try:
            function, *arguments = test
            reasons = function(directory, *arguments)
        except Exception as error:  # a test that cannot go on has failed, whatever the reason
            print("not ok %d - %s" % (number, name))
            text = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
            print("\n".join("# " + line for line in text.splitlines()), flush=True)
            return False
    print("ok %d - %s" % (number, name))
    for reason in sorted(reasons):
        print("# found, as it should be: " + reason)
    sys.stdout.flush()
    return True


def main():
    print("# triton %s, numpy %s" % (triton.__version__, np.__version__))
    tests = [(name_of(arch, *test[:4]), (kernel_is_right, arch, *test)) for test in TESTS for arch in TARGETS]
    tests += [(arch + ": a missing wait is found", (a_missing_wait_is_found, arch)) for arch in TARGETS]
    tests = [test for test in tests if all(word in test[0] for word in sys.argv[1:])]
    print("1..%d" % len(tests))
    passed = [report(number, *test) for number, test in enumerate(tests, 1)]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
