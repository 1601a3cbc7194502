"""Compares etalon with numpy, safetensors and ml_dtypes, and its results with the formulas in float64. Prints TAP.

Environment: ETALON (the program), ETALON_FP8_TABLE (tests/fp8_table), ETALON_TENSORFILE_COPY (tests/tensorfile_copy).
Run it through tests/check_witness.sh.
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

SEED = 20240607
U = 2.0**-24

# Names in safetensors; E8M0 is young in ml_dtypes.
DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "I64": np.int64,
    "I32": np.int32,
    "U8": np.uint8,
}
HAS_E8M0 = hasattr(ml_dtypes, "float8_e8m0fnu")
if HAS_E8M0:
    DTYPES["F8_E8M0"] = ml_dtypes.float8_e8m0fnu


class Skip(Exception):
    pass


def program(variable):
    if variable not in os.environ:
        raise Skip(variable + " is not set")
    return os.environ[variable]


def run(*command, status=0):
    """Standard output of a command that must end with that status."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    text = (done.stdout[-2000:] + done.stderr[-2000:]).decode(errors="replace")
    told = (" ".join(command), done.returncode, status, text)
    assert done.returncode == status, "%s: status %d, expected %d\n%s" % told
    return done.stdout


def write(path, tensors, metadata=None):
    dense = {name: np.array(t, order="C") for name, t in tensors.items()}
    safetensors.numpy.save_file(dense, path, metadata=metadata)


def read(path):
    """Tensors and metadata of a file, by the real package's parser."""
    with open(path, "rb") as file:
        content = file.read()
    tensors = {}
    for name, info in safetensors.deserialize(content):
        dtype = np.dtype(DTYPES[info["dtype"]])
        tensors[name] = np.frombuffer(bytes(info["data"]), dtype=dtype).reshape(info["shape"])
    with safetensors.safe_open(path, framework="np") as file:
        return tensors, file.metadata() or {}


def same_bits(got, want, name):
    assert got.dtype == want.dtype, "%s: dtype %s, expected %s" % (name, got.dtype, want.dtype)
    assert got.shape == want.shape, "%s: shape %s, expected %s" % (name, got.shape, want.shape)
    assert got.tobytes() == want.tobytes(), name + ": other bytes"


def every_dtype(random):
    """Tensors of every dtype and rank, random bytes: NaN, infinities and subnormals included."""
    tensors = {}
    for d, (name, dtype) in enumerate(DTYPES.items()):
        for rank in range(6):
            shape = tuple(int(n) for n in random.integers(1, 5, rank))
            count = int(np.prod(shape, dtype=np.int64))
            data = random.integers(0, 256, count * np.dtype(dtype).itemsize, dtype=np.uint8)
            tensors["t%d.%d.%s" % ((7 * d + rank) % 10, rank, name)] = data.view(dtype).reshape(shape)
        tensors["empty." + name] = np.zeros((2, 0, 3), dtype)
    return tensors


# Files


def files_of_safetensors_pass_through(directory):
    tensors = every_dtype(np.random.default_rng(SEED))
    metadata = {"op": "pa_mtp", "Größe \"1\"": "\n", "": ""}
    write(directory + "/in", tensors, metadata)
    run(program("ETALON_TENSORFILE_COPY"), directory + "/in", directory + "/out")
    got, got_metadata = read(directory + "/out")
    assert sorted(got) == sorted(tensors), sorted(got)
    for name, want in tensors.items():
        same_bits(got[name], want, name)
    assert got_metadata == metadata, got_metadata


def npy_directories_pass_through(directory):
    tensors = every_dtype(np.random.default_rng(SEED + 1))
    sidecar = {"op": "mqa_logits"}
    os.mkdir(directory + "/in")
    for i, (name, t) in enumerate(tensors.items()):
        kind = name.split(".")[-1]
        if kind in ("BF16", "F8_E4M3", "F8_E4M3FNUZ", "F8_E5M2", "F8_E8M0"):
            sidecar[name + ".dtype"] = kind
            if i % 2:  # as torch users do: through an integer view
                t = t.view(np.int16 if t.itemsize == 2 else np.uint8)
        with open("%s/in/%s.npy" % (directory, name), "wb") as file:
            np.lib.format.write_array(file, t, version=((1, 0), (2, 0), (3, 0))[i % 3])
    with open(directory + "/in/metadata.json", "w", encoding="utf-8") as file:
        json.dump(sidecar, file)
    run(program("ETALON_TENSORFILE_COPY"), directory + "/in", directory + "/out")
    got, metadata = read(directory + "/out")
    assert sorted(got) == sorted(tensors), sorted(got)
    for name, want in tensors.items():
        same_bits(got[name], want, name)
    assert metadata == sidecar, metadata


