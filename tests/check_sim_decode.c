/* The decoder: every instruction of tests/sim/instructions_*.s through assembler, disassembler and parser; what the
 * fields of single lines are; and that what is not understood is an error. */
#include "testing.h"

#include "opcodes.h"

#include <elf.h>
#include <inttypes.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <stddef.h>

/* Instructions of the lists
 * -------------------------
 */
typedef struct list { /* of lines without comments */
    char  *text;
    char **line;
    int    count;
} list;

static list read_list(sim_arch arch)
{
    char        path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof path, "%s/tests/sim/instructions_%s.s", top == NULL ? "." : top, sim_arch_name(arch));
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be read (top_srcdir names the source tree)", path);
    list   read = { .text = NULL };
    size_t room = 0;
    ck_assert_int_gt(getdelim(&read.text, &room, '\0', file), 0);
    fclose(file);
    for (char *line = strtok(read.text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (strncmp(line, "//", 2) == 0)
            continue;
        read.line = realloc(read.line, (size_t)(read.count + 1) * sizeof *read.line);
        ck_assert_ptr_nonnull(read.line);
        read.line[read.count++] = line;
    }
    ck_assert_int_gt(read.count, 500);
    return read;
}

static void free_list(list *l)
{
    free(l->line);
    free(l->text);
}

/* The code of one line after the other, assembled by LLVM: .text of a relocatable file. */
static LLVMMemoryBufferRef assemble(sim_arch arch, const list *l)
{
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmParser();
    LLVMInitializeAMDGPUAsmPrinter();
    const char   *triple = "amdgcn-amd-amdhsa";
    char         *error = NULL;
    LLVMTargetRef target;
    ck_assert_msg(LLVMGetTargetFromTriple(triple, &target, &error) == 0, "%s", error);
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(target, triple, sim_arch_name(arch), arch == SIM_GFX1250 ? "+real-true16" : "",
                                LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef  module = LLVMModuleCreateWithNameInContext("lines", context);
    LLVMSetTarget(module, triple);
    for (int i = 0; i < l->count; i++) {
        LLVMAppendModuleInlineAsm(module, l->line[i], strlen(l->line[i]));
        LLVMAppendModuleInlineAsm(module, "\n", 1);
    }
    LLVMMemoryBufferRef object = NULL;
    ck_assert_msg(LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &error, &object) == 0, "%s",
                  error);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    LLVMDisposeTargetMachine(machine);
    return object;
}

static const uint8_t *find_text(LLVMMemoryBufferRef object, size_t *bytes)
{
    const uint8_t    *file = (const uint8_t *)LLVMGetBufferStart(object);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    const Elf64_Shdr *section = (const Elf64_Shdr *)(file + header->e_shoff);
    const char       *names = (const char *)file + section[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; i++)
        if (strcmp(names + section[i].sh_name, ".text") == 0) {
            *bytes = section[i].sh_size;
            return file + section[i].sh_offset;
        }
    ck_abort_msg("the assembler wrote no .text");
    return NULL;
}

/* All mnemonics without a row in one message, then the lines that do not parse. */
START_TEST(lists_decode)
{
    const sim_arch            arch = (sim_arch)_i;
    list                      l = read_list(arch);
    const LLVMMemoryBufferRef object = assemble(arch, &l);
    size_t                    bytes;
    const uint8_t            *text = find_text(object, &bytes);
    const uint64_t            address = 0x7000;
    sim_code                 *code = sim_code_create(arch, text, bytes, address);
    ck_assert_msg(code != NULL, "%s", sim_last_error());
    char    *report = NULL;
    size_t   room;
    FILE    *to = open_memstream(&report, &room);
    int      bad = 0;
    uint64_t pc = address;
    for (int i = 0; i < l.count; i++) {
        char                   printed[512];
        const sim_instruction *inst = sim_code_at(code, pc);
        const size_t           length = sim_code_text(code, pc, printed, sizeof printed);
        ck_assert_msg(length > 0, "%s: %s", l.line[i], sim_last_error());
        ck_assert_str_eq(printed, l.line[i]);
        if (inst == NULL) {
            fprintf(to, "\n    %s", sim_last_error());
            bad++;
        } else {
            ck_assert_uint_eq(inst->bytes, length);
            ck_assert_uint_eq(inst->pc, pc);
            ck_assert_str_eq(inst->text, printed);
        }
        pc += length;
    }
    fclose(to);
    ck_assert_msg(bad == 0, "%d lines:%s", bad, report);
    ck_assert_uint_le(pc, address + bytes); /* LLVM pads the section */
    free(report);
    sim_code_destroy(code);
    LLVMDisposeMemoryBuffer(object);
    free_list(&l);
}
END_TEST

/* Fields
 * ------
 */
static sim_instruction parse(sim_arch arch, const char *text)
{
    sim_instruction inst;
    ck_assert_msg(sim_parse(arch, text, &inst), "%s", sim_last_error());
    return inst;
}

#define FIELD(name) offsetof(sim_instruction, name), sizeof(((sim_instruction *)NULL)->name)
#define OPERAND(i, name) offsetof(sim_instruction, operand[i].name), sizeof(((sim_operand *)NULL)->name)

