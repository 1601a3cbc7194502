/* Prints every conversion of src/fp8.h for tests/witness.py, which compares with another implementation. Binary, in
 * this order, with FORMATS = E4M3FN, E4M3FNUZ, E5M2:
 *
 *   f32 [4][256]            decoded codes of FORMATS and E8M0
 *   f32 [65536]             decoded F16
 *   u8  [3][2][samples]     encoded samples of FORMATS, saturating and in NaN mode
 *   u8  [samples]           encoded samples of E8M0, rounded up
 *   u16 [samples]           encoded samples of BF16
 *
 * The samples are fp32 bit patterns: every upper half with each of `lows`, so that every BF16 value is one of them and
 * every tie of the narrow formats has neighbours on both sides.
 */
#include "fp8.h"

#include <stdio.h>
#include <stdlib.h>

static const uint32_t lows[] = { 0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF };

enum { LOWS = sizeof lows / sizeof lows[0], HALVES = 65536, SAMPLES = HALVES * LOWS };

static float sample(int i)
{
    return f32_of_bits((uint32_t)(i / LOWS) << 16 | lows[i % LOWS]);
}

static void put(const void *value, size_t bytes)
{
    if (fwrite(value, bytes, 1, stdout) != 1) {
        perror("fp8_table");
        exit(EXIT_FAILURE);
    }
}

static void put_decoded(float (*decode)(uint8_t))
{
    for (int code = 0; code < 256; code++) {
        const float x = decode((uint8_t)code);
        put(&x, sizeof x);
    }
}

static void put_encoded(uint8_t (*encode)(float, fp8_mode), fp8_mode mode)
{
    for (int i = 0; i < SAMPLES; i++) {
        const uint8_t code = encode(sample(i), mode);
        put(&code, sizeof code);
    }
}

int main(void)
{
    put_decoded(f32_of_e4m3fn);
    put_decoded(f32_of_e4m3fnuz);
    put_decoded(f32_of_e5m2);
    put_decoded(f32_of_e8m0);
    for (int code = 0; code < HALVES; code++) {
        const float x = f32_of_f16((uint16_t)code);
        put(&x, sizeof x);
    }
    uint8_t (*const encoders[])(float, fp8_mode) = { e4m3fn_of_f32, e4m3fnuz_of_f32, e5m2_of_f32 };
    for (size_t f = 0; f < sizeof encoders / sizeof encoders[0]; f++) {
        put_encoded(encoders[f], FP8_SATURATE);
        put_encoded(encoders[f], FP8_NAN);
    }
    for (int i = 0; i < SAMPLES; i++) {
        const uint8_t code = e8m0_ceil_of_f32(sample(i));
        put(&code, sizeof code);
    }
    for (int i = 0; i < SAMPLES; i++) {
        const uint16_t code = bf16_of_f32(sample(i));
        put(&code, sizeof code);
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