def npy_of_other_kinds_are_refused(directory):
    copy = program("ETALON_TENSORFILE_COPY")
    bad = {
        "fortran": np.asfortranarray(np.ones((2, 3), np.float32)),
        "big": np.ones(3, ">f4"),
        "complex": np.ones(3, np.complex64),
        "record": np.ones(3, [("a", "<f4")]),
        "nameless": np.ones(3, ml_dtypes.bfloat16),
    }
    for name, t in bad.items():
        os.mkdir("%s/%s" % (directory, name))
        np.save("%s/%s/x.npy" % (directory, name), t)
        run(copy, directory + "/" + name, directory + "/out", status=1)
        assert not os.path.exists(directory + "/out")


# Conversions


def samples():
    """The samples of tests/fp8_table.c."""
    lows = np.array([0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (np.arange(65536, dtype=np.uint32)[:, None] << 16 | lows).reshape(-1).view(np.float32)


FORMATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2")


def conversion_tables():
    out = run(program("ETALON_FP8_TABLE"))
    count = len(samples())
    parts = (
        ("decoded", np.float32, (4, 256)),
        ("f16", np.float32, (65536,)),
        ("encoded", np.uint8, (3, 2, count)),
        ("e8m0", np.uint8, (count,)),
        ("bf16", np.uint16, (count,)),
    )
    tables, at = {}, 0
    for name, dtype, shape in parts:
        bytes_ = int(np.prod(shape)) * np.dtype(dtype).itemsize
        tables[name] = np.frombuffer(out[at : at + bytes_], dtype).reshape(shape)
        at += bytes_
    assert at == len(out), "%d bytes of tables, expected %d" % (len(out), at)
    return tables


def same_numbers(got, want, what):
    """Equal, signs of zero included, NaN where NaN is."""
    same = np.where(np.isnan(want), np.isnan(got), (got == want) & (np.signbit(got) == np.signbit(want)))
    bad = np.flatnonzero(~same)
    assert bad.size == 0, "%s: %d differ, first %#x: %r, expected %r" % (
        what,
        bad.size,
        bad[0],
        got[bad[0]],
        want[bad[0]],
    )


def every_code_decodes_as_in_ml_dtypes(_):
    decoded = conversion_tables()["decoded"]
    codes = np.arange(256, dtype=np.uint8)
    for i, name in enumerate(FORMATS):
        same_numbers(decoded[i], codes.view(getattr(ml_dtypes, name)).astype(np.float32), name)


def every_e8m0_code_decodes_as_in_ml_dtypes(_):
    if not HAS_E8M0:
        raise Skip("ml_dtypes " + ml_dtypes.__version__ + " has no float8_e8m0fnu")
    codes = np.arange(256, dtype=np.uint8)
    same_numbers(conversion_tables()["decoded"][3], codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float32), "e8m0")


def every_f16_decodes_as_in_numpy(_):
    want = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    same_numbers(conversion_tables()["f16"], want, "f16")


def same_codes(got, want, x, dtype, what):
    """The same codes; any NaN for a NaN."""
    got_nan, want_nan = (np.isnan(c.view(dtype).astype(np.float32)) for c in (got, want))
    bad = np.flatnonzero(np.where(want_nan, ~got_nan, got != want))
    assert bad.size == 0, "%s: %d differ, first %r: %#x, expected %#x" % (
        what,
        bad.size,
        float(x[bad[0]]).hex(),
        got[bad[0]],
        want[bad[0]],
    )


def samples_encode_as_in_ml_dtypes(_):
    """ml_dtypes has no saturating mode: there, out of range is NaN, or infinity in E5M2, as in our NaN mode."""
    tables, x = conversion_tables(), samples()
    for i, name in enumerate(FORMATS):
        dtype = np.dtype(getattr(ml_dtypes, name))
        largest = np.array(ml_dtypes.finfo(dtype).max, dtype)
        with np.errstate(all="ignore"):
            want = x.astype(dtype)
            beyond = ~np.isnan(x) & ~np.isfinite(want.astype(np.float32))
            saturated = np.where(beyond, np.where(np.signbit(x), -largest, largest), want)
        assert beyond.any() and not beyond.all()
        same_codes(tables["encoded"][i][1], want.view(np.uint8), x, dtype, name + ", NaN mode")
        same_codes(tables["encoded"][i][0], saturated.view(np.uint8), x, dtype, name + ", saturating")


def every_bf16_encodes_as_in_ml_dtypes(_):
    """From BF16 itself, without fp32 between."""
    tables, x = conversion_tables(), np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16)
    first = len(samples()) // 65536  # samples for each upper half; the first has a lower half of zero
    for i, name in enumerate(FORMATS):
        dtype = np.dtype(getattr(ml_dtypes, name))
        with np.errstate(all="ignore"):
            want = x.astype(dtype)
        same_codes(tables["encoded"][i][1][::first], want.view(np.uint8), x.astype(np.float32), dtype, name)


