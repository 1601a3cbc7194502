/* Code, decoded: each instruction once, at the first look at its PC, by LLVM's disassembler and parse.c. */
#include "parse.h"

#include "machine.h"

#include <inttypes.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry { /* an instruction and what it points to */
    sim_instruction inst, second;
    struct entry   *next;
    char            text[];
} entry;

struct sim_code {
    sim_arch                         arch;
    const uint8_t                   *bytes; /* borrowed */
    size_t                           size;
    uint64_t                         address;
    LLVMDisasmContextRef             disassembler;
    pthread_mutex_t                  mutex; /* of the disassembler and the list of entries */
    entry                           *entries;
    _Atomic(const sim_instruction *) at[]; /* one for each word of code; NULL: not decoded yet */
};

static void initialise_llvm(void)
{
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
}

static LLVMDisasmContextRef create_disassembler(sim_arch arch)
{
    static pthread_once_t  once = PTHREAD_ONCE_INIT;
    static pthread_mutex_t mutex =
        PTHREAD_MUTEX_INITIALIZER; /* LLVM does not promise that contexts may be made in parallel */
    pthread_once(&once, initialise_llvm);
    pthread_mutex_lock(&mutex);
    /* gfx1250 has halves of registers as operands of its own; unless told so, LLVM leaves them out of some texts. */
    const LLVMDisasmContextRef made = LLVMCreateDisasmCPUFeatures(
        "amdgcn-amd-amdhsa", sim_arch_name(arch), arch == SIM_GFX1250 ? "+real-true16" : "", NULL, 0, NULL, NULL);
    pthread_mutex_unlock(&mutex);
    return made;
}

sim_code *sim_code_create(sim_arch arch, const void *code, size_t bytes, uint64_t address)
{
    const size_t words = bytes / 4;
    sim_code    *made = calloc(1, sizeof *made + words * sizeof made->at[0]);
    if (made == NULL) {
        sim_set_error("no memory to decode %zu bytes of code", bytes);
        return NULL;
    }
    made->arch = arch;
    made->bytes = code;
    made->size = words * 4;
    made->address = address;
    pthread_mutex_init(&made->mutex, NULL);
    made->disassembler = create_disassembler(arch);
    if (made->disassembler == NULL) {
        sim_set_error("LLVM's disassembler does not know %s", sim_arch_name(arch));
        sim_code_destroy(made);
        return NULL;
    }
    return made;
}

void sim_code_destroy(sim_code *code)
{
    if (code == NULL)
        return;
    if (code->disassembler != NULL)
        LLVMDisasmDispose(code->disassembler);
    for (entry *e = code->entries, *next; e != NULL; e = next) {
        next = e->next;
        free(e);
    }
    pthread_mutex_destroy(&code->mutex);
    free(code);
}

/* LLVM's text begins with a tab and separates the mnemonic by one or a blank. */
static void tidy(char *text)
{
    size_t from = strspn(text, " \t"), length = strlen(text + from);
    memmove(text, text + from, length + 1);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
        text[--length] = '\0';
    for (char *c = text; *c != '\0'; c++)
        if (*c == '\t')
            *c = ' ';
}

/* Words that LLVM 22 does not survive
 * -----------------------------------
 * Its disassembler writes complaints about an operand to a stream that is not there, takes constants for registers in
 * matrix products, and leaves a switch at a selection that no encoding has. No assembler writes such words, but broken
 * code does: they are refused before LLVM sees them. Found by decoding random words, millions an arch.
 */
enum { WORDS = 6, LITERAL = 255, SDWA = 249 }; /* an instruction has at most four words */

static uint32_t field(uint32_t word, unsigned first, unsigned count)
{
    return word >> first & ((1u << count) - 1u);
}

static bool has_literal(uint32_t sources)
{
    return field(sources, 0, 9) == LITERAL || field(sources, 9, 9) == LITERAL || field(sources, 18, 9) == LITERAL;
}

static bool has_bad_selection(const uint32_t *word)
{
    const bool is_compare = field(word[0], 25, 7) == 0x3E; /* a mask stands where others select of the destination */
    return field(word[1], 16, 3) == 7 || field(word[1], 24, 3) == 7 ||
           (!is_compare && (field(word[1], 8, 3) == 7 || field(word[1], 11, 2) == 3));
}

/* A and B of a product of formats that the instruction names are registers. */
static bool has_constant_matrix(uint32_t sources)
{
    return field(sources, 8, 1) == 0 || field(sources, 17, 1) == 0;
}

