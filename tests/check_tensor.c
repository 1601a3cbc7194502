/* Data types, dense views, and every refusal of the checks that the operations share. */
#include "testing.h"

#include "tensor.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum { LARGE = 1 << 30 };

/* ---- data types ---- */

static const struct {
    etalon_dtype dtype;
    const char  *name;
    size_t       bytes;
    bool         fp8;
} dtypes[] = {
    { ETALON_DTYPE_NONE, "none", 0, false },
    { ETALON_F64, "f64", 8, false },
    { ETALON_F32, "f32", 4, false },
    { ETALON_F16, "f16", 2, false },
    { ETALON_BF16, "bf16", 2, false },
    { ETALON_E4M3FN, "e4m3fn", 1, true },
    { ETALON_E4M3FNUZ, "e4m3fnuz", 1, true },
    { ETALON_E5M2, "e5m2", 1, true },
    { ETALON_E8M0, "e8m0", 1, false },
    { ETALON_I64, "i64", 8, false },
    { ETALON_I32, "i32", 4, false },
    { ETALON_U8, "u8", 1, false },
    { (etalon_dtype)(ETALON_U8 + 1), "none", 0, false },
    { (etalon_dtype)-1, "none", 0, false },
};

START_TEST(dtype)
{
    ck_assert_str_eq(etalon_dtype_name(dtypes[_i].dtype), dtypes[_i].name);
    ck_assert_uint_eq(etalon_dtype_bytes(dtypes[_i].dtype), dtypes[_i].bytes);
    ck_assert_int_eq(dtype_is_fp8(dtypes[_i].dtype), dtypes[_i].fp8);
}
END_TEST

/* ---- dense views ---- */

static float memory[2 * 3 * 4 * 5 * 6];

static etalon_tensor f32_view(int32_t rank, const int64_t *shape)
{
    return etalon_tensor_dense(memory, ETALON_F32, rank, shape);
}

START_TEST(dense_strides)
{
    const int64_t       shape[] = { 2, 3, 4, 5, 6 };
    const etalon_tensor t = f32_view(5, shape);
    ck_assert_ptr_eq(t.data, memory);
    ck_assert_int_eq(t.dtype, ETALON_F32);
    ck_assert_int_eq(t.device, ETALON_HOST);
    ck_assert_int_eq(t.rank, 5);
    ck_assert_mem_eq(t.shape, shape, sizeof shape);
    ck_assert_mem_eq(t.stride, ((int64_t[]){ 360, 120, 30, 6, 1 }), sizeof t.stride);
    ck_assert_ptr_eq(tensor_at2(&t, 1, 2), (char *)memory + (360 + 240) * 4);
    ck_assert_ptr_eq(tensor_at3(&t, 1, 2, 3), (char *)memory + (360 + 240 + 90) * 4);
}
END_TEST

START_TEST(dense_rank_zero)
{
    const etalon_tensor t = f32_view(0, NULL);
    ck_assert_int_eq(t.rank, 0);
    ck_assert(!tensor_empty(&t));
    ck_assert_ok(tensor_check("op", "x", &t, 0, DTYPE_BIT(ETALON_F32)));
}
END_TEST

START_TEST(dense_empty)
{
    const int64_t       shape[] = { 3, 0, 2 };
    const etalon_tensor t = f32_view(3, shape);
    ck_assert(tensor_empty(&t));
    ck_assert_ok(tensor_check("op", "x", &t, 3, DTYPE_BIT(ETALON_F32)));
}
END_TEST

/* Strides beyond 64 bits are 0, and the view is refused. */
START_TEST(dense_overflow)
{
    const int64_t       shape[] = { 2, (int64_t)1 << 40, (int64_t)1 << 40 };
    const etalon_tensor t = f32_view(3, shape);
    ck_assert_int_eq(t.stride[0], 0);
    ck_assert_int_eq(t.stride[1], (int64_t)1 << 40);
    ck_assert_rejects(tensor_check("op", "x", &t, 3, DTYPE_BIT(ETALON_F32)), ETALON_ERROR_INVALID_ARGUMENT,
                      "overflows");
}
END_TEST

/* A rank that no view can have reads no shape, and is refused. */
START_TEST(dense_impossible_rank)
{
    static const int32_t ranks[] = { -1, ETALON_MAX_RANK + 1, INT32_MAX, INT32_MIN };
    const etalon_tensor  t = f32_view(ranks[_i], NULL);
    ck_assert_int_eq(t.rank, ranks[_i]);
    ck_assert_rejects(tensor_check("op", "x", &t, 2, DTYPE_BIT(ETALON_F32)), ETALON_ERROR_INVALID_ARGUMENT, "x: rank");
}
END_TEST