def samples_round_to_bf16_as_in_ml_dtypes(_):
    x = samples()
    with np.errstate(all="ignore"):
        want = x.astype(ml_dtypes.bfloat16)
    same_codes(conversion_tables()["bf16"], want.view(np.uint16), x, ml_dtypes.bfloat16, "bf16")


def samples_round_up_to_e8m0(_):
    """2^ceil(log2 x) within [2^-127, 2^127] from frexp; NaN for what is not positive."""
    x = samples()
    mantissa, exponent = np.frexp(x)
    power = np.clip(np.where(mantissa == 0.5, exponent - 1, exponent), -127, 127)
    power = np.where(np.isposinf(x), 127, power)
    want = np.where(x > 0, power + 127, 255).astype(np.uint8)
    bad = np.flatnonzero(conversion_tables()["e8m0"] != want)
    assert bad.size == 0, "%d differ, first %r" % (bad.size, x[bad[0]])


# The formulas, in float64


def gamma(n):
    return n * U / (1 - n * U)


def flag(metadata, name, default):
    return int(metadata.get(name, default))


def descale(tensors, name, batch, kv_head):
    t = tensors.get(name)
    if t is None:
        return 1.0
    return float(t.reshape(-1)[0]) if t.size == 1 else float(t[batch, kv_head])


