/* The disassembler's text, parsed: mnemonic, operands between commas, modifiers behind them.
 *
 * Nothing is skipped: a word that is neither an operand nor a row of the table of modifiers is an error that quotes
 * it. */
#include "parse.h"

#include "machine.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    sim_arch         arch;
    const char      *at; /* what is left of this half */
    const char      *text;
    sim_instruction *to;
    uint8_t          select[2]; /* src0_sel, src1_sel: put to the operands when all are read */
} parser;

static bool fail(const parser *p, const char *what)
{
    sim_set_error("%s: %s: \"%s\"", p->text, what, p->at);
    return false;
}

/* Words
 * -----
 */
static void skip_space(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static bool take(parser *p, const char *literal)
{
    const size_t length = strlen(literal);
    if (strncmp(p->at, literal, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* The length of the word at the cursor: letters, digits and underscores. */
static size_t word_length(const parser *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')
        n++;
    return n;
}

static bool word_is(const parser *p, size_t length, const char *name)
{
    return strncmp(p->at, name, length) == 0 && name[length] == '\0';
}

/* A decimal or hexadecimal integer with an optional minus, in [low, high]. */
static bool take_integer(parser *p, int64_t low, int64_t high, int64_t *value)
{
    const char *digits = p->at + (*p->at == '-');
    if (!isdigit((unsigned char)*digits))
        return fail(p, "a number is missing");
    char *end;
    errno = 0;
    const bool is_hex = digits[0] == '0' && digits[1] == 'x';
    *value = strtoll(p->at, &end, is_hex ? 16 : 10);
    if (errno != 0 || *value < low || *value > high)
        return fail(p, "a number out of range");
    p->at = end;
    return true;
}

/* One of a list of names: its number. */
static bool take_name(parser *p, const char *const *names, int64_t *number)
{
    const size_t length = word_length(p);
    for (int64_t i = 0; length > 0 && names[i] != NULL; i++)
        if (word_is(p, length, names[i])) {
            p->at += length;
            *number = i;
            return true;
        }
    return fail(p, "an unknown name");
}

/* Operands
 * --------
 */
typedef struct named_operand {
    const char *name;
    uint8_t     kind, count;
    uint16_t    reg;
    uint8_t     arches;
} named_operand;

static const named_operand named_operands[] = {
    { "vcc", SIM_SCALAR, 2, SIM_VCC, SIM_ON_BOTH },
    { "vcc_lo", SIM_SCALAR, 1, SIM_VCC, SIM_ON_BOTH },
    { "vcc_hi", SIM_SCALAR, 1, SIM_VCC + 1, SIM_ON_BOTH },
    { "exec", SIM_SCALAR, 2, SIM_EXEC, SIM_ON_BOTH },
    { "exec_lo", SIM_SCALAR, 1, SIM_EXEC, SIM_ON_BOTH },
    { "exec_hi", SIM_SCALAR, 1, SIM_EXEC + 1, SIM_ON_BOTH },
    { "m0", SIM_SCALAR, 1, SIM_M0, SIM_ON_BOTH },
    { "off", SIM_NONE, 0, 0, SIM_ON_BOTH },
    { "null", SIM_NONE, 0, 0, SIM_ON_GFX1250 },
    { "src_scc", SIM_SPECIAL, 1, SIM_SRC_SCC, SIM_ON_BOTH },
    { "scc", SIM_SPECIAL, 1, SIM_SRC_SCC, SIM_ON_BOTH },
    { "src_vccz", SIM_SPECIAL, 1, SIM_SRC_VCCZ, SIM_ON_BOTH },
    { "src_execz", SIM_SPECIAL, 1, SIM_SRC_EXECZ, SIM_ON_BOTH },
    { "src_shared_base", SIM_SPECIAL, 2, SIM_SHARED_BASE, SIM_ON_BOTH },
    { "src_shared_limit", SIM_SPECIAL, 2, SIM_SHARED_LIMIT, SIM_ON_BOTH },
    { "src_private_base", SIM_SPECIAL, 2, SIM_PRIVATE_BASE, SIM_ON_BOTH },
    { "src_private_limit", SIM_SPECIAL, 2, SIM_PRIVATE_LIMIT, SIM_ON_BOTH },
    { "src_flat_scratch_base_lo", SIM_SPECIAL, 1, SIM_FLAT_SCRATCH_LO, SIM_ON_GFX1250 },
    { "src_flat_scratch_base_hi", SIM_SPECIAL, 1, SIM_FLAT_SCRATCH_HI, SIM_ON_GFX1250 },
};

typedef struct register_file {
    const char *prefix;
    uint8_t     kind;
    uint16_t    base, size; /* number of the first register, and how many there are */
    uint8_t     arches;
} register_file;

static const register_file register_files[] = {
    { "ttmp", SIM_SCALAR, SIM_TTMP, 16, SIM_ON_BOTH },
    { "s", SIM_SCALAR, 0, SIM_VCC, SIM_ON_BOTH },
    { "v", SIM_VECTOR, 0, 256, SIM_ON_BOTH },
    { "a", SIM_ACC, 0, 256, SIM_ON_GFX950 },
};

/* Registers of s_getreg and s_setreg, by number. LLVM prints the number where it has no name for it. */
typedef struct numbered_name {
    const char *name;
    uint8_t     number, arches;
} numbered_name;

static const numbered_name hardware_registers[] = {
    { "HW_REG_MODE", 1, SIM_ON_GFX950 },
    { "HW_REG_STATUS", 2, SIM_ON_GFX950 },
    { "HW_REG_TRAPSTS", 3, SIM_ON_GFX950 },
    { "HW_REG_HW_ID", 4, SIM_ON_GFX950 },
    { "HW_REG_GPR_ALLOC", 5, SIM_ON_GFX950 },
    { "HW_REG_LDS_ALLOC", 6, SIM_ON_GFX950 },
    { "HW_REG_IB_STS", 7, SIM_ON_BOTH },
    { "HW_REG_SH_MEM_BASES", 15, SIM_ON_GFX950 },
    { "HW_REG_TBA_LO", 16, SIM_ON_GFX950 },
    { "HW_REG_TBA_HI", 17, SIM_ON_GFX950 },
    { "HW_REG_TMA_LO", 18, SIM_ON_GFX950 },
    { "HW_REG_TMA_HI", 19, SIM_ON_GFX950 },
    { "HW_REG_XCC_ID", 20, SIM_ON_GFX950 },
    { "HW_REG_SQ_PERF_SNAPSHOT_DATA", 21, SIM_ON_GFX950 },
    { "HW_REG_SQ_PERF_SNAPSHOT_DATA1", 22, SIM_ON_GFX950 },
    { "HW_REG_SQ_PERF_SNAPSHOT_PC_LO", 23, SIM_ON_GFX950 },
    { "HW_REG_SQ_PERF_SNAPSHOT_PC_HI", 24, SIM_ON_GFX950 },
    { "HW_REG_WAVE_MODE", 1, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_STATUS", 2, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_STATE_PRIV", 4, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_GPR_ALLOC", 5, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_LDS_ALLOC", 6, SIM_ON_GFX1250 },
    { "HW_REG_PERF_SNAPSHOT_DATA", 10, SIM_ON_GFX1250 },
    { "HW_REG_PERF_SNAPSHOT_PC_LO", 11, SIM_ON_GFX1250 },
    { "HW_REG_PERF_SNAPSHOT_PC_HI", 12, SIM_ON_GFX1250 },
    { "HW_REG_PERF_SNAPSHOT_DATA1", 15, SIM_ON_GFX1250 },
    { "HW_REG_PERF_SNAPSHOT_DATA2", 16, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_EXCP_FLAG_PRIV", 17, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_EXCP_FLAG_USER", 18, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_TRAP_CTRL", 19, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_SCRATCH_BASE_LO", 20, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_SCRATCH_BASE_HI", 21, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_HW_ID1", 23, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_HW_ID2", 24, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_SCHED_MODE", 26, SIM_ON_GFX1250 },
    { "HW_REG_IB_STS2", 28, SIM_ON_GFX1250 },
    { "HW_REG_SHADER_CYCLES_LO", 29, SIM_ON_GFX1250 },
    { "HW_REG_SHADER_CYCLES_HI", 30, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_DVGPR_ALLOC_LO", 31, SIM_ON_GFX1250 },
    { "HW_REG_WAVE_DVGPR_ALLOC_HI", 32, SIM_ON_GFX1250 },
    { "HW_REG_XNACK_STATE_PRIV", 33, SIM_ON_GFX1250 },
    { "HW_REG_XNACK_MASK", 34, SIM_ON_GFX1250 },
    { NULL, 0, 0 },
};

static const numbered_name messages[] = {
    { "MSG_INTERRUPT", 1, SIM_ON_BOTH },
    { "MSG_HS_TESSFACTOR", 2, SIM_ON_GFX1250 },
    { "MSG_DEALLOC_VGPRS", 3, SIM_ON_GFX1250 },
    { "MSG_SAVEWAVE", 4, SIM_ON_GFX950 },
    { "MSG_STALL_WAVE_GEN", 5, SIM_ON_GFX950 },
    { "MSG_HALT_WAVES", 6, SIM_ON_GFX950 },
    { "MSG_ORDERED_PS_DONE", 7, SIM_ON_GFX950 },
    { "MSG_EARLY_PRIM_DEALLOC", 8, SIM_ON_GFX950 },
    { "MSG_GS_ALLOC_REQ", 9, SIM_ON_BOTH },
    { "MSG_GET_DOORBELL", 10, SIM_ON_GFX950 },
    { "MSG_SAVEWAVE_HAS_TDM", 10, SIM_ON_GFX1250 },
    { "MSG_RTN_GET_DOORBELL", 128, SIM_ON_GFX1250 },
    { "MSG_RTN_GET_DDID", 129, SIM_ON_GFX1250 },
    { "MSG_RTN_GET_TMA", 130, SIM_ON_GFX1250 },
    { "MSG_RTN_GET_REALTIME", 131, SIM_ON_GFX1250 },
    { "MSG_RTN_SAVE_WAVE", 132, SIM_ON_GFX1250 },
    { "MSG_RTN_GET_TBA", 133, SIM_ON_GFX1250 },
    { "MSG_RTN_GET_TBA_TO_PC", 134, SIM_ON_GFX1250 },
    { "MSG_RTN_GET_SE_AID_ID", 135, SIM_ON_GFX1250 },
    { "MSG_RTN_GET_CLUSTER_BARRIER_STATE", 136, SIM_ON_GFX1250 },
    { NULL, 0, 0 },
};

/* A name of the table, or the number itself. */
static bool take_numbered(parser *p, const numbered_name *names, int64_t high, int64_t *number)
{
    if (isdigit((unsigned char)*p->at))
        return take_integer(p, 0, high, number);
    const size_t length = word_length(p);
    for (const numbered_name *n = names; length > 0 && n->name != NULL; n++)
        if ((n->arches >> p->arch & 1) != 0 && word_is(p, length, n->name)) {
            p->at += length;
            *number = n->number;
            return true;
        }
    return fail(p, "an unknown name");
}

/* The rest of hwreg(ID), hwreg(ID, OFFSET, SIZE). */
static bool take_hwreg(parser *p, sim_operand *o)
{
    int64_t id, offset = 0, size = 32;
    if (!take_numbered(p, hardware_registers, 63, &id))
        return false;
    if (take(p, ", ") && (!take_integer(p, 0, 31, &offset) || !take(p, ", ") || !take_integer(p, 1, 32, &size)))
        return fail(p, "a malformed hwreg()");
    if (!take(p, ")"))
        return fail(p, "hwreg() does not end");
    o->kind = SIM_HWREG;
    o->reg = (uint16_t)id;
    o->value = offset | size << 8;
    return true;
}

static bool take_sendmsg(parser *p, sim_operand *o)
{
    if (!take_numbered(p, messages, UINT16_MAX, &o->value))
        return false;
    if (!take(p, ")"))
        return fail(p, "sendmsg() with an operation is not supported");
    o->kind = SIM_INTEGER;
    o->count = 1;
    return true;
}

/* 12, -16, 0x1234, 1.0. A hexadecimal number is always a literal; a decimal one where no inline constant is equal. */
static bool take_number(parser *p, sim_operand *o)
{
    const char *digits = p->at + (*p->at == '-');
    char       *end;
    errno = 0;
    if (digits[0] == '0' && digits[1] == 'x') {
        const uint64_t magnitude = strtoull(digits, &end, 16);
        if (end == digits + 2)
            return fail(p, "a malformed number");
        o->kind = SIM_INTEGER;
        o->value = (int64_t)(digits == p->at ? magnitude : 0 - magnitude);
        o->literal = true;
        o->count = magnitude > UINT32_MAX ? 2 : 1;
    } else if (digits[strspn(digits, "0123456789")] == '.') {
        o->kind = SIM_REAL;
        o->count = 1;
        o->real = strtod(p->at, &end);
        if (strncmp(p->at, "0.15915494", 10) == 0)
            o->real = 0.15915494309189532; /* 1 / (2 pi): printed as short as the width of the operand allows */
    } else {
        o->kind = SIM_INTEGER;
        o->value = strtoll(p->at, &end, 10);
        o->count = o->value != (int32_t)o->value && o->value >> 32 != 0 ? 2 : 1;
        o->literal = o->value < -16 || o->value > 64;
    }
    if (errno != 0)
        return fail(p, "a number out of range");
    p->at = end;
    return true;
}

/* v0, v[0:3], v0.l. False without an error: another operand. */
static bool take_register(parser *p, sim_operand *o, bool *malformed)
{
    *malformed = false;
    for (size_t i = 0; i < sizeof register_files / sizeof register_files[0]; i++) {
        const register_file *file = &register_files[i];
        const size_t         prefix = strlen(file->prefix);
        if ((file->arches >> p->arch & 1) == 0 || strncmp(p->at, file->prefix, prefix) != 0)
            continue;
        const bool is_tuple = p->at[prefix] == '[';
        if (!is_tuple && !isdigit((unsigned char)p->at[prefix]))
            continue;
        int64_t first, last;
        *malformed = true;
        p->at += prefix + is_tuple;
        if (!take_integer(p, 0, file->size - 1, &first))
            return false;
        last = first;
        /* s_set_vgpr_msb adds to the first register's number: a tuple of gfx1250 may go on behind v255. */
        const int64_t most = file->size - 1 + (file->kind == SIM_VECTOR && p->arch == SIM_GFX1250 ? 31 : 0);
        if (is_tuple && ((take(p, ":") && !take_integer(p, first, most, &last)) || !take(p, "]")))
            return fail(p, "a malformed register tuple");
        if (last - first >= 32)
            return fail(p, "a tuple of more than 32 registers");
        *malformed = false;
        o->kind = file->kind;
        o->reg = (uint16_t)(file->base + first);
        o->count = (uint8_t)(last - first + 1);
        o->select = file->kind != SIM_VECTOR ? SIM_DWORD
                    : take(p, ".l")          ? SIM_WORD_0
                    : take(p, ".h")          ? SIM_WORD_1
                                             : SIM_DWORD;
        return true;
    }
    return false;
}

static bool take_named(parser *p, sim_operand *o)
{
    const size_t length = word_length(p);
    for (size_t i = 0; i < sizeof named_operands / sizeof named_operands[0]; i++) {
        const named_operand *n = &named_operands[i];
        if ((n->arches >> p->arch & 1) == 0 || !word_is(p, length, n->name))
            continue;
        p->at += length;
        o->kind = n->kind;
        o->count = n->count;
        o->reg = n->reg;
        return true;
    }
    return false;
}

/* An operand without -, |x| and their kin. */
static bool take_plain(parser *p, sim_operand *o)
{
    if (isdigit((unsigned char)*p->at) || (p->at[0] == '-' && isdigit((unsigned char)p->at[1])))
        return take_number(p, o);
    const bool is_literal64 = take(p, "lit64(");
    if (is_literal64 || take(p, "lit(")) {
        if (!take_number(p, o) || !take(p, ")"))
            return fail(p, "a malformed literal");
        o->literal = true;
        o->count = is_literal64 ? 2 : 1;
        return true;
    }
    if (take(p, "hwreg("))
        return take_hwreg(p, o);
    if (take(p, "sendmsg("))
        return take_sendmsg(p, o);
    bool malformed;
    if (take_register(p, o, &malformed))
        return true;
    return !malformed && (take_named(p, o) || fail(p, "an unknown operand"));
}

/* What may stand behind an operand: the register with the bits of s_set_vgpr_msb, as llvm-objdump follows them, or that
 * a tuple is not aligned, which the check of alignments reports when it runs. Other complaints are errors. */
static bool skip_comment(parser *p)
{
    skip_space(p);
    if (strncmp(p->at, "/*", 2) != 0)
        return true;
    const char *end = strstr(p->at, "*/"), *alignment = strstr(p->at, "_Align2' register class");
    if (end == NULL)
        return fail(p, "a comment does not end");
    if (p->at[2] != 'v' && (alignment == NULL || alignment > end))
        return fail(p, "LLVM calls an operand invalid");
    p->at = end + 2;
    return true;
}

static bool take_operand(parser *p, sim_operand *o)
{
    *o = (sim_operand){ .kind = SIM_NONE };
    const bool is_call = take(p, "neg(");
    const bool is_minus = !is_call && p->at[0] == '-' && !isdigit((unsigned char)p->at[1]) && take(p, "-");
    const bool is_bar = take(p, "|"), is_abs = !is_bar && take(p, "abs("), is_sext = take(p, "sext(");
    if (!take_plain(p, o))
        return false;
    if ((is_sext && !take(p, ")")) || (is_abs && !take(p, ")")) || (is_bar && !take(p, "|")) ||
        (is_call && !take(p, ")")))
        return fail(p, "an operand does not end");
    o->negate = is_call || is_minus;
    o->absolute = is_bar || is_abs;
    o->sext = is_sext;
    skip_space(p);
    return skip_comment(p);
}

/* Modifiers
 * ---------
 */
typedef enum modifier_form {
    FLAG,     /* name */
    HINT,     /* name: of caches, without effect on a result */
    HINTS,    /* name:WORD, likewise */
    TEMPORAL, /* th:WORD, a hint except that it says whether an atomic returns */
    NUMBER,   /* name:N */
    BITS,     /* name:[b,b,...] */
    WORD,     /* name:WORD, one of a list */
    CALL,     /* name(N) */
    NOTE,     /* name(WORD), without effect */
    FACTOR,   /* mul:N, div:N */
    OFFSET,   /* offset:N or offset:swizzle(...) */
    LANES,    /* name:[n,n,...]: DPP */
    SHIFT,    /* name:N: DPP */
    PATTERN,  /* name: DPP */
    SELECT    /* src0_sel:WORD, src1_sel:WORD */
} modifier_form;

typedef struct modifier {
    const char        *name;
    modifier_form      form;
    uint16_t           field, bytes; /* of the instruction; of DPP, field is the sim_dpp; of SELECT, the source */
    int32_t            low, high;
    const char *const *words;
} modifier;

static const char *const selects[] = { "DWORD", "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", NULL };
static const char *const unused[] = { "UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", NULL };
static const char *const formats[] = { "MATRIX_FMT_FP8", "MATRIX_FMT_BF8", "MATRIX_FMT_FP6",
                                       "MATRIX_FMT_BF6", "MATRIX_FMT_FP4", NULL };
static const char *const rows[] = { "MATRIX_SCALE_ROW0", "MATRIX_SCALE_ROW1", NULL };
static const char *const scales[] = { "MATRIX_SCALE_FMT_E8", "MATRIX_SCALE_FMT_E5M3", "MATRIX_SCALE_FMT_E4M3", NULL };
static const char *const scopes[] = { "SCOPE_CU", "SCOPE_SE", "SCOPE_DEV", "SCOPE_SYS", NULL };

#define FIELD(field) offsetof(sim_instruction, field), sizeof(((sim_instruction *)NULL)->field)

static const modifier modifiers[] = {
    { "offset", OFFSET, FIELD(offset), -(1 << 23), (1 << 24) - 1, NULL },
    { "offset0", NUMBER, FIELD(offset0), 0, 255, NULL },
    { "offset1", NUMBER, FIELD(offset1), 0, 255, NULL },
    { "op_sel", BITS, FIELD(op_sel), 0, 0, NULL },
    { "op_sel_hi", BITS, FIELD(op_sel_hi), 0, 0, NULL },
    { "neg_lo", BITS, FIELD(neg_lo), 0, 0, NULL },
    { "neg_hi", BITS, FIELD(neg_hi), 0, 0, NULL },
    { "neg", BITS, FIELD(neg_lo), 0, 0, NULL }, /* of fp64 MFMA */
    { "clamp", FLAG, FIELD(clamp), 0, 0, NULL },
    { "mul", FACTOR, FIELD(omod), 0, 0, NULL },
    { "div", FACTOR, FIELD(omod), 0, 0, NULL },
    { "bitop3", NUMBER, FIELD(bitop3), 0, 255, NULL },
    { "byte_sel", NUMBER, FIELD(byte_sel), 0, 3, NULL },
    { "scale_sel", NUMBER, FIELD(scale_sel), 0, 15, NULL },
    { "index_key", NUMBER, FIELD(index_key), 0, 3, NULL },

    { "dst_sel", WORD, FIELD(dst_select), 0, 0, selects },
    { "dst_unused", WORD, FIELD(dst_unused), 0, 0, unused },
    { "src0_sel", SELECT, 0, 0, 0, 0, selects },
    { "src1_sel", SELECT, 1, 0, 0, 0, selects },

    { "quad_perm", LANES, SIM_DPP_QUAD_PERM, 0, 4, 2, NULL }, /* low: how many, high: bits of each */
    { "dpp8", LANES, SIM_DPP8, 0, 8, 3, NULL },
    { "row_shl", SHIFT, SIM_DPP_ROW_SHL, 0, 1, 15, NULL },
    { "row_shr", SHIFT, SIM_DPP_ROW_SHR, 0, 1, 15, NULL },
    { "row_ror", SHIFT, SIM_DPP_ROW_ROR, 0, 1, 15, NULL },
    { "wave_shl", SHIFT, SIM_DPP_WAVE_SHL, 0, 1, 1, NULL },
    { "wave_shr", SHIFT, SIM_DPP_WAVE_SHR, 0, 1, 1, NULL },
    { "wave_rol", SHIFT, SIM_DPP_WAVE_ROL, 0, 1, 1, NULL },
    { "wave_ror", SHIFT, SIM_DPP_WAVE_ROR, 0, 1, 1, NULL },
    { "row_mirror", PATTERN, SIM_DPP_ROW_MIRROR, 0, 0, 0, NULL },
    { "row_half_mirror", PATTERN, SIM_DPP_ROW_HALF_MIRROR, 0, 0, 0, NULL },
    { "row_bcast", SHIFT, SIM_DPP_ROW_BCAST, 0, 15, 31, NULL },
    { "row_newbcast", SHIFT, SIM_DPP_ROW_NEWBCAST, 0, 0, 15, NULL },
    { "row_share", SHIFT, SIM_DPP_ROW_SHARE, 0, 0, 15, NULL },
    { "row_xmask", SHIFT, SIM_DPP_ROW_XMASK, 0, 0, 15, NULL },
    { "row_mask", NUMBER, FIELD(row_mask), 0, 15, NULL },
    { "bank_mask", NUMBER, FIELD(bank_mask), 0, 15, NULL },
    { "bound_ctrl", NUMBER, FIELD(bound_ctrl), 0, 1, NULL },
    { "fi", NUMBER, FIELD(fetch_inactive), 0, 1, NULL },

    { "cbsz", NUMBER, FIELD(cbsz), 0, 7, NULL },
    { "abid", NUMBER, FIELD(abid), 0, 15, NULL },
    { "blgp", NUMBER, FIELD(blgp), 0, 7, NULL },
    { "matrix_a_fmt", WORD, FIELD(a_format), 0, 0, formats },
    { "matrix_b_fmt", WORD, FIELD(b_format), 0, 0, formats },
    { "matrix_a_scale", WORD, FIELD(a_scale_row), 0, 0, rows },
    { "matrix_b_scale", WORD, FIELD(b_scale_row), 0, 0, rows },
    { "matrix_a_scale_fmt", WORD, FIELD(a_scale_format), 0, 0, scales },
    { "matrix_b_scale_fmt", WORD, FIELD(b_scale_format), 0, 0, scales },
    { "matrix_a_reuse", FLAG, FIELD(a_reuse), 0, 0, NULL },
    { "matrix_b_reuse", FLAG, FIELD(b_reuse), 0, 0, NULL },

    { "offen", FLAG, FIELD(offen), 0, 0, NULL },
    { "idxen", FLAG, FIELD(idxen), 0, 0, NULL },
    { "lds", FLAG, FIELD(lds), 0, 0, NULL },
    { "scale_offset", FLAG, FIELD(scale_offset), 0, 0, NULL },
    { "sc0", FLAG, FIELD(glc), 0, 0, NULL },
    { "glc", FLAG, FIELD(glc), 0, 0, NULL },
    { "sc1", HINT, 0, 0, 0, 0, NULL },
    { "nt", HINT, 0, 0, 0, 0, NULL },
    { "nv", HINT, 0, 0, 0, 0, NULL },
    { "th", TEMPORAL, FIELD(glc), 0, 0, NULL },
    { "scope", HINTS, 0, 0, 0, 0, scopes },

    { "vmcnt", CALL, FIELD(vmcnt), 0, 63, NULL },
    { "lgkmcnt", CALL, FIELD(lgkmcnt), 0, 15, NULL },
    { "expcnt", CALL, FIELD(expcnt), 0, 7, NULL },

    /* s_delay_alu and s_wait_alu order what the simulator executes in order anyway. */
    { "instid0", NOTE, 0, 0, 0, 0, NULL },
    { "instskip", NOTE, 0, 0, 0, 0, NULL },
    { "instid1", NOTE, 0, 0, 0, 0, NULL },
    { "depctr_hold_cnt", NOTE, 0, 0, 0, 0, NULL },
    { "depctr_sa_sdst", NOTE, 0, 0, 0, 0, NULL },
    { "depctr_va_sdst", NOTE, 0, 0, 0, 0, NULL },
    { "depctr_va_ssrc", NOTE, 0, 0, 0, 0, NULL },
    { "depctr_va_vcc", NOTE, 0, 0, 0, 0, NULL },
    { "depctr_va_vdst", NOTE, 0, 0, 0, 0, NULL },
    { "depctr_vm_vsrc", NOTE, 0, 0, 0, 0, NULL },
};

/* The row of the word at the cursor, with what must follow a word of its form; NULL: not a modifier. */
static const modifier *modifier_at(const parser *p)
{
    static const char follows[] = { [HINTS] = ':',  [TEMPORAL] = ':', [NUMBER] = ':', [BITS] = ':',
                                    [WORD] = ':',   [CALL] = '(',     [NOTE] = '(',   [FACTOR] = ':',
                                    [OFFSET] = ':', [LANES] = ':',    [SHIFT] = ':',  [SELECT] = ':' };
    const size_t      length = word_length(p);
    for (size_t i = 0; length > 0 && i < sizeof modifiers / sizeof modifiers[0]; i++) {
        const modifier *m = &modifiers[i];
        if (!word_is(p, length, m->name))
            continue;
        const char want = m->form < sizeof follows ? follows[m->form] : '\0';
        if (want != '\0' ? p->at[length] == want : p->at[length] == ' ' || p->at[length] == '\0')
            return m;
    }
    return NULL;
}

static void store(sim_instruction *to, const modifier *m, int64_t value)
{
    void         *field = (char *)to + m->field;
    const int8_t  one = (int8_t)value;
    const int16_t two = (int16_t)value;
    const int32_t four = (int32_t)value;
    memcpy(field,
           m->bytes == 1   ? (const void *)&one
           : m->bytes == 2 ? (const void *)&two
                           : (const void *)&four,
           m->bytes);
}

/* [n,n,...]: at least one, at most `most`, each in [0, high]; packed into `bits` bits each, the first lowest. */
static bool take_list(parser *p, int least, int most, int bits, int64_t *packed)
{
    if (!take(p, "["))
        return fail(p, "a list is missing");
    *packed = 0;
    int n = 0;
    do {
        int64_t item;
        if (n == most)
            return fail(p, "a list is too long");
        if (!take_integer(p, 0, (1 << bits) - 1, &item))
            return false;
        *packed |= item << bits * n++;
    } while (take(p, ","));
    if (n < least || !take(p, "]"))
        return fail(p, "a malformed list");
    return true;
}

/* The rest of swizzle(MODE,...), back into the 16 bits of the instruction.
 * Bit 15 clear: and, or, xor masks of 5 bits each on the lane's number; 0x8000: four lanes permute; 0xC000: rotate;
 * 0xE000: FFT. */
static bool take_swizzle(parser *p, uint32_t *swizzle)
{
    static const char *const modes[] = { "QUAD_PERM", "BITMASK_PERM", "SWAP", "REVERSE",
                                         "BROADCAST", "ROTATE",       "FFT",  NULL };
    enum { QUAD_PERM, BITMASK_PERM, SWAP, REVERSE, BROADCAST, ROTATE, FFT };
    int64_t mode, n[4] = { 0 };
    if (!take_name(p, modes, &mode) || !take(p, ","))
        return fail(p, "a malformed swizzle()");
    if (mode == BITMASK_PERM) {
        uint32_t and_mask = 0, or_mask = 0, xor_mask = 0;
        if (!take(p, "\""))
            return fail(p, "a malformed swizzle()");
        for (int bit = 4; bit >= 0; bit--, p->at++) {
            const char *kind = *p->at == '\0' ? NULL : strchr("01pi", *p->at);
            if (kind == NULL)
                return fail(p, "a malformed swizzle()");
            or_mask |= (uint32_t)(*kind == '1') << bit;
            and_mask |= (uint32_t)(*kind == 'p' || *kind == 'i') << bit;
            xor_mask |= (uint32_t)(*kind == 'i') << bit;
        }
        *swizzle = and_mask | or_mask << 5 | xor_mask << 10;
        return take(p, "\")") || fail(p, "a malformed swizzle()");
    }
    static const int counts[] = {
        [QUAD_PERM] = 4, [SWAP] = 1, [REVERSE] = 1, [BROADCAST] = 2, [ROTATE] = 2, [FFT] = 1
    };
    for (int i = 0; i < counts[mode]; i++)
        if ((i > 0 && !take(p, ",")) || !take_integer(p, 0, mode == QUAD_PERM ? 3 : 32, &n[i]))
            return fail(p, "a malformed swizzle()");
    switch (mode) {
    case QUAD_PERM:
        *swizzle = (uint32_t)(0x8000 | n[0] | n[1] << 2 | n[2] << 4 | n[3] << 6);
        break;
    case SWAP: /* groups of n lanes with their neighbours */
        *swizzle = (uint32_t)(0x1F | n[0] << 10);
        break;
    case REVERSE: /* within groups of n lanes */
        *swizzle = (uint32_t)(0x1F | (n[0] - 1) << 10);
        break;
    case BROADCAST: /* lane n[1] of each group of n[0] */
        *swizzle = (uint32_t)((0x20 - n[0]) | n[1] << 5);
        break;
    case ROTATE: /* direction, lanes */
        *swizzle = (uint32_t)(0xC000 | (n[0] & 1) << 10 | n[1] << 5);
        break;
    default:
        *swizzle = (uint32_t)(0xE000 | n[0]);
        break;
    }
    return take(p, ")") || fail(p, "a malformed swizzle()");
}

static bool take_offset(parser *p, const modifier *m)
{
    int64_t offset;
    if (take(p, "swizzle("))
        return take_swizzle(p, &p->to->swizzle);
    if (!take_integer(p, m->low, m->high, &offset))
        return false;
    p->to->offset = (int32_t)offset;
    return true;
}

/* TH_LOAD_NT, TH_STORE_WB, TH_ATOMIC_RETURN, TH_ATOMIC_CASCADE_RT ... */
static bool take_temporal(parser *p)
{
    const char  *word = p->at;
    const size_t length = word_length(p);
    const bool   is_atomic = strncmp(word, "TH_ATOMIC_", 10) == 0;
    if (!is_atomic && strncmp(word, "TH_LOAD_", 8) != 0 && strncmp(word, "TH_STORE_", 9) != 0)
        return fail(p, "an unknown temporal hint");
    const char *returns = strstr(word, "RETURN");
    p->to->glc = is_atomic && returns != NULL && returns < word + length;
    p->at += length;
    return true;
}

/* The value of omod: * 2, * 4, / 2. */
static bool take_factor(parser *p, bool is_product)
{
    int64_t n;
    if (!take_integer(p, 2, is_product ? 4 : 2, &n) || n == 3)
        return fail(p, "an unknown factor");
    p->to->omod = (uint8_t)(is_product ? n / 2 : 3);
    return true;
}

static bool take_modifier(parser *p, const modifier *m)
{
    sim_instruction *to = p->to;
    int64_t          value = 1;
    p->at += strlen(m->name) + (m->form != FLAG && m->form != HINT && m->form != PATTERN);
    switch (m->form) {
    case FLAG:
        store(to, m, 1);
        return true;
    case HINT:
        return true;
    case HINTS:
        return take_name(p, m->words, &value);
    case TEMPORAL:
        return take_temporal(p);
    case NUMBER:
        if (!take_integer(p, m->low, m->high, &value))
            return false;
        store(to, m, value);
        return true;
    case BITS:
        if (!take_list(p, 1, 6, 1, &value))
            return false;
        store(to, m, value);
        to->has_op_sel_hi |= m->field == offsetof(sim_instruction, op_sel_hi);
        return true;
    case WORD:
        if (!take_name(p, m->words, &value))
            return false;
        store(to, m, value);
        return true;
    case CALL:
        if (!take_integer(p, m->low, m->high, &value) || !take(p, ")"))
            return fail(p, "a malformed count");
        store(to, m, value);
        return true;
    case NOTE:
        p->at += word_length(p);
        if (!take(p, ")"))
            return fail(p, "a malformed note");
        skip_space(p);
        take(p, "|");
        return true;
    case FACTOR:
        return take_factor(p, m->name[0] == 'm');
    case OFFSET:
        return take_offset(p, m);
    case LANES:
        if (!take_list(p, m->low, m->low, m->high, &value))
            return false;
        break;
    case SHIFT:
        if (!take_integer(p, m->low, m->high, &value))
            return false;
        break;
    case PATTERN:
        value = 0;
        break;
    case SELECT:
        if (!take_name(p, m->words, &value))
            return false;
        p->select[m->field] = (uint8_t)value;
        return true;
    }
    to->dpp = (uint8_t)m->field;
    to->dpp_arg = (uint32_t)value;
    return true;
}

/* What the opcode adds: slots and spans
 * -------------------------------------
 */
static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* How many operands are written: of some opcodes a modifier decides. */
static int results_of(const sim_instruction *inst)
{
    const sim_opcode *op = inst->op;
    if (inst->lds) /* buffer_load_* lds: to LDS, no register is named */
        return 0;
    if (op->kind == SIM_ATOMIC && !has_prefix(op->name, "ds_"))
        return inst->glc;
    return op->results;
}

/* Which bits of s_set_vgpr_msb each operand has: operands that stand where a result does have the destination's, the
 * others count as sources. So says llvm-objdump, which prints registers with these bits (tests/check_sim_decode.c). */
static void set_slots(sim_instruction *inst, int results)
{
    const sim_opcode *op = inst->op;
    int               places = results;
    if ((op->flags & SIM_BOTH_WRITTEN) != 0 || (op->flags & SIM_RESULT_IS_SOURCE) != 0 ||
        (has_prefix(op->name, "buffer_") && !inst->lds))
        places = 1;
    for (int i = 0; i < inst->operand_count; i++) {
        const int source = i - places;
        inst->operand[i].slot = (uint8_t)(source < 0 ? 3 : source < 3 ? source : SIM_NO_SLOT);
    }
}

static void add_span(uint8_t *count, sim_span *spans, uint8_t kind, uint8_t slot, int operand, int reg, int registers)
{
    spans[(*count)++] = (sim_span){ kind, slot, (uint8_t)operand, (uint8_t)registers, (uint16_t)reg };
}

static void add_read(sim_instruction *inst, int reg, int registers)
{
    add_span(&inst->read_count, inst->read, SIM_SCALAR, SIM_NO_SLOT, 255, reg, registers);
}

static void add_write(sim_instruction *inst, int reg, int registers)
{
    add_span(&inst->write_count, inst->write, SIM_SCALAR, SIM_NO_SLOT, 255, reg, registers);
}

/* At most 8 operands and 3 implied registers a side: they fit. */
_Static_assert(SIM_MAX_SPANS >= SIM_MAX_OPERANDS + 4, "spans of every instruction fit");

static void set_spans(sim_instruction *inst, int results, sim_arch arch)
{
    const sim_opcode *op = inst->op;
    const int         mask = arch == SIM_GFX950 ? 2 : 1; /* registers of a lane mask */
    const int         sources = inst->operand_count - results;
    /* A result of which a part is written keeps the rest. */
    const bool is_partial = inst->dst_unused == 2 || (inst->op_sel >> sources & 1) != 0 ||
                            (inst->operand_count > 0 && results > 0 && inst->operand[0].select != SIM_DWORD);
    for (int i = 0; i < inst->operand_count; i++) {
        const sim_operand *o = &inst->operand[i];
        if (o->kind != SIM_SCALAR && o->kind != SIM_VECTOR && o->kind != SIM_ACC)
            continue;
        const bool is_both = i < 2 && (op->flags & SIM_BOTH_WRITTEN) != 0;
        const bool is_written = is_both || (i < results && (op->flags & SIM_RESULT_IS_SOURCE) == 0);
        const bool is_kept =
            i == 0 && ((op->flags & SIM_READS_RESULT) != 0 || is_partial || has_prefix(op->name, "buffer_atomic_"));
        if (is_written)
            add_span(&inst->write_count, inst->write, o->kind, o->slot, i, o->reg, o->count);
        if (!is_written || is_both || is_kept)
            add_span(&inst->read_count, inst->read, o->kind, o->slot, i, o->reg, o->count);
    }
    if ((op->flags & SIM_READS_VCC) != 0)
        add_read(inst, SIM_VCC, mask);
    if ((op->flags & SIM_WRITES_VCC) != 0)
        add_write(inst, SIM_VCC, mask);
    if ((op->flags & SIM_WRITES_EXEC) != 0) {
        add_write(inst, SIM_EXEC, mask);
        if (op->kind == SIM_SALU) /* s_and_saveexec and its kin; what v_cmpx writes does not depend on what was there */
            add_read(inst, SIM_EXEC, mask);
    }
    if ((op->flags & SIM_READS_M0) != 0 || inst->lds)
        add_read(inst, SIM_M0, 1);
}

/* Instructions
 * ------------
 */
typedef struct suffix {
    const char *name;
    bool        e64, sdwa;
} suffix;

static const suffix suffixes[] = { /* the longest first */
                                   { "_e64_dpp", true, false }, { "_dpp8", false, false }, { "_dpp", false, false },
                                   { "_e32", false, false },    { "_e64", true, false },   { "_sdwa", false, true }
};

/* Finds the row of a mnemonic. Halves of a pair have rows of their own only where they are no instruction alone. */
static const sim_opcode *find_opcode(const char *name, sim_arch arch)
{
    const sim_opcode *op = sim_opcode_find(name, arch);
    if (op == NULL && has_prefix(name, "v_dual_")) {
        char alone[64] = "v_";
        strncat(alone, name + strlen("v_dual_"), sizeof alone - sizeof "v_");
        op = sim_opcode_find(alone, arch);
    }
    return op;
}

static bool take_mnemonic(parser *p)
{
    char         name[64];
    const size_t length = word_length(p);
    if (length == 0 || length >= sizeof name)
        return fail(p, "no mnemonic");
    memcpy(name, p->at, length);
    name[length] = '\0';
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        const size_t tail = strlen(suffixes[i].name);
        if (length > tail && strcmp(name + length - tail, suffixes[i].name) == 0) {
            name[length - tail] = '\0';
            p->to->e64 = suffixes[i].e64;
            p->to->sdwa = suffixes[i].sdwa;
            break;
        }
    }
    p->to->op = find_opcode(name, p->arch);
    if (p->to->op == NULL) {
        sim_set_error("%s: %s is not supported on %s", p->text, name, sim_arch_name(p->arch));
        return false;
    }
    p->at += length;
    return true;
}

static bool take_operands(parser *p)
{
    sim_instruction *to = p->to;
    skip_space(p);
    if (*p->at == '\0' || modifier_at(p) != NULL)
        return true;
    do {
        skip_space(p);
        if (to->operand_count == SIM_MAX_OPERANDS)
            return fail(p, "too many operands");
        if (!take_operand(p, &to->operand[to->operand_count]))
            return false;
        to->operand_count++;
    } while (take(p, ","));
    return true;
}

static bool take_modifiers(parser *p)
{
    for (skip_space(p); *p->at != '\0'; skip_space(p)) {
        const modifier *m = modifier_at(p);
        if (m == NULL)
            return fail(p, "an unknown modifier");
        if (!take_modifier(p, m))
            return false;
    }
    return true;
}

static bool parse_half(sim_arch arch, const char *half, const char *text, sim_instruction *to)
{
    *to = (sim_instruction){ .row_mask = 15, .bank_mask = 15, .vmcnt = -1, .lgkmcnt = -1, .expcnt = -1, .text = text };
    parser p = { .arch = arch, .at = half, .text = text, .to = to };
    skip_space(&p);
    if (!take_mnemonic(&p) || !take_operands(&p) || !take_modifiers(&p))
        return false;
    const int results = results_of(to);
    if (results > to->operand_count)
        return fail(&p, "fewer operands than results");
    for (int i = 0; i < 2; i++)
        if (p.select[i] != SIM_DWORD) {
            if (results + i >= to->operand_count)
                return fail(&p, "a selection of a source that is not there");
            to->operand[results + i].select = p.select[i];
        }
    set_slots(to, results);
    set_spans(to, results, arch);
    return true;
}

bool sim_parse_pair(sim_arch arch, const char *text, sim_instruction *to, sim_instruction *second)
{
    enum { LONGEST = 512 };
    char        first[LONGEST];
    const char *split = strstr(text, " :: ");
    if (split == NULL)
        return parse_half(arch, text, text, to);
    const size_t length = (size_t)(split - text);
    if (length >= sizeof first) {
        sim_set_error("%.80s...: too long", text);
        return false;
    }
    memcpy(first, text, length);
    first[length] = '\0';
    if (!parse_half(arch, first, text, to) || !parse_half(arch, split + 4, text, second))
        return false;
    to->dual = second;
    return true;
}

bool sim_parse(sim_arch arch, const char *text, sim_instruction *to)
{
    static _Thread_local sim_instruction second;
    return sim_parse_pair(arch, text, to, &second);
}