/* One field of one line. Numbers are the ISA's or the header's, not the parser's. */
static const struct {
    sim_arch    arch;
    const char *text;
    size_t      offset, bytes;
    int64_t     want;
} fields[] = {
    { SIM_GFX950, "v_add_f32_e32 v0, v1, v2", FIELD(operand_count), 3 },
    { SIM_GFX950, "v_add_f32_e32 v0, v1, v2", FIELD(e64), 0 },
    { SIM_GFX950, "v_add_f32_e64 v0, v1, v2", FIELD(e64), 1 },
    { SIM_GFX950, "v_add_f32_sdwa v0, v1, v2 src0_sel:WORD_1 src1_sel:BYTE_2", FIELD(sdwa), 1 },
    { SIM_GFX950, "v_add_f32_sdwa v0, v1, v2 src0_sel:WORD_1 src1_sel:BYTE_2", OPERAND(1, select), SIM_WORD_1 },
    { SIM_GFX950, "v_add_f32_sdwa v0, v1, v2 src0_sel:WORD_1 src1_sel:BYTE_2", OPERAND(2, select), SIM_BYTE_2 },
    { SIM_GFX950, "v_add_f32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD",
      FIELD(dst_select), SIM_BYTE_1 },
    { SIM_GFX950, "v_add_f32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD",
      FIELD(dst_unused), 2 },
    { SIM_GFX950, "v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:DWORD",
      OPERAND(1, sext), 1 },
    { SIM_GFX950, "v_add_f32_e64 v7, |v1|, -v2 clamp mul:2", OPERAND(0, reg), 7 },
    { SIM_GFX950, "v_add_f32_e64 v7, |v1|, -v2 clamp mul:2", OPERAND(0, kind), SIM_VECTOR },
    { SIM_GFX950, "v_add_f32_e64 v7, |v1|, -v2 clamp mul:2", OPERAND(1, absolute), 1 },
    { SIM_GFX950, "v_add_f32_e64 v7, |v1|, -v2 clamp mul:2", OPERAND(1, negate), 0 },
    { SIM_GFX950, "v_add_f32_e64 v7, |v1|, -v2 clamp mul:2", OPERAND(2, negate), 1 },
    { SIM_GFX950, "v_add_f32_e64 v7, |v1|, -v2 clamp mul:2", FIELD(clamp), 1 },
    { SIM_GFX950, "v_add_f32_e64 v7, |v1|, -v2 clamp mul:2", FIELD(omod), 1 },
    { SIM_GFX950, "v_add_f32_e64 v7, v1, v2 mul:4", FIELD(omod), 2 },
    { SIM_GFX950, "v_add_f32_e64 v7, v1, v2 div:2", FIELD(omod), 3 },
    { SIM_GFX950, "v_add_f32_e64 v7, -|s3|, v2", OPERAND(1, negate), 1 },
    { SIM_GFX950, "v_add_f32_e64 v7, -|s3|, v2", OPERAND(1, absolute), 1 },
    { SIM_GFX950, "v_add_f32_e64 v7, neg(1.0), v2", OPERAND(1, negate), 1 },
    { SIM_GFX950, "v_add_u32_e32 v0, -16, v1", OPERAND(1, value), -16 },
    { SIM_GFX950, "v_add_u32_e32 v0, -16, v1", OPERAND(1, literal), 0 },
    { SIM_GFX950, "v_add_u32_e32 v0, 64, v1", OPERAND(1, literal), 0 },
    { SIM_GFX950, "v_add_u32_e32 v0, 0xffffffff, v1", OPERAND(1, value), 0xFFFFFFFF },
    { SIM_GFX950, "v_add_u32_e32 v0, 0xffffffff, v1", OPERAND(1, literal), 1 },
    { SIM_GFX950, "v_add_u32_e32 v0, 0xffffffff, v1", OPERAND(1, count), 1 },
    { SIM_GFX1250, "s_mov_b64 s[0:1], 0x123456789abcdef0", OPERAND(1, value), 0x123456789ABCDEF0 },
    { SIM_GFX1250, "s_mov_b64 s[0:1], 0x123456789abcdef0", OPERAND(1, count), 2 },
    { SIM_GFX1250, "s_mov_b64 s[0:1], lit64(0x0)", OPERAND(1, count), 2 },
    { SIM_GFX1250, "s_mov_b32 s0, lit(0x1)", OPERAND(1, literal), 1 },
    { SIM_GFX950, "v_add_f32_e32 v0, -4.0, v1", OPERAND(1, kind), SIM_REAL },
    { SIM_GFX950, "v_add_f32_e32 v0, -4.0, v1", OPERAND(1, negate), 0 },
    { SIM_GFX950, "s_load_dword s0, s[2:3], -0x10", OPERAND(2, value), -16 },
    { SIM_GFX950, "s_mov_b64 vcc, exec", OPERAND(0, reg), 106 },
    { SIM_GFX950, "s_mov_b64 vcc, exec", OPERAND(0, count), 2 },
    { SIM_GFX950, "s_mov_b64 vcc, exec", OPERAND(1, reg), 126 },
    { SIM_GFX1250, "s_mov_b32 vcc_hi, exec_lo", OPERAND(0, reg), 107 },
    { SIM_GFX1250, "s_mov_b32 vcc_hi, exec_lo", OPERAND(1, count), 1 },
    { SIM_GFX1250, "s_mov_b32 s0, ttmp9", OPERAND(1, reg), 117 },
    { SIM_GFX950, "s_mov_b32 m0, s0", OPERAND(0, reg), 124 },
    { SIM_GFX1250, "s_mov_b32 null, s0", OPERAND(0, kind), SIM_NONE },
    { SIM_GFX950, "s_mov_b64 s[0:1], src_shared_base", OPERAND(1, kind), SIM_SPECIAL },
    { SIM_GFX950, "s_mov_b64 s[0:1], src_shared_base", OPERAND(1, reg), SIM_SHARED_BASE },
    { SIM_GFX950, "v_accvgpr_write_b32 a255, 1.0", OPERAND(0, kind), SIM_ACC },
    { SIM_GFX950, "v_accvgpr_write_b32 a255, 1.0", OPERAND(0, reg), 255 },
    { SIM_GFX950, "s_getreg_b32 s0, hwreg(HW_REG_XCC_ID)", OPERAND(1, kind), SIM_HWREG },
    { SIM_GFX950, "s_getreg_b32 s0, hwreg(HW_REG_XCC_ID)", OPERAND(1, reg), 20 },
    { SIM_GFX950, "s_getreg_b32 s0, hwreg(HW_REG_XCC_ID)", OPERAND(1, value), 32 << 8 },
    { SIM_GFX950, "s_getreg_b32 s0, hwreg(51, 4, 2)", OPERAND(1, reg), 51 },
    { SIM_GFX1250, "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1", OPERAND(0, value), 25 | 1 << 8 },
    { SIM_GFX1250, "s_getreg_b32 s0, hwreg(HW_REG_IB_STS2, 6, 4)", OPERAND(1, reg), 28 },
    { SIM_GFX1250, "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)", OPERAND(0, value), 3 },
    { SIM_GFX1250, "v_add_f32_e32 v0 /*v256*/, v1, v2 /*v258*/", OPERAND(2, reg), 2 },

    { SIM_GFX950, "v_mov_b64_e32 v[1:2]/*Invalid register, operand has 'VReg_64_Align2' register class*/, v[2:3]",
      OPERAND(0, reg), 1 },

    { SIM_GFX950, "global_load_dword v0, v[2:3], off offset:-4096", FIELD(offset), -4096 },
    { SIM_GFX950, "global_load_dword v0, v[2:3], off offset:-4096", OPERAND(2, kind), SIM_NONE },
    { SIM_GFX1250, "global_load_b32 v0, v[2:3], off offset:-8388608", FIELD(offset), -8388608 },
    { SIM_GFX1250, "global_load_b32 v0, v2, s[4:5] scale_offset", FIELD(scale_offset), 1 },
    { SIM_GFX950, "ds_read2_b64 v[0:3], v4 offset0:1 offset1:255", FIELD(offset0), 1 },
    { SIM_GFX950, "ds_read2_b64 v[0:3], v4 offset0:1 offset1:255", FIELD(offset1), 255 },
    { SIM_GFX950, "buffer_load_dword v0, v[2:3], s[4:7], 0 idxen offen", FIELD(idxen), 1 },
    { SIM_GFX950, "buffer_load_dword v0, v[2:3], s[4:7], 0 idxen offen", FIELD(offen), 1 },
    { SIM_GFX950, "buffer_load_dwordx4 v0, s[4:7], s8 offen lds", FIELD(lds), 1 },
    { SIM_GFX950, "global_atomic_add v0, v[2:3], v4, off sc0", FIELD(glc), 1 },
    { SIM_GFX950, "global_atomic_add v[2:3], v4, off sc1", FIELD(glc), 0 },
    { SIM_GFX1250, "global_atomic_add_u32 v0, v[2:3], v4, off th:TH_ATOMIC_NT_RETURN scope:SCOPE_SYS", FIELD(glc), 1 },
    { SIM_GFX1250, "global_atomic_add_u32 v[2:3], v4, off scope:SCOPE_SYS", FIELD(glc), 0 },

    { SIM_GFX950, "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel_hi:[1,0,1]", FIELD(op_sel_hi), 5 },
    { SIM_GFX950, "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel_hi:[1,0,1]", FIELD(has_op_sel_hi), 1 },
    { SIM_GFX950, "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel:[0,1,0]", FIELD(op_sel), 2 },
    { SIM_GFX950, "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel:[0,1,0]", FIELD(has_op_sel_hi), 0 },
    { SIM_GFX950, "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] neg_lo:[1,0,0] neg_hi:[0,0,1]", FIELD(neg_lo), 1 },
    { SIM_GFX950, "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] neg_lo:[1,0,0] neg_hi:[0,0,1]", FIELD(neg_hi), 4 },
    { SIM_GFX950, "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", FIELD(op_sel), 4 },
    { SIM_GFX1250, "v_cvt_sr_fp8_f32 v0, v1, v2 byte_sel:3", FIELD(byte_sel), 3 },
    { SIM_GFX1250, "v_cvt_scale_pk8_f32_fp8 v[0:7], v[8:9], v10 scale_sel:3", FIELD(scale_sel), 3 },
    { SIM_GFX950, "v_bitop3_b32 v0, v1, v2, v3 bitop3:0xca", FIELD(bitop3), 0xCA },

    { SIM_GFX950, "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xa bank_mask:0x3", FIELD(dpp),
      SIM_DPP_QUAD_PERM },
    { SIM_GFX950, "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xa bank_mask:0x3", FIELD(dpp_arg), 0xB1 },
    { SIM_GFX950, "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xa bank_mask:0x3", FIELD(row_mask), 10 },
    { SIM_GFX950, "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xa bank_mask:0x3", FIELD(bank_mask), 3 },
    { SIM_GFX950, "v_mov_b32_dpp v0, v1 row_bcast:31 row_mask:0xf bank_mask:0xf bound_ctrl:1", FIELD(dpp_arg), 31 },
    { SIM_GFX950, "v_mov_b32_dpp v0, v1 row_bcast:31 row_mask:0xf bank_mask:0xf bound_ctrl:1", FIELD(bound_ctrl), 1 },
    { SIM_GFX950, "v_mov_b32_dpp v0, v1 row_half_mirror row_mask:0xf bank_mask:0xf", FIELD(dpp),
      SIM_DPP_ROW_HALF_MIRROR },
    { SIM_GFX1250, "v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0] fi:1", FIELD(dpp), SIM_DPP8 },
    { SIM_GFX1250, "v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0] fi:1", FIELD(dpp_arg), 0x53977 },
    { SIM_GFX1250, "v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0] fi:1", FIELD(fetch_inactive), 1 },
    { SIM_GFX1250, "v_mov_b32_dpp v0, v1 row_xmask:9 row_mask:0xf bank_mask:0xf", FIELD(dpp), SIM_DPP_ROW_XMASK },

    { SIM_GFX950, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:13], v[16:19], v[0:3] cbsz:2 blgp:4", FIELD(cbsz), 2 },
    { SIM_GFX950, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:13], v[16:19], v[0:3] cbsz:2 blgp:4", FIELD(blgp), 4 },
    { SIM_GFX950, "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:13], v[16:19], v[0:3] cbsz:2 blgp:4", OPERAND(1, count), 6 },
    { SIM_GFX1250,
      "v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[16:27], v[32:39], v[0:7] matrix_a_fmt:MATRIX_FMT_FP6 "
      "matrix_b_fmt:MATRIX_FMT_FP4",
      FIELD(a_format), 2 },
    { SIM_GFX1250,
      "v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[16:27], v[32:39], v[0:7] matrix_a_fmt:MATRIX_FMT_FP6 "
      "matrix_b_fmt:MATRIX_FMT_FP4",
      FIELD(b_format), 4 },
    { SIM_GFX1250,
      "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:39], v[0:7], v48, v49 "
      "matrix_b_fmt:MATRIX_FMT_FP4 matrix_a_scale:MATRIX_SCALE_ROW1 matrix_b_scale_fmt:MATRIX_SCALE_FMT_E4M3 "
      "matrix_b_reuse",
      FIELD(a_scale_row), 1 },
    { SIM_GFX1250,
      "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:39], v[0:7], v48, v49 "
      "matrix_b_fmt:MATRIX_FMT_FP4 matrix_a_scale:MATRIX_SCALE_ROW1 matrix_b_scale_fmt:MATRIX_SCALE_FMT_E4M3 "
      "matrix_b_reuse",
      FIELD(b_scale_format), 2 },
    { SIM_GFX1250, "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:39], v[0:7], v48, v49 matrix_b_reuse",
      FIELD(b_reuse), 1 },

    { SIM_GFX950, "s_waitcnt vmcnt(63) lgkmcnt(3)", FIELD(vmcnt), 63 },
    { SIM_GFX950, "s_waitcnt vmcnt(63) lgkmcnt(3)", FIELD(lgkmcnt), 3 },
    { SIM_GFX950, "s_waitcnt vmcnt(63) lgkmcnt(3)", FIELD(expcnt), -1 },
    { SIM_GFX1250, "s_wait_loadcnt 0x3f", OPERAND(0, value), 63 },
    { SIM_GFX1250, "s_barrier_signal -3", OPERAND(0, value), -3 },
    { SIM_GFX1250, "s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(TRANS32_DEP_1)", FIELD(operand_count),
      0 },
    { SIM_GFX1250, "s_wait_alu depctr_va_vdst(0)", FIELD(operand_count), 0 },

    /* The field as LLVM's assembler encodes it (llvm-mc-22 --show-encoding). */
    { SIM_GFX950, "ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,0,1,2,3)", FIELD(swizzle), 0x80E4 },
    { SIM_GFX950, "ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)", FIELD(swizzle), 0x401F },
    { SIM_GFX950, "ds_swizzle_b32 v0, v1 offset:swizzle(REVERSE,8)", FIELD(swizzle), 0x1C1F },
    { SIM_GFX950, "ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,8,3)", FIELD(swizzle), 0x0078 },
    { SIM_GFX950, "ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,\"01pip\")", FIELD(swizzle), 0x0907 },
    { SIM_GFX950, "ds_swizzle_b32 v0, v1 offset:swizzle(ROTATE,1,3)", FIELD(swizzle), 0xC460 },
    { SIM_GFX950, "ds_swizzle_b32 v0, v1 offset:swizzle(FFT,3)", FIELD(swizzle), 0xE003 },
};