def attention_row(q, k, v, scale, visible):
    """One row: out, lse and their bounds, as the headers state them for the fp32 rows."""
    if not visible.any():
        return 0.0, -np.inf, 0.0, 0.0
    k, v = k[visible], v[visible]
    s = scale * (k @ q)
    top = s.max()
    lse = top + np.log(np.exp(s - top).sum())
    p = np.exp(s - lse)
    e = gamma(max(32, -(-q.size // 8)) + 16) * scale * np.linalg.norm(q) * np.linalg.norm(k, axis=1).max()
    assert e <= 2.0**-6, "the bound does not hold for such scores"
    return p @ v, lse, (2 * e + gamma(160)) * (p @ abs(v)), e + gamma(128) + U * abs(lse)


def attention(tensors, metadata, keys_of, causal_default):
    """keys_of(b) gives k [Sk, Hkv, D] and v [Sk, Hkv, Dv] of a sequence, as stored."""
    q, cu_q = tensors["q"], tensors["cu_seqlens_q"].astype(np.int64)
    causal = flag(metadata, "causal", causal_default)
    left, right = flag(metadata, "window_left", -1), flag(metadata, "window_right", -1)
    scale = float(metadata.get("softmax_scale", 0)) or 1 / np.sqrt(q.shape[2])
    v_dim = keys_of(0)[1].shape[2]
    shape = (q.shape[0], q.shape[1], v_dim)
    out, out_bound = np.zeros(shape), np.zeros(shape)
    lse, lse_bound = np.zeros(shape[1::-1]), np.zeros(shape[1::-1])
    for b in range(len(cu_q) - 1):
        k, v = (t.astype(np.float64) for t in keys_of(b))
        rows, keys = int(cu_q[b + 1] - cu_q[b]), len(k)
        j = np.arange(keys)
        for h in range(q.shape[1]):
            g = h // (q.shape[1] // k.shape[1])
            k_real = k[:, g] * descale(tensors, "k_descale", b, g)
            v_real = v[:, g] * descale(tensors, "v_descale", b, g)
            for i in range(rows):
                t, diagonal = int(cu_q[b]) + i, i + keys - rows
                visible = np.ones(keys, bool)
                if causal:
                    visible &= j <= diagonal
                if left >= 0:
                    visible &= j >= diagonal - left
                if right >= 0:
                    visible &= j <= diagonal + right
                q_real = q[t, h].astype(np.float64) * descale(tensors, "q_descale", b, g)
                row = attention_row(q_real, k_real, v_real, scale, visible)
                out[t, h], lse[h, t], out_bound[t, h], lse_bound[h, t] = row
    return {"out": (out, out_bound), "lse": (lse, lse_bound)}


def pa_mtp(tensors, metadata):
    k_cache, v_cache = tensors["k_cache"], tensors["v_cache"]
    if metadata.get("kv_layout", "NHD") == "HND":
        k_cache, v_cache = k_cache.swapaxes(1, 2), v_cache.swapaxes(1, 2)

    def keys_of(b):
        count = int(tensors["seq_lens"][b])
        page = k_cache.shape[1]
        j = np.arange(count)
        pages = tensors["block_tables"][b][j // page]
        return k_cache[pages, j % page], v_cache[pages, j % page]

    return attention(tensors, metadata, keys_of, 1)


def fmha_varlen(tensors, metadata):
    cu_k = tensors["cu_seqlens_k"].astype(np.int64)

    def keys_of(b):
        return tensors["k"][cu_k[b] : cu_k[b + 1]], tensors["v"][cu_k[b] : cu_k[b + 1]]

    return attention(tensors, metadata, keys_of, 0)


def logits_row(q, k, kv_scale, weights):
    """The logits of one row, q [H, D], and the header's bound."""
    weights = weights.astype(np.float64)
    logits = kv_scale * (weights @ np.maximum(q @ k.T, 0))
    sizes = abs(kv_scale) * (abs(weights) @ (abs(q) @ abs(k).T))
    return logits, gamma(max(32, -(-q.shape[1] // 8)) + q.shape[0] + 16) * sizes


def mqa_logits(tensors, metadata):
    q, k = (tensors[name].astype(np.float64) for name in ("q", "k"))
    weights, kv_scale = (tensors[name].astype(np.float64) for name in ("weights", "kv_scale"))
    assert flag(metadata, "clean_logits", 1), "unwritten logits have no right answer"
    width = int(metadata.get("max_seqlen_k", 0))
    logits = np.full((len(q), width or len(k)), -np.inf)
    bound = np.zeros(logits.shape)
    for m in range(len(q)):
        first, last = (int(np.clip(tensors[name][m], 0, len(k))) for name in ("cu_seqlen_ks", "cu_seqlen_ke"))
        last = min(last, first + width) if width else last
        if first >= last:
            continue
        see = slice(first, last)
        to = slice(0, last - first) if width else see
        logits[m, to], bound[m, to] = logits_row(q[m], k[see], kv_scale[see], weights[m])
    return {"logits": (logits, bound)}


def mqa_logits_paged(tensors, metadata):
    q, cache, table = tensors["q"], tensors["kv_cache"], tensors["block_tables"]
    assert flag(metadata, "clean_logits", 1), "unwritten logits have no right answer"
    batch, next_n, _, dim = q.shape
    size, room = cache.shape[1], table.shape[1] * cache.shape[1]
    blocks = cache.reshape(len(cache), -1).view(np.uint8)  # of each block, all keys and then all scales
    keys = blocks[:, : size * dim].reshape(-1, size, dim).view(cache.dtype)
    scales = np.ascontiguousarray(blocks[:, size * dim :]).view(np.float32)
    width = int(metadata.get("max_context_len", 0)) or room
    logits = np.full((batch * next_n, width), -np.inf)
    bound = np.zeros(logits.shape)
    for m in range(batch * next_n):
        b, t = divmod(m, next_n)
        n = np.arange(np.clip(tensors["context_lens"][b, t], 0, min(width, room)))
        at = table[b][n // size], n % size
        row = logits_row(q[b, t].astype(float), keys[at].astype(float), scales[at].astype(float), tensors["weights"][m])
        logits[m, : len(n)], bound[m, : len(n)] = row
    return {"logits": (logits, bound)}


def merge_states(tensors, _):
    out_a, out_b = (tensors[name].astype(np.float64) for name in ("out_a", "out_b"))
    lse_a, lse_b = (tensors[name].astype(np.float64) for name in ("lse_a", "lse_b"))
    lse_a, lse_b = (np.where(np.isposinf(t), -np.inf, t) for t in (lse_a, lse_b))
    top = np.maximum(lse_a, lse_b)
    with np.errstate(invalid="ignore"):
        w_a, w_b = (np.where(np.isneginf(t), 0.0, np.exp(t - top)) for t in (lse_a, lse_b))
        lse = np.where(np.isneginf(top), -np.inf, top + np.log(np.maximum(w_a + w_b, 1)))
        apart = np.where((w_a > 0) & (w_b > 0), abs(lse_a - lse_b), 0)
    part_a, part_b = (np.where((w > 0).T[:, :, None], o, 0) for w, o in ((w_a, out_a), (w_b, out_b)))
    total = np.where(w_a + w_b > 0, w_a + w_b, 1).T[:, :, None]
    out = (w_a.T[:, :, None] * part_a + w_b.T[:, :, None] * part_b) / total
    out_bound = (8 + 2 * apart.T[:, :, None]) * U * np.maximum(abs(part_a), abs(part_b))
    lse_bound = np.where(np.isneginf(lse), 0, 4 * U + U * abs(lse))
    return {"out": (out, out_bound), "lse": (lse, lse_bound)}


def within(got, want, bound, name):
    assert got.shape == want.shape, "%s: shape %s, expected %s" % (name, got.shape, want.shape)
    got = got.astype(np.float64)
    with np.errstate(invalid="ignore"):
        good = np.where(np.isfinite(want), abs(got - want) <= bound, got == want)
    bad = np.argwhere(~good)
    assert len(bad) == 0, "%s: %d of %d beyond the bound, first %s: %r, expected %r +- %g" % (
        name,
        len(bad),
        want.size,
        bad[0].tolist(),
        got[tuple(bad[0])],
        want[tuple(bad[0])],
        bound[tuple(bad[0])],
    )


PAGED = "batch=3,q_len=4,ctx=50,heads=6,kv_heads=2,dim=48,v_dim=32,page=8,"
PACKED = "batch=3,q_len=9,ctx=33,heads=6,kv_heads=2,dim=48,v_dim=32,"
PROBLEMS = (
    (pa_mtp, "random", PAGED + "descale=1"),
    (pa_mtp, "ragged", PAGED + "descale=2,q_dtype=e4m3fn,index=i64"),
    (pa_mtp, "poisoned", PAGED + "layout=hnd,dtype=e4m3fnuz"),
    (pa_mtp, "empty", PAGED + "descale=0"),
    (pa_mtp, "random", PAGED + "dtype=bf16,descale=0,window_left=9"),
    (fmha_varlen, "random", PACKED + "descale=1,causal=1"),
    (fmha_varlen, "ragged", PACKED + "descale=2"),
    (fmha_varlen, "peaked", PACKED + "causal=1,window_left=5"),
    (fmha_varlen, "empty", PACKED + "causal=1"),
    (mqa_logits, "random", "m=9,n=70,heads=5,dim=64"),
    (mqa_logits, "past-end", "m=9,n=70,heads=5,dim=64,dtype=e4m3fnuz"),
    (mqa_logits, "poisoned", "m=9,n=70,heads=5,dim=64,index=i64"),
    (mqa_logits, "misaligned", "m=9,n=70,heads=5,dim=64,max_seqlen_k=20"),
    (mqa_logits, "past-end", "m=9,n=70,heads=5,dim=64,max_seqlen_k=90"),
    (mqa_logits_paged, "page-shuffle", "batch=3,next_n=3,ctx=70,heads=5,dim=64"),
    (mqa_logits_paged, "poisoned", "batch=2,next_n=8,ctx=70,heads=5,dim=33,page=12,dtype=e4m3fnuz,max_context_len=50"),
    (mqa_logits_paged, "empty", "batch=4,next_n=2,ctx=40,heads=5,dim=64,index=i64,max_context_len=300"),
    (merge_states, "random", "tokens=9,heads=3,dim=16"),
    (merge_states, "empty", "tokens=9,heads=3,dim=16,dtype=bf16"),
)


def results_are_those_of_the_formula(directory, formula, pattern, shape):
    """gen, then run, then the formula on what gen wrote; and a check against expected tensors that numpy computed."""
    etalon = program("ETALON")
    op = formula.__name__
    run(etalon, "gen", op, "--pattern", pattern, "--shape", shape, "--seed", "7", "-o", directory + "/in")
    run(etalon, "run", directory + "/in", "-o", directory + "/out")
    tensors, metadata = read(directory + "/in")
    assert metadata["op"] == op, metadata
    with np.errstate(invalid="ignore"):  # NaN in what nobody may read
        want = formula(tensors, metadata)
    got, _ = read(directory + "/out")
    assert sorted(got) == sorted(want), sorted(got)
    for name, (values, bound) in want.items():
        within(got[name], values, bound, name)

    for name, (values, _) in want.items():
        tensors["expected_" + name] = values.astype(np.float32)
    write(directory + "/expected", tensors, metadata)
    run(etalon, "check", directory + "/expected")
    name, (values, bound) = next(iter(want.items()))
    wrong = tensors["expected_" + name].copy()
    at = np.unravel_index(np.argmax(np.where(np.isfinite(values), bound, -1)), values.shape)
    wrong[at] += 64 * bound[at] + 1
    tensors["expected_" + name] = wrong
    write(directory + "/wrong", tensors, metadata)
    run(etalon, "check", directory + "/wrong", status=1)


def compare_reads_what_safetensors_wrote(directory):
    etalon = program("ETALON")
    random = np.random.default_rng(SEED + 2)
    tensors = {n: t for n, t in every_dtype(random).items() if np.dtype(t.dtype).kind not in "iu" and t.size > 1}
    write(directory + "/a", tensors)
    write(directory + "/b", dict(reversed(tensors.items())))
    run(etalon, "compare", directory + "/a", directory + "/b")
    for dtype in ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E4M3FNUZ", "F8_E5M2"):
        name = next(n for n in tensors if n.endswith("." + dtype))
        other = np.ones_like(tensors[name])
        other.reshape(-1)[-1] = 2
        write(directory + "/a", {name: np.ones_like(other)})
        write(directory + "/b", {name: other})
        run(etalon, "compare", directory + "/a", directory + "/b", status=1)


def cases():
    for test in (
        files_of_safetensors_pass_through,
        npy_directories_pass_through,
        npy_of_other_kinds_are_refused,
        every_code_decodes_as_in_ml_dtypes,
        every_e8m0_code_decodes_as_in_ml_dtypes,
        every_f16_decodes_as_in_numpy,
        samples_encode_as_in_ml_dtypes,
        every_bf16_encodes_as_in_ml_dtypes,
        samples_round_to_bf16_as_in_ml_dtypes,
        samples_round_up_to_e8m0,
        compare_reads_what_safetensors_wrote,
    ):
        yield test.__name__, test, ()
    for problem in PROBLEMS:
        name = "%s, %s, %s" % (problem[0].__name__, problem[1], problem[2])
        yield name, results_are_those_of_the_formula, problem


def report(number, name, test, arguments):
    """One TAP line; true unless the test failed."""
    with tempfile.TemporaryDirectory(prefix="etalon-witness.") as directory:
        try:
            test(directory, *arguments)
        except Skip as reason:
            print("ok %d - %s # SKIP %s" % (number, name, reason))
        except Exception as error:  # a test that cannot go on has failed, whatever the reason
            print("not ok %d - %s" % (number, name))
            text = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
            print("\n".join("# " + line for line in text.splitlines()))
            return False
        else:
            print("ok %d - %s" % (number, name))
    return True


def main():
    versions = (np.__version__, safetensors.__version__, ml_dtypes.__version__)
    print("# numpy %s, safetensors %s, ml_dtypes %s" % versions)
    tests = list(cases())
    print("1..%d" % len(tests))
    passed = [report(number, *test) for number, test in enumerate(tests, 1)]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
