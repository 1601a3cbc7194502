/* A code object's file: ELF64 for AMDGPU, as a linker leaves it. Nothing in it is trusted: every access is checked. */
#ifndef ETALON_SIM_ELFFILE_H
#define ETALON_SIM_ELFFILE_H

#include "sim.h"

#include <elf.h>

typedef struct sim_elf {
    const uint8_t *bytes; /* borrowed */
    size_t         size;
    Elf64_Ehdr     header;
    Elf64_Shdr     symbols, strings; /* .dynsym and its string table */
    uint64_t       low, high;        /* addresses of the image: [low, high), whole pages below */
    uint64_t       code, code_end;   /* of the executable segments */
} sim_elf;

typedef struct sim_symbol {
    const char *name;
    uint64_t    value, size;
    bool        is_function, is_object, is_defined, is_weak;
} sim_symbol;

/* Takes the ELF out of a bundle of clang's, if it is one; then reads and checks the headers. */
bool sim_elf_open(sim_elf *elf, sim_arch arch, const void *bytes, size_t size);

uint32_t sim_elf_symbol_count(const sim_elf *elf);
bool sim_elf_symbol_at(const sim_elf *elf, uint32_t i, sim_symbol *symbol);

/* The contents of the note of metadata; no note: *size is 0. */
bool sim_elf_metadata(const sim_elf *elf, const uint8_t **bytes, size_t *size);

/* Copies the segments to a zeroed block of high - low bytes, tells each, and relocates it for that address. */
bool sim_elf_load(const sim_elf *elf, uint8_t *block, void (*loaded)(void *context, uint8_t *at, size_t bytes),
                  void *context);

#endif