START_TEST(line_has_field)
{
    const sim_instruction inst = parse(fields[_i].arch, fields[_i].text);
    const char           *at = (const char *)&inst + fields[_i].offset;
    int64_t               got = 0;
    memcpy(&got, at, fields[_i].bytes); /* little-endian hosts are the ones with a simulator */
    const int     shift = 64 - 8 * (int)fields[_i].bytes;
    const int64_t want = (int64_t)((uint64_t)fields[_i].want << shift), low = (int64_t)((uint64_t)got << shift);
    ck_assert_msg(low == want, "%s: got 0x%" PRIx64 ", wanted 0x%" PRIx64, fields[_i].text, got, fields[_i].want);
}
END_TEST

START_TEST(real_constants)
{
    ck_assert(parse(SIM_GFX950, "v_add_f32_e32 v0, -4.0, v1").operand[1].real == -4.0);
    ck_assert(parse(SIM_GFX950, "v_add_f32_e32 v0, 0.15915494, v1").operand[1].real == 0.15915494309189532);
    ck_assert(parse(SIM_GFX950, "v_add_f64 v[0:1], 0.15915494309189532, v[2:3]").operand[1].real ==
              0.15915494309189532);
}
END_TEST

/* Pairs: two halves, each with operands and modifiers; rows may be of the half or of the instruction. */
START_TEST(pair_has_two_halves)
{
    const char           *text = "v_dual_mul_f32 v0, -v1, v2 :: v_dual_cndmask_b32 v3, v4, v5, vcc_lo";
    const sim_instruction inst = parse(SIM_GFX1250, text);
    ck_assert_ptr_nonnull(strstr(inst.op->name, "_mul_f32"));
    ck_assert_ptr_nonnull(inst.dual);
    ck_assert_ptr_nonnull(strstr(inst.dual->op->name, "_cndmask_b32"));
    ck_assert_str_eq(inst.text, text);
    ck_assert_str_eq(inst.dual->text, text);
    ck_assert(inst.operand[1].negate);
    ck_assert_uint_eq(inst.operand_count, 3);
    ck_assert_uint_eq(inst.dual->operand_count, 4);
    ck_assert_uint_eq(inst.dual->operand[0].reg, 3);
    ck_assert_uint_eq(inst.dual->operand[3].reg, 106);
    ck_assert_ptr_null(parse(SIM_GFX1250, "v_mul_f32_e32 v0, v1, v2").dual);
}
END_TEST