/* ---- tensor_check ---- */

static const int64_t two_three[] = { 2, 3 };

static etalon_tensor two_by_three(void)
{
    return f32_view(2, two_three);
}

START_TEST(check_missing)
{
    etalon_tensor t = two_by_three();
    ck_assert(!tensor_absent(&t));
    t.data = NULL;
    ck_assert(tensor_absent(&t));
    ck_assert_rejects(tensor_check("op", "x", &t, 2, DTYPE_BIT(ETALON_F32)), ETALON_ERROR_INVALID_ARGUMENT,
                      "op: x: missing");
}
END_TEST

START_TEST(check_rank)
{
    const etalon_tensor t = two_by_three();
    ck_assert_ok(tensor_check("op", "x", &t, 2, DTYPE_BIT(ETALON_F32)));
    ck_assert_rejects(tensor_check("op", "x", &t, 3, DTYPE_BIT(ETALON_F32)), ETALON_ERROR_INVALID_ARGUMENT,
                      "op: x: rank 2, expected 3");
}
END_TEST

START_TEST(check_dtype)
{
    etalon_tensor t = two_by_three();
    ck_assert_ok(tensor_check("op", "x", &t, 2, DTYPES_OUT));
    ck_assert_rejects(tensor_check("op", "x", &t, 2, DTYPES_INDEX), ETALON_ERROR_INVALID_ARGUMENT,
                      "op: x: dtype f32, expected i64 or i32");
    ck_assert_rejects(tensor_check("op", "x", &t, 2, DTYPES_FP8), ETALON_ERROR_INVALID_ARGUMENT,
                      "expected e4m3fn or e4m3fnuz");
    static const int strange[] = { ETALON_DTYPE_NONE, 31, 32, 32 + ETALON_F32, -1, INT32_MIN };
    for (int i = 0; i < COUNT(strange); i++) {
        t.dtype = (etalon_dtype)strange[i];
        ck_assert_rejects(tensor_check("op", "x", &t, 2, DTYPE_BIT(ETALON_F32)), ETALON_ERROR_INVALID_ARGUMENT,
                          "op: x: dtype none, expected f32");
    }
}
END_TEST

START_TEST(check_negative_extent)
{
    etalon_tensor t = two_by_three();
    t.shape[1] = -4;
    ck_assert_rejects(tensor_check("op", "x", &t, 2, DTYPE_BIT(ETALON_F32)), ETALON_ERROR_INVALID_ARGUMENT,
                      "op: x.shape[1]: -4, expected 0 or more");
}
END_TEST

/* Views of F32 whose sizes leave 63 bits, or just do not. */
static const struct {
    int64_t     shape[2], stride[2];
    const char *words; /* NULL: fits */
} sizes[] = {
    { { (int64_t)1 << 31, (int64_t)1 << 29 }, { 1, 0 }, NULL },
    { { (int64_t)1 << 31, (int64_t)1 << 30 }, { 1, 0 }, "number of elements overflows" },
    { { INT64_MAX, 1 }, { 0, 0 }, "number of elements overflows" },
    { { INT64_MAX, INT64_MAX }, { 1, 1 }, "number of elements overflows" },
    { { 3, 1 }, { (int64_t)1 << 59, INT64_MAX / 4 }, NULL },
    { { 3, 1 }, { (int64_t)1 << 60, 0 }, "shape times stride overflows" },
    { { 3, 1 }, { -((int64_t)1 << 60), 0 }, "shape times stride overflows" },
    { { 2, 2 }, { (int64_t)1 << 60, (int64_t)1 << 60 }, "shape times stride overflows" },
    { { 2, 1 }, { INT64_MIN, 0 }, "shape times stride overflows" },
    { { 2, 1 }, { INT64_MAX, 0 }, "shape times stride overflows" },
    { { 0, 2 }, { INT64_MIN, INT64_MAX }, NULL }, /* no element, no offset */
};

START_TEST(check_sizes)
{
    etalon_tensor t = f32_view(2, sizes[_i].shape);
    memcpy(t.stride, sizes[_i].stride, sizeof sizes[_i].stride);
    if (sizes[_i].words == NULL)
        ck_assert_ok(tensor_check("op", "x", &t, 2, DTYPE_BIT(ETALON_F32)));
    else
        ck_assert_rejects(tensor_check("op", "x", &t, 2, DTYPE_BIT(ETALON_F32)), ETALON_ERROR_INVALID_ARGUMENT,
                          sizes[_i].words);
}
END_TEST