static bool breaks_llvm_gfx950(const uint32_t *word)
{
    const uint32_t op = field(word[0], 16, 16);
    if (field(word[0], 31, 1) == 0 && field(word[0], 0, 9) == SDWA)
        return has_bad_selection(word);
    if (op == 0xD3AC) /* the scales, then the product */
        return has_literal(word[1]) || has_literal(word[3]) || has_constant_matrix(word[3]);
    return field(word[0], 26, 6) == 0x34 &&
           (has_literal(word[1]) || ((op == 0xD3AD || op == 0xD3AE) && has_constant_matrix(word[1])));
}

static bool breaks_llvm_gfx1250(const uint32_t *word)
{
    const uint32_t op = field(word[0], 16, 16), scalar = field(word[0], 8, 8);
    if (field(word[0], 23, 9) == 0x17D) /* one scalar source; of barriers it is a number or M0 */
        return scalar >= 0x4D && scalar <= 0x53 && field(word[0], 0, 8) == LITERAL;
    if (op == 0xCC35 || op == 0xCC3A)
        return has_literal(word[1]) || has_literal(word[3]) || has_constant_matrix(word[3]);
    if (op == 0xCC33)
        return has_literal(word[1]) || has_constant_matrix(word[1]);
    return field(op, 8, 8) == 0xCC && field(op, 0, 8) >= 0x40 && has_literal(word[1]);
}

/* The scales' half of a scaled product has a third source that nothing reads: LLVM 22 knows it as v0 alone, later
 * releases write 0. */
static void clear_unused_source(sim_arch arch, uint32_t *word)
{
    const uint32_t op = field(word[0], 16, 16);
    if (arch == SIM_GFX1250 && (op == 0xCC35 || op == 0xCC3A))
        word[1] = (word[1] & ~(0x1FFu << 18)) | 0x100u << 18;
}

/* Under the mutex. How many bytes the instruction has; 0: none. */
static size_t disassemble(sim_code *code, uint64_t offset, char *text, size_t size)
{
    uint32_t     word[WORDS] = { 0 }; /* LLVM does not survive a literal beyond the end, either */
    const size_t left = code->size - offset;
    memcpy(word, code->bytes + offset, left < sizeof word ? left : sizeof word);
    clear_unused_source(code->arch, word);
    const bool   breaks = code->arch == SIM_GFX950 ? breaks_llvm_gfx950(word) : breaks_llvm_gfx1250(word);
    const size_t bytes = breaks ? 0
                                : LLVMDisasmInstruction(code->disassembler, (uint8_t *)word, sizeof word,
                                                        code->address + offset, text, size);
    if (bytes == 0 || bytes > left) {
        sim_set_error("0x%08" PRIx32 " is no instruction of %s", word[0], sim_arch_name(code->arch));
        return 0;
    }
    tidy(text);
    return bytes;
}

static bool offset_of(const sim_code *code, uint64_t pc, uint64_t *offset)
{
    *offset = pc - code->address;
    if (*offset < code->size && *offset % 4 == 0)
        return true;
    sim_set_error("PC 0x%" PRIx64 " is not in the code (0x%" PRIx64 ", %zu bytes)", pc, code->address, code->size);
    return false;
}

size_t sim_code_text(sim_code *code, uint64_t pc, char *text, size_t size)
{
    uint64_t offset;
    if (!offset_of(code, pc, &offset))
        return 0;
    pthread_mutex_lock(&code->mutex);
    const size_t bytes = disassemble(code, offset, text, size);
    pthread_mutex_unlock(&code->mutex);
    return bytes;
}

/* Under the mutex. */
static const sim_instruction *decode(sim_code *code, uint64_t offset)
{
    char         text[512];
    const size_t bytes = disassemble(code, offset, text, sizeof text);
    if (bytes == 0)
        return NULL;
    const size_t length = strlen(text) + 1;
    entry       *e = malloc(sizeof *e + length);
    if (e == NULL) {
        sim_set_error("%s: no memory to decode it", text);
        return NULL;
    }
    memcpy(e->text, text, length);
    if (!sim_parse_pair(code->arch, e->text, &e->inst, &e->second)) {
        free(e);
        return NULL;
    }
    e->inst.pc = e->second.pc = code->address + offset;
    e->inst.bytes = e->second.bytes = (uint8_t)bytes;
    e->next = code->entries;
    code->entries = e;
    return &e->inst;
}

const sim_instruction *sim_code_at(sim_code *code, uint64_t pc)
{
    uint64_t offset;
    if (!offset_of(code, pc, &offset))
        return NULL;
    const sim_instruction *inst = atomic_load_explicit(&code->at[offset / 4], memory_order_acquire);
    if (inst != NULL)
        return inst;
    pthread_mutex_lock(&code->mutex);
    inst = atomic_load_explicit(&code->at[offset / 4], memory_order_relaxed);
    if (inst == NULL) {
        inst = decode(code, offset);
        atomic_store_explicit(&code->at[offset / 4], inst, memory_order_release);
    }
    pthread_mutex_unlock(&code->mutex);
    return inst;
}