/* Spans and slots
 * ---------------
 */
/* Registers as "v0-3 s2 vcc ...", implied ones in parentheses, sorted as the spans come. */
static const char *spans_text(const sim_span *spans, int count, char *to, size_t size)
{
    size_t used = 0;
    to[0] = '\0';
    for (int i = 0; i < count; i++) {
        const sim_span *s = &spans[i];
        const char      file = s->kind == SIM_SCALAR ? 's' : s->kind == SIM_VECTOR ? 'v' : 'a';
        const bool      is_implied = s->operand == 255;
        used +=
            (size_t)snprintf(to + used, size - used, "%s%s%c%d", i > 0 ? " " : "", is_implied ? "(" : "", file, s->reg);
        if (s->count > 1)
            used += (size_t)snprintf(to + used, size - used, "-%d", s->reg + s->count - 1);
        used += (size_t)snprintf(to + used, size - used, "%s", is_implied ? ")" : "");
    }
    return to;
}

static const struct {
    sim_arch    arch;
    const char *text, *reads, *writes;
} spans[] = {
    { SIM_GFX950, "v_add_f32_e32 v0, s1, v2", "s1 v2", "v0" },
    { SIM_GFX950, "v_fma_f32 v0, v1, 1.0, v3", "v1 v3", "v0" },
    { SIM_GFX950, "v_fmac_f32_e32 v0, v1, v2", "v0 v1 v2", "v0" },
    { SIM_GFX950, "v_cmp_lt_f32_e32 vcc, v0, v1", "v0 v1", "s106-107" },
    { SIM_GFX950, "v_cmpx_lt_u32_e32 vcc, v0, v1", "v0 v1", "s106-107 (s126-127)" },
    { SIM_GFX1250, "v_cmpx_lt_u32_e32 v0, v1", "v0 v1", "(s126)" },
    { SIM_GFX950, "v_cndmask_b32_e64 v0, v1, v2, s[4:5]", "v1 v2 s4-5", "v0" },
    { SIM_GFX950, "v_div_fmas_f32 v0, v1, v2, v3", "v1 v2 v3 (s106-107)", "v0" },
    { SIM_GFX1250, "v_div_fmas_f32 v0, v1, v2, v3", "v1 v2 v3 (s106)", "v0" },
    { SIM_GFX950, "v_div_scale_f32 v0, vcc, v1, v2, v3", "v1 v2 v3", "v0 s106-107" },
    { SIM_GFX950, "v_mad_u64_u32 v[0:1], s[2:3], v2, v3, v[4:5]", "v2 v3 v4-5", "v0-1 s2-3" },
    { SIM_GFX950, "v_permlane32_swap_b32_e32 v0, v1", "v0 v1", "v0 v1" },
    { SIM_GFX950, "v_mfma_f32_16x16x32_fp8_fp8 a[0:3], v[4:5], v[6:7], a[0:3]", "v4-5 v6-7 a0-3", "a0-3" },
    { SIM_GFX950, "v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", "v0 v1 v2", "v0" },
    { SIM_GFX950, "s_and_saveexec_b64 s[2:3], vcc", "s106-107 (s126-127)", "s2-3 (s126-127)" },
    { SIM_GFX950, "s_mov_b32 m0, s0", "s0", "s124" },
    { SIM_GFX950, "s_cbranch_execz 18", "", "" },
    { SIM_GFX950, "s_load_dwordx4 s[4:7], s[0:1], 0x10", "s0-1", "s4-7" },
    { SIM_GFX950, "global_load_dwordx4 v[0:3], v4, s[2:3] offset:16", "v4 s2-3", "v0-3" },
    { SIM_GFX950, "global_store_dwordx4 v4, v[0:3], s[2:3]", "v4 v0-3 s2-3", "" },
    { SIM_GFX950, "buffer_store_dwordx4 v[0:3], v4, s[4:7], 0 offen", "v0-3 v4 s4-7", "" },
    { SIM_GFX950, "buffer_load_dwordx4 v[0:3], v4, s[4:7], s8 offen offset:16", "v4 s4-7 s8", "v0-3" },
    { SIM_GFX950, "buffer_load_dwordx4 v0, s[4:7], s8 offen lds", "v0 s4-7 s8 (s124)", "" },
    { SIM_GFX950, "global_load_lds_dwordx4 v[0:1], off offset:16", "v0-1 (s124)", "" },
    { SIM_GFX950, "global_atomic_add v0, v[2:3], v4, off sc0", "v2-3 v4", "v0" },
    { SIM_GFX950, "global_atomic_add v[2:3], v4, off", "v2-3 v4", "" },
    { SIM_GFX950, "buffer_atomic_add v0, v1, s[4:7], 0 offen sc0", "v0 v1 s4-7", "v0" },
    { SIM_GFX950, "buffer_atomic_add v0, v1, s[4:7], 0 offen", "v0 v1 s4-7", "" },
    { SIM_GFX950, "ds_read_b128 v[0:3], v4 offset:64", "v4", "v0-3" },
    { SIM_GFX950, "ds_write_b128 v4, v[0:3] offset:64", "v4 v0-3", "" },
    { SIM_GFX950, "ds_add_rtn_u32 v0, v1, v2", "v1 v2", "v0" },
    { SIM_GFX1250, "global_load_async_to_lds_b128 v0, v[2:3], off", "v0 v2-3", "" },
    { SIM_GFX1250, "global_store_async_from_lds_b128 v2, v0, s[4:5]", "v2 v0 s4-5", "" },
    { SIM_GFX1250, "tensor_load_to_lds s[0:3], s[4:11]", "s0-3 s4-11", "" },
};