/* |INT64_MIN| is no int64_t, whatever the bytes of an element are. */
START_TEST(check_least_stride)
{
    const int64_t shape[] = { 2 };
    etalon_tensor t = etalon_tensor_dense(memory, ETALON_U8, 1, shape);
    t.stride[0] = INT64_MIN;
    ck_assert_rejects(tensor_check("op", "x", &t, 1, DTYPE_BIT(ETALON_U8)), ETALON_ERROR_INVALID_ARGUMENT,
                      "shape times stride overflows");
}
END_TEST

START_TEST(check_extent)
{
    const etalon_tensor t = two_by_three();
    ck_assert_ok(tensor_check_extent("op", "x", &t, 1, 3, "D of q"));
    ck_assert_rejects(tensor_check_extent("op", "x", &t, 1, 4, "D of q"), ETALON_ERROR_INVALID_ARGUMENT,
                      "op: x.shape[1]: 3, expected 4 (D of q)");
}
END_TEST

/* ---- outputs ---- */

static const struct {
    int64_t     shape[3], stride[3];
    const char *words; /* NULL: every element stands once */
} outputs[] = {
    { { 2, 3, 4 }, { 12, 4, 1 }, NULL },
    { { 2, 3, 4 }, { 1, 2, 6 }, NULL },     /* transposed */
    { { 2, 3, 4 }, { 24, 8, 2 }, NULL },    /* every other element */
    { { 2, 3, 4 }, { 4, 8, 1 }, NULL },     /* interleaved */
    { { 2, 3, 4 }, { -12, -4, -1 }, NULL }, /* backwards; data is the last element */
    { { 2, 1, 4 }, { 4, 0, 1 }, NULL },     /* one element needs no stride */
    { { 0, 3, 4 }, { 0, 0, 0 }, NULL },     /* no element at all */
    { { 2, 3, 4 }, { 12, 4, 0 }, "out.stride[2]: 0," },
    { { 2, 3, 4 }, { 0, 4, 1 }, "out.stride[0]: 0," },
    { { 2, 3, 4 }, { 12, 3, 1 }, "out.stride[1]: 3, expected more than 3" },
    { { 2, 3, 4 }, { 11, 4, 1 }, "out.stride[0]: 11, expected more than 11" },
    { { 2, 3, 4 }, { 12, -3, 1 }, "out.stride[1]: -3, expected more than 3" },
    { { 2, 2, 2 }, { 1, 1, 4 }, "elements would overlap" },
};

START_TEST(output_elements_stand_once)
{
    etalon_tensor t = f32_view(3, outputs[_i].shape);
    memcpy(t.stride, outputs[_i].stride, sizeof outputs[_i].stride);
    t.data = &memory[32];
    if (outputs[_i].words == NULL)
        ck_assert_ok(tensor_check_output("op", "out", &t, NULL, NULL, 0));
    else
        ck_assert_rejects(tensor_check_output("op", "out", &t, NULL, NULL, 0), ETALON_ERROR_INVALID_ARGUMENT,
                          outputs[_i].words);
}
END_TEST

/* A dense output of 8 floats from memory[16] on, and inputs around it. */
static const struct {
    int64_t     offset, extent, stride;
    const char *words; /* NULL: no overlap */
} neighbours[] = {
    { 0, 16, 1, NULL },
    { 24, 8, 1, NULL },
    { 9, 8, 1, "op: out: overlaps second in memory" },
    { 23, 8, 1, "op: out: overlaps second in memory" },
    { 16, 8, 1, "op: out: overlaps second in memory" },
    { 18, 2, 1, "op: out: overlaps second in memory" },
    { 0, 64, 1, "op: out: overlaps second in memory" },
    { 30, 16, -1, "op: out: overlaps second in memory" }, /* 15 to 30 */
    { 40, 16, -1, NULL },                                 /* 25 to 40 */
    { 23, 1, 0, "op: out: overlaps second in memory" },
    { 10, 10, 2, NULL }, /* with gaps it may be interleaved with the output, as far as spans tell */
    { 20, 0, 1, NULL },  /* no element */
};

START_TEST(output_and_inputs)
{
    const int64_t       eight = 8, far = 2;
    const char *const   names[] = { "first", "second", "third" };
    const etalon_tensor absent = { .data = NULL };
    etalon_tensor out = f32_view(1, &eight), first = f32_view(1, &far), second = f32_view(1, &neighbours[_i].extent);
    out.data = &memory[16];
    second.data = &memory[neighbours[_i].offset];
    second.stride[0] = neighbours[_i].stride;
    const etalon_tensor *const inputs[] = { &first, &second, &absent };
    if (neighbours[_i].words == NULL)
        ck_assert_ok(tensor_check_output("op", "out", &out, names, inputs, 3));
    else
        ck_assert_rejects(tensor_check_output("op", "out", &out, names, inputs, 3), ETALON_ERROR_INVALID_ARGUMENT,
                          neighbours[_i].words);
    const int64_t none = 0;
    out = f32_view(1, &none);
    ck_assert_ok(tensor_check_output("op", "out", &out, names, inputs, 3)); /* nothing is written */
}
END_TEST

