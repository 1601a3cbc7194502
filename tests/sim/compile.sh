#!/bin/sh
# Compiles the kernels that the simulator's tests run: compile.sh COMPILER SOURCES DIRECTORY, into DIRECTORY/*.co.
# No ROCm: the compiler's own assembler, linker and headers.
set -e
compiler=$1 sources=$2 directory=$3
mkdir -p "$directory"

assemble() { # STEM: STEM_ARCH.s, of the arches that there are
    for arch in gfx950 gfx1250; do
        if [ -f "$sources/$1_$arch.s" ]; then
            "$compiler" --target=amdgcn-amd-amdhsa -mcpu=$arch -I"$sources/../../asm" "$sources/$1_$arch.s" -o "$directory/$1_$arch.co"
        fi
    done
}

hip() { # SOURCE STEM LEVELS FLAG...: SOURCE.hip to STEM_OLEVEL_ARCH.co
    source=$1 stem=$2 levels=$3
    shift 3
    for arch in gfx950 gfx1250; do
        for level in $levels; do
            "$compiler" -x hip --offload-arch=$arch --cuda-device-only -nogpuinc -nogpulib --no-gpu-bundle-output \
                -O"$level" "$@" $([ $arch = gfx950 ] || echo $gfx1250) "$sources/$source.hip" -o "$directory/${stem}_O${level}_$arch.co"
        done
    done
}

gfx1250=
assemble gemm_e4m3
assemble run
assemble runtime
assemble scan_u32
hip run run_hip '1 2'
hip arithmetic arithmetic '1 2 3' -ffp-contract=off
hip compiled compiled '1 2 3' -ffp-contract=off
# LLVM 22 does not pad between a WMMA and a VOPD that uses its result (mended later, pull request 183573): the simulator
# says so.
gfx1250='-mllvm -amdgpu-enable-vopd=0'
hip gemm_e4m3 gemm_e4m3_hip '1 2'