START_TEST(line_has_spans)
{
    char                  reads[256], writes[256];
    const sim_instruction inst = parse(spans[_i].arch, spans[_i].text);
    spans_text(inst.read, inst.read_count, reads, sizeof reads);
    spans_text(inst.write, inst.write_count, writes, sizeof writes);
    ck_assert_msg(strcmp(reads, spans[_i].reads) == 0 && strcmp(writes, spans[_i].writes) == 0,
                  "%s: reads \"%s\" (wanted \"%s\"), writes \"%s\" (wanted \"%s\")", spans[_i].text, reads,
                  spans[_i].reads, writes, spans[_i].writes);
}
END_TEST

/* The bits of s_set_vgpr_msb that each vector operand takes, as llvm-objdump 22 shows them: a comment adds v256 to
 * a v0 whose bits are 1. One digit an operand; '-': not a vector; 'n': no bits reach it. */
static const struct {
    const char *text, *slots;
} slots[] = {
    { "v_fmamk_f32 v0, v1, 0x3f800001, v2", "30-2" },
    { "v_fmaak_f32 v0, v1, v2, 0x3f800001", "301-" },
    { "v_fma_f32 v0, v1, v2, v3", "3012" },
    { "v_fmac_f32_e32 v0, v1, v2", "301" },
    { "v_cmp_lt_f32_e64 s0, v1, v2", "-01" },
    { "v_cmpx_lt_u32_e32 v0, v1", "01" },
    { "v_cndmask_b32_e64 v0, v1, v2, s4", "301-" },
    { "v_mad_co_u64_u32 v[0:1], s2, v2, v3, v[4:5]", "3-012" },
    { "v_div_scale_f32 v0, vcc_lo, v1, v2, v3", "3-012" },
    { "v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:47], v[0:7]", "3012" },
    { "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:47], v[0:7], v48, v49", "3012nn" },
    { "v_wmma_scale16_f32_16x16x128_f8f6f4 v[0:7], v[16:31], v[32:47], v[0:7], v[48:49], v[50:51]", "3012nn" },
    { "ds_store_b128 v4, v[0:3]", "01" },
    { "ds_store_2addr_b64 v0, v[2:3], v[4:5] offset1:1", "012" },
    { "ds_load_b128 v[0:3], v4", "30" },
    { "ds_add_u32 v0, v1", "01" },
    { "ds_add_rtn_u32 v0, v1, v2", "301" },
    { "ds_cmpstore_rtn_b32 v0, v1, v2, v3", "3012" },
    { "ds_bpermute_b32 v0, v1, v2", "301" },
    { "ds_atomic_barrier_arrive_rtn_b64 v[0:1], v2, v[4:5]", "301" },
    { "ds_atomic_async_barrier_arrive_b64 v0", "0" },
    { "global_load_b128 v[0:3], v4, s[2:3]", "30-" },
    { "global_store_b128 v4, v[0:3], s[2:3]", "01-" },
    { "global_atomic_add_u32 v0, v[2:3], v4, off th:TH_ATOMIC_RETURN", "301-" },
    { "global_atomic_add_u32 v[2:3], v4, off", "01-" },
    { "global_load_async_to_lds_b128 v0, v[2:3], off", "30-" },
    { "global_store_async_from_lds_b128 v2, v0, s[4:5]", "01-" },
    { "global_load_tr8_b64 v[0:1], v[2:3], off", "30-" },
    { "flat_load_b32 v0, v[2:3]", "30" },
    { "scratch_load_b32 v0, v1, s0", "30-" },
    { "scratch_store_b32 v1, v0, s0", "01-" },
    { "buffer_load_b32 v0, v1, s[4:7], null offen", "30--" },
    { "buffer_store_b32 v0, v1, s[4:7], null offen", "30--" },
    { "buffer_atomic_add_u32 v0, v1, s[4:7], null offen", "30--" },
    { "buffer_atomic_add_u32 v0, v1, s[4:7], null offen th:TH_ATOMIC_RETURN", "30--" },
    { "v_readlane_b32 s0, v1, s2", "-0-" },
    { "v_writelane_b32 v0, s1, m0", "3--" },
    { "v_permlane16_swap_b32_e32 v0, v1", "30" },
    { "v_swap_b32 v0, v1", "30" },
    { "v_permlane_bcast_b32 v0, v1, s2, s3", "30--" },
    { "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]", "3012" },
    { "v_cvt_scale_pk8_f32_fp8 v[0:7], v[8:9], v10", "301" },
};