/* An input whose broadcast makes up in number what it leaves out of its span is not dense; a plain broadcast is. */
START_TEST(broadcast_inputs)
{
    const int64_t     eight = 8, pairs[] = { 2, 10 };
    const char *const names[] = { "in" };
    etalon_tensor     out = f32_view(1, &eight), in = f32_view(2, pairs);
    out.data = &memory[1];
    in.stride[0] = 19; /* memory[0] and memory[19], ten times each: 20 elements in a span of 20 */
    in.stride[1] = 0;
    const etalon_tensor *const inputs[] = { &in };
    ck_assert_ok(tensor_check_output("op", "out", &out, names, inputs, 1));
    in = f32_view(1, &eight);
    in.data = &memory[4];
    in.stride[0] = 0;
    ck_assert_rejects(tensor_check_output("op", "out", &out, names, inputs, 1), ETALON_ERROR_INVALID_ARGUMENT,
                      "op: out: overlaps in in memory");
}
END_TEST

/* Two views of one buffer whose elements alternate: neither is dense. */
START_TEST(interleaved_output)
{
    const int64_t     eight = 8;
    const char *const names[] = { "in" };
    etalon_tensor     in = f32_view(1, &eight), out = in;
    in.stride[0] = out.stride[0] = 2;
    out.data = &memory[1];
    const etalon_tensor *const inputs[] = { &in };
    ck_assert_ok(tensor_check_output("op", "out", &out, names, inputs, 1));
}
END_TEST

/* ---- devices ---- */

START_TEST(devices)
{
    const char *const          names[] = { "a", "b", "c" };
    etalon_tensor              a = two_by_three(), b = a, c = a;
    const etalon_tensor *const all[] = { &a, &b, &c };
    ck_assert_ok(tensor_check_device("op", names, all, 3));
    ck_assert_ok(tensor_check_device("op", names, all, 0));
    a.device = b.device = c.device = 3;
    ck_assert_ok(tensor_check_device("op", names, all, 3));
    c.device = ETALON_HOST;
    ck_assert_rejects(tensor_check_device("op", names, all, 3), ETALON_ERROR_INVALID_ARGUMENT,
                      "op: c.device: -1, expected 3 (that of a)");
    a.data = NULL; /* absent: b says which device it is */
    ck_assert_rejects(tensor_check_device("op", names, all, 3), ETALON_ERROR_INVALID_ARGUMENT,
                      "op: c.device: -1, expected 3 (that of b)");
    c.data = NULL;
    ck_assert_ok(tensor_check_device("op", names, all, 3));
    b.device = -2;
    ck_assert_rejects(tensor_check_device("op", names, all, 3), ETALON_ERROR_INVALID_ARGUMENT, "op: b.device: -2,");
    b.data = NULL;
    ck_assert_ok(tensor_check_device("op", names, all, 3));
}
END_TEST

/* ---- index vectors ---- */

static const struct {
    int64_t     n, values[5], total;
    const char *words; /* NULL: right */
} cu_seqlens[] = {
    { 5, { 0, 3, 3, 7, 9 }, 9, NULL },
    { 1, { 0 }, 0, NULL }, /* no sequence */
    { 3, { 0, 0, 0 }, 0, NULL },
    { 2, { 0, LARGE }, LARGE, NULL },
    { 5, { 1, 3, 3, 7, 9 }, 9, "op: cu[0]: 1, expected 0" },
    { 5, { -1, 3, 3, 7, 9 }, 9, "op: cu[0]: -1, expected 0" },
    { 5, { 0, 3, 2, 7, 9 }, 9, "op: cu[2]: 2, expected at least 3" },
    { 5, { 0, -1, 3, 7, 9 }, 9, "op: cu[1]: -1, expected at least 0" },
    { 5, { 0, 3, 3, 7, 8 }, 9, "op: cu[4]: 8, expected 9 (tokens of q)" },
    { 5, { 0, 3, 3, 7, 10 }, 9, "op: cu[4]: 10, expected 9 (tokens of q)" },
    { 1, { 0 }, 1, "op: cu[0]: 0, expected 1 (tokens of q)" },
};

