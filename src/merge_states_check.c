#include "merge_states.h"

#include <string.h>

#define OP "merge_states"

static etalon_status check_tensors(const etalon_merge_states_args *a)
{
    TRY(tensor_check(OP, "out_a", &a->out_a, 3, DTYPES_OUT));
    TRY(tensor_check(OP, "lse_a", &a->lse_a, 2, DTYPE_BIT(ETALON_F32)));
    TRY(tensor_check(OP, "out_b", &a->out_b, 3, DTYPE_BIT(a->out_a.dtype)));
    TRY(tensor_check(OP, "lse_b", &a->lse_b, 2, DTYPE_BIT(ETALON_F32)));
    TRY(tensor_check(OP, "out", &a->out, 3, DTYPES_OUT));
    if (!tensor_absent(&a->lse))
        TRY(tensor_check(OP, "lse", &a->lse, 2, DTYPE_BIT(ETALON_F32)));
    return ETALON_OK;
}

static etalon_status check_extents(const etalon_merge_states_args *a)
{
    const int64_t tokens = a->out_a.shape[0], heads = a->out_a.shape[1], d = a->out_a.shape[2];
    REQUIRE(heads >= 1, OP ": out_a.shape[1]: %" PRId64 " heads, expected 1 or more", heads);
    REQUIRE(d >= 1, OP ": out_a.shape[2]: head dim %" PRId64 ", expected 1 or more", d);
    for (int32_t dim = 0; dim < 3; dim++) {
        TRY(tensor_check_extent(OP, "out_b", &a->out_b, dim, a->out_a.shape[dim], "that of out_a"));
        TRY(tensor_check_extent(OP, "out", &a->out, dim, a->out_a.shape[dim], "that of out_a"));
    }
    const char *const    names[] = { "lse_a", "lse_b", "lse" };
    const etalon_tensor *all[] = { &a->lse_a, &a->lse_b, &a->lse };
    for (int i = 0; i < 3; i++) {
        if (tensor_absent(all[i]))
            continue;
        TRY(tensor_check_extent(OP, names[i], all[i], 0, heads, "heads of out_a"));
        TRY(tensor_check_extent(OP, names[i], all[i], 1, tokens, "tokens of out_a"));
    }
    return ETALON_OK;
}

/* The same elements at the same addresses: merging in place. */
static bool in_place(const etalon_tensor *output, const etalon_tensor *input)
{
    return output->data == input->data && output->dtype == input->dtype &&
           memcmp(output->stride, input->stride, (size_t)output->rank * sizeof output->stride[0]) == 0;
}

static etalon_status check_memory(const etalon_merge_states_args *a)
{
    static const etalon_tensor absent;
    const char *const          names[] = { "out_a", "lse_a", "out_b", "lse_b", "lse", "out" };
    const etalon_tensor       *all[] = { &a->out_a, &a->lse_a, &a->out_b, &a->lse_b, &a->lse, &a->out };
    enum { INPUTS = 4, ALL = 6 };
    TRY(tensor_check_device(OP, names, all, ALL));
    for (int i = 0; i < INPUTS; i++)
        if (in_place(i % 2 ? &a->lse : &a->out, all[i]))
            all[i] = &absent;
    if (!tensor_absent(&a->lse))
        TRY(tensor_check_output(OP, "lse", &a->lse, names, all, INPUTS));
    return tensor_check_output(OP, "out", &a->out, names, all, INPUTS + 1); /* lse included */
}

etalon_status merge_states_check(const etalon_merge_states_args *args, merge_states_problem *p)
{
    etalon_merge_states_args a;
    TRY(gate_copy_args(OP, &a, sizeof a, args, args == NULL ? 0 : args->size));
    TRY(check_tensors(&a));
    TRY(check_extents(&a));
    TRY(check_memory(&a));
    *p = (merge_states_problem){ .tokens = a.out_a.shape[0],
                                 .heads = a.out_a.shape[1],
                                 .d = a.out_a.shape[2],
                                 .out_a = a.out_a,
                                 .lse_a = a.lse_a,
                                 .out_b = a.out_b,
                                 .lse_b = a.lse_b,
                                 .out = a.out,
                                 .lse = a.lse,
                                 .device = a.out_a.device,
                                 .kernel = a.kernel };
    return ETALON_OK;
}