START_TEST(operands_have_slots)
{
    const sim_instruction inst = parse(SIM_GFX1250, slots[_i].text);
    char                  got[SIM_MAX_OPERANDS + 1] = "";
    for (int i = 0; i < inst.operand_count; i++) {
        const sim_operand *o = &inst.operand[i];
        got[i] = o->kind != SIM_VECTOR ? '-' : o->slot == SIM_NO_SLOT ? 'n' : (char)('0' + o->slot);
    }
    ck_assert_msg(strcmp(got, slots[_i].slots) == 0, "%s: got %s, wanted %s", slots[_i].text, got, slots[_i].slots);
}
END_TEST

START_TEST(slots_of_pairs)
{
    const sim_instruction inst = parse(SIM_GFX1250, "v_dual_fma_f32 v0, v1, v2, v6 :: v_dual_fmac_f32 v3, v4, v5");
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(inst.operand[i].slot, (i + 3) % 4);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(inst.dual->operand[i].slot, (i + 3) % 4);
}
END_TEST

/* Errors
 * ------
 */
static const struct {
    sim_arch    arch;
    const char *text, *words;
} errors[] = {
    { SIM_GFX950, "", "no mnemonic" },
    { SIM_GFX950, "v_frobnicate_f32 v0, v1", "v_frobnicate_f32 is not supported on gfx950" },
    { SIM_GFX950, "s_wait_loadcnt 0x0", "not supported on gfx950" },
    { SIM_GFX1250, "v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3]", "not supported on gfx1250" },
    { SIM_GFX950, "v_add_f32_e32 v0, v1, v2 frob", "an unknown modifier: \"frob\"" },
    { SIM_GFX950, "v_add_f32_e32 v0, v1, v2 clamped", "an unknown modifier" },
    { SIM_GFX950, "v_add_f32_e32 v0, v1, v2 clamp:1", "an unknown modifier" },
    { SIM_GFX950, "v_add_f32_e32 v0, v1, v2 mul:3", "an unknown factor" },
    { SIM_GFX950, "v_add_f32_e32 v0, v256, v2", "out of range" },
    { SIM_GFX950, "v_add_f32_e32 v0, s106, v2", "out of range" },
    { SIM_GFX950, "v_add_f32_e32 v0, v, v2", "an unknown operand" },
    { SIM_GFX950, "v_add_f32_e32 v0, v1,", "an unknown operand" },
    { SIM_GFX950, "v_add_f32_e32 v0, |v1, v2", "an operand does not end" },
    { SIM_GFX950, "v_add_f32_e32 v0, v[1:0], v2", "a malformed register tuple" },
    { SIM_GFX950, "v_add_f32_e32 v0, v[0:1, v2", "a malformed register tuple" },
    { SIM_GFX950, "v_add_f32_e32 v0, null, v2", "an unknown operand" },
    { SIM_GFX950, "v_add_f32_e32 v0, flat_scratch_lo, v2", "an unknown operand" },
    { SIM_GFX950, "v_add_f32_e32", "fewer operands than results" },
    { SIM_GFX950, "v_add_f32_e32 v0, v1, v2, v3, v4, v5, v6, v7, v8", "too many operands" },
    { SIM_GFX950, "v_add_f32_e32 v0 /* v1, v2", "a comment does not end" },
    { SIM_GFX1250, "v_add_f16_e32 v0, v1/*Invalid register, operand has 'VS_32_Lo128' register class*/, v2",
      "invalid" },
    { SIM_GFX950, "s_load_dwordx2 s[2:3], s[0:1], 0x0 ; Warning: SGPR_64: scalar reg isn't aligned 3",
      "unknown modifier" },
    { SIM_GFX1250, "v_add_f32_e32 a0, v1, v2", "an unknown operand" },
    { SIM_GFX950, "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3] row_mask:0xf bank_mask:0xf", "a malformed list" },
    { SIM_GFX950, "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,4] row_mask:0xf bank_mask:0xf", "out of range" },
    { SIM_GFX950, "v_mov_b32_dpp v0, v1 row_shl:16 row_mask:0xf bank_mask:0xf", "out of range" },
    { SIM_GFX950, "v_mov_b32_dpp v0, v1 row_shl row_mask:0xf bank_mask:0xf", "an unknown modifier" },
    { SIM_GFX950, "global_load_dword v0, v[2:3], off offset:0x7fffffff", "out of range" },
    { SIM_GFX950, "global_load_dword v0, v[2:3], off tfe", "an unknown modifier" },
    { SIM_GFX1250, "global_load_b32 v0, v[2:3], off th:WARM", "an unknown temporal hint" },
    { SIM_GFX1250, "global_load_b32 v0, v[2:3], off scope:SCOPE_MOON", "an unknown name" },
    { SIM_GFX950, "s_getreg_b32 s0, hwreg(HW_REG_NONE)", "an unknown name" },
    { SIM_GFX950, "s_getreg_b32 s0, hwreg(HW_REG_MODE, 4)", "hwreg()" },
    { SIM_GFX950, "s_getreg_b32 s0, hwreg(HW_REG_WAVE_MODE)", "an unknown name" },
    { SIM_GFX950, "s_waitcnt vmcnt(64)", "malformed count" },
    { SIM_GFX950, "ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,\"01pi\")", "swizzle" },
    { SIM_GFX950, "ds_swizzle_b32 v0, v1 offset:swizzle(SPIN,1)", "swizzle" },
    { SIM_GFX1250, "v_dual_mul_f32 v0, v1, v2 :: v_dual_nothing v3, v4", "not supported" },
};