static void check_cu(const etalon_tensor *t, int i)
{
    if (cu_seqlens[i].words == NULL)
        ck_assert_ok(tensor_check_cu_seqlens("op", "cu", t, cu_seqlens[i].total, "tokens of q"));
    else
        ck_assert_rejects(tensor_check_cu_seqlens("op", "cu", t, cu_seqlens[i].total, "tokens of q"),
                          ETALON_ERROR_INVALID_ARGUMENT, cu_seqlens[i].words);
}

/* Both dtypes, dense, with gaps, and backwards. */
START_TEST(check_cu_seqlens)
{
    const int64_t n = cu_seqlens[_i].n;
    for (int64_t stride = -2; stride <= 2; stride++) {
        int32_t narrow[10];
        int64_t wide[10];
        if (stride == 0)
            continue;
        memset(narrow, 0x55, sizeof narrow);
        memset(wide, 0x55, sizeof wide);
        const int64_t start = stride < 0 ? -stride * (n - 1) : 0;
        for (int64_t i = 0; i < n; i++) {
            narrow[start + i * stride] = (int32_t)cu_seqlens[_i].values[i];
            wide[start + i * stride] = cu_seqlens[_i].values[i];
        }
        etalon_tensor a = etalon_tensor_dense(&narrow[start], ETALON_I32, 1, &n);
        etalon_tensor b = etalon_tensor_dense(&wide[start], ETALON_I64, 1, &n);
        a.stride[0] = b.stride[0] = stride;
        check_cu(&a, _i);
        check_cu(&b, _i);
    }
}
END_TEST

/* The 64-bit values are not cut to 32 bits on their way. */
START_TEST(cu_seqlens_beyond_32_bits)
{
    const int64_t       two = 2;
    int64_t             values[] = { 0, ((int64_t)1 << 32) + 5 };
    const etalon_tensor t = etalon_tensor_dense(values, ETALON_I64, 1, &two);
    ck_assert_ok(tensor_check_cu_seqlens("op", "cu", &t, ((int64_t)1 << 32) + 5, "tokens of q"));
    ck_assert_rejects(tensor_check_cu_seqlens("op", "cu", &t, 5, "tokens of q"), ETALON_ERROR_INVALID_ARGUMENT,
                      "op: cu[1]: 4294967301, expected 5");
}
END_TEST

START_TEST(index_vectors)
{
    const int64_t four = 4;
    int32_t       narrow[8] = { -1, INT32_MIN, INT32_MAX, 7, 8, INT32_MIN, 9, 10 };
    int64_t       wide[] = { -1, INT64_MIN, INT64_MAX, (int64_t)1 << 40 };
    etalon_tensor a = etalon_tensor_dense(narrow, ETALON_I32, 1, &four);
    etalon_tensor b = etalon_tensor_dense(wide, ETALON_I64, 1, &four);
    for (int64_t i = 0; i < four; i++) {
        ck_assert_int_eq(index_at(&a, i), narrow[i]);
        ck_assert_int_eq(index_at(&b, i), wide[i]);
    }
    a.data = &narrow[7];
    a.stride[0] = -2;
    ck_assert_int_eq(index_at(&a, 1), INT32_MIN);
    b.stride[0] = 0;
    ck_assert_int_eq(index_at(&b, 3), -1);
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, dtype, 0, COUNT(dtypes));
    tcase_add_test(tcase, dense_strides);
    tcase_add_test(tcase, dense_rank_zero);
    tcase_add_test(tcase, dense_empty);
    tcase_add_test(tcase, dense_overflow);
    tcase_add_loop_test(tcase, dense_impossible_rank, 0, 4);
    tcase_add_test(tcase, check_missing);
    tcase_add_test(tcase, check_rank);
    tcase_add_test(tcase, check_dtype);
    tcase_add_test(tcase, check_negative_extent);
    tcase_add_loop_test(tcase, check_sizes, 0, COUNT(sizes));
    tcase_add_test(tcase, check_least_stride);
    tcase_add_test(tcase, check_extent);
    tcase_add_loop_test(tcase, output_elements_stand_once, 0, COUNT(outputs));
    tcase_add_loop_test(tcase, output_and_inputs, 0, COUNT(neighbours));
    tcase_add_test(tcase, broadcast_inputs);
    tcase_add_test(tcase, interleaved_output);
    tcase_add_test(tcase, devices);
    tcase_add_loop_test(tcase, check_cu_seqlens, 0, COUNT(cu_seqlens));
    tcase_add_test(tcase, cu_seqlens_beyond_32_bits);
    tcase_add_test(tcase, index_vectors);
}

int main(void)
{
    return testing_main("tensor", fill);
}