START_TEST(line_is_an_error)
{
    sim_instruction inst;
    ck_assert_msg(!sim_parse(errors[_i].arch, errors[_i].text, &inst), "\"%s\" is taken", errors[_i].text);
    ck_assert_msg(strstr(sim_last_error(), errors[_i].words) != NULL, "\"%s\" does not hold \"%s\"", sim_last_error(),
                  errors[_i].words);
    ck_assert_msg(strstr(sim_last_error(), errors[_i].text) != NULL, "\"%s\" does not quote the line",
                  sim_last_error());
}
END_TEST

/* Code
 * ----
 */
static const uint32_t few[] = { 0xBF800000, 0x7E000301, 0xFFFFFFFF,
                                0xBF810000 }; /* s_nop 0, v_mov v0 v1, -, s_endpgm */

START_TEST(code_by_pc)
{
    sim_code *code = sim_code_create(SIM_GFX950, few, sizeof few, 0x100);
    ck_assert_ptr_nonnull(code);
    const sim_instruction *nop = sim_code_at(code, 0x100);
    ck_assert_msg(nop != NULL, "%s", sim_last_error());
    ck_assert_str_eq(nop->op->name, "s_nop");
    ck_assert_ptr_eq(sim_code_at(code, 0x100), nop);
    ck_assert_str_eq(sim_code_at(code, 0x10C)->op->name, "s_endpgm");
    ck_assert_ptr_null(sim_code_at(code, 0x108));
    ck_assert_ptr_nonnull(strstr(sim_last_error(), "0xffffffff is no instruction"));
    static const uint64_t outside[] = { 0, 0xFC, 0x102, 0x110, UINT64_MAX - 3 };
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        ck_assert_ptr_null(sim_code_at(code, outside[i]));
        ck_assert_ptr_nonnull(strstr(sim_last_error(), "is not in the code"));
    }
    sim_code_destroy(code);
}
END_TEST

/* LLVM 22.1.8 by itself crashes at each of these: llvm-mc-22 --disassemble shows it. */
static const struct {
    sim_arch arch;
    size_t   bytes;
    uint32_t word[4];
} deadly[] = {
    { SIM_GFX950, 4, { 0x000000FF } },                                      /* a literal beyond the end */
    { SIM_GFX950, 8, { 0x020404F9, 0x06070606 } },                          /* SDWA: src0_sel 7 */
    { SIM_GFX950, 8, { 0x020404F9, 0x07060606 } },                          /* src1_sel 7 */
    { SIM_GFX950, 8, { 0x020404F9, 0x06060706 } },                          /* dst_sel 7 */
    { SIM_GFX950, 16, { 0xD3AC0000, 0x0001FF18, 0xD3AD0800, 0x04022108 } }, /* a scale is a literal */
    { SIM_GFX950, 16, { 0xD3AC0000, 0x00023318, 0xD3AD0C00, 0x041220F8 } }, /* A is a constant */
    { SIM_GFX1250, 8, { 0xBEEC50FF, 0x00000001 } },                         /* a barrier's number is a literal */
    { SIM_GFX1250, 12, { 0xCC3310F9, 0x08D3FCFF, 0x4E7730DE } },            /* A is a literal */
};

START_TEST(deadly_words_are_errors)
{
    char      text[256];
    sim_code *code = sim_code_create(deadly[_i].arch, deadly[_i].word, deadly[_i].bytes, 0);
    ck_assert_ptr_nonnull(code);
    ck_assert_uint_eq(sim_code_text(code, 0, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(sim_last_error(), "is no instruction"));
    ck_assert_ptr_null(sim_code_at(code, 0));
    sim_code_destroy(code);
}
END_TEST

enum { THREADS = 8, WORDS = 4096 };

typedef struct walk {
    sim_code              *code;
    const sim_instruction *seen[WORDS];
} walk;

static void *walk_code(void *argument)
{
    walk *w = argument;
    for (int i = 0; i < WORDS; i++)
        w->seen[i] = sim_code_at(w->code, 4 * (uint64_t)i);
    return NULL;
}

START_TEST(threads_see_one_decoding)
{
    uint32_t *words = malloc(WORDS * sizeof *words);
    walk     *walks = calloc(THREADS, sizeof *walks);
    for (int i = 0; i < WORDS; i++)
        words[i] = 0xBF800000u | (uint32_t)(i % 16); /* s_nop */
    sim_code *code = sim_code_create(SIM_GFX950, words, WORDS * sizeof *words, 0);
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++) {
        walks[t].code = code;
        ck_assert_int_eq(pthread_create(&thread[t], NULL, walk_code, &walks[t]), 0);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    for (int i = 0; i < WORDS; i++) {
        ck_assert_ptr_nonnull(walks[0].seen[i]);
        ck_assert_int_eq(walks[0].seen[i]->operand[0].value, i % 16);
        for (int t = 1; t < THREADS; t++)
            ck_assert_ptr_eq(walks[t].seen[i], walks[0].seen[i]);
    }
    sim_code_destroy(code);
    free(walks);
    free(words);
}
END_TEST

/* Table
 * -----
 */
START_TEST(rows_are_found)
{
    ck_assert_uint_gt(sim_opcode_count(), 0);
    for (uint32_t i = 0; i < sim_opcode_count(); i++) {
        const sim_opcode *op = sim_opcode_at(i);
        for (int arch = 0; arch < SIM_ARCHS; arch++)
            if ((op->arches >> arch & 1) != 0) /* a second row of the same name and arch would never be found */
                ck_assert_msg(sim_opcode_find(op->name, (sim_arch)arch) == op, "%s has two rows", op->name);
        ck_assert_msg(op->arches <= SIM_ON_BOTH, "%s: arches", op->name);
        ck_assert_msg(op->kind < SIM_CLASSES, "%s: kind", op->name);
        ck_assert_msg(op->run != NULL, "%s: no handler", op->name);
    }
    ck_assert_ptr_null(sim_opcode_at(sim_opcode_count()));
    ck_assert_ptr_null(sim_opcode_find("", SIM_GFX950));
    ck_assert_ptr_null(sim_opcode_find("zzz", SIM_GFX950));
}
END_TEST

static void fill(TCase *tcase)
{
    tcase_add_loop_test(tcase, lists_decode, 0, SIM_ARCHS);
    tcase_add_loop_test(tcase, line_has_field, 0, sizeof fields / sizeof fields[0]);
    tcase_add_test(tcase, real_constants);
    tcase_add_test(tcase, pair_has_two_halves);
    tcase_add_loop_test(tcase, line_has_spans, 0, sizeof spans / sizeof spans[0]);
    tcase_add_loop_test(tcase, operands_have_slots, 0, sizeof slots / sizeof slots[0]);
    tcase_add_test(tcase, slots_of_pairs);
    tcase_add_loop_test(tcase, line_is_an_error, 0, sizeof errors / sizeof errors[0]);
    tcase_add_test(tcase, code_by_pc);
    tcase_add_loop_test(tcase, deadly_words_are_errors, 0, sizeof deadly / sizeof deadly[0]);
    tcase_add_test(tcase, threads_see_one_decoding);
    tcase_add_test(tcase, rows_are_found);
}

int main(void)
{
    return testing_main("sim_decode", fill);
}
