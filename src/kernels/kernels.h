// kernels/kernels.h: the inner loops, one table per instruction set.
//
// Every kernel is one algorithm text (text_*.h) over a small vector vocabulary (vec_*.h), compiled
// once per tier and element type. A tier chooses its vector width and its register tile; neither
// reaches the numbers, because every result is defined per element: each is one chain of fused
// multiply-adds in a fixed order. All tiers give the same bits.
#ifndef ATTN_KERNELS_KERNELS_H
#define ATTN_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "kernels/ahead.h"

// What an element of the product starts from, before its first fused multiply-add.
typedef enum attn_tile_start {
    ATTN_TILE_ZERO = 0,  // +0
    ATTN_TILE_ADD,       // what c holds
    ATTN_TILE_SCALE_ROW, // what c holds, times factor[row] (rounded once)
    ATTN_TILE_LANES      // factor[lane]: a bias that all rows share
} attn_tile_start;

// Which terms are left out. A hidden operand is ATTN_HIDDEN, the bits of -0: the softmax writes it
// for a masked pair and for nothing else. The term is then not computed at all, so that a NaN on the
// other side goes nowhere and the sum keeps its bits.
typedef enum attn_tile_select {
    ATTN_TILE_ALL = 0,
    ATTN_TILE_HIDDEN_A, // a term is left out in all lanes where its element of a is hidden
    ATTN_TILE_HIDDEN_B  // a term is left out in the lanes where b is hidden
} attn_tile_select;

// How an operand lies in memory: as elements of the arithmetic, or, for float32, in 16 bits each.
typedef enum attn_storage { ATTN_STORED_REAL = 0, ATTN_STORED_F16, ATTN_STORED_BF16 } attn_storage;

// Rows of a quad, in which a few rows of scores lie key by key; four of them are whole vectors.
enum { ATTN_QUAD = 4, ATTN_FOUR_QUADS = 4 * ATTN_QUAD };

// What the kernel `small` takes at most.
enum { ATTN_SMALL_KEYS = 16, ATTN_SMALL_DIM = 16 };

// target[c*target_row + r] = source[r*source_row + c], elements of 16 bits, whatever they mean
struct attn_transpose_narrow {
    const uint16_t *source;
    int64_t source_row;
    uint16_t *target;
    int64_t target_row;
    struct attn_ahead *ahead; // asked for meanwhile, in proportion to the work; or NULL
};

#define ATTN_REAL float
#define ATTN_NAME(name) name##_f32
#include "kernels/kernels_real.h"
#undef ATTN_REAL
#undef ATTN_NAME

#define ATTN_REAL double
#define ATTN_NAME(name) name##_f64
#include "kernels/kernels_real.h"
#undef ATTN_REAL
#undef ATTN_NAME

// Storage formats of float32 arithmetic. To float32 is exact; from it rounds to nearest even. A NaN
// stays one, quiet and of the same sign.
struct attn_kernels_convert {
    void (*f16_to_f32)(const uint16_t *source, float *target, int64_t count);
    void (*f32_to_f16)(const float *source, uint16_t *target, int64_t count);
    void (*bf16_to_f32)(const uint16_t *source, float *target, int64_t count);
    void (*f32_to_bf16)(const float *source, uint16_t *target, int64_t count);
};

struct attn_kernels {
    const char *name;
    attn_tier tier;
    const struct attn_kernels_f32 *f32;
    const struct attn_kernels_f64 *f64;
    const struct attn_kernels_convert *convert;
};

// The tier's table (AUTO: that of the best tier); NULL where this build has none. Whether the machine
// runs the tier was settled when the context was created: asking the CPU again costs microseconds in a
// virtual machine.
const struct attn_kernels *attn_kernels_select(attn_tier tier);

// A masked pair in a strip of weights: the bits of -0.
#define ATTN_HIDDEN (-0.0f)

// All tables in this build that this machine runs, portable first; the check tool walks them. It
// includes those that are only built to be compared (512-bit text over two 256-bit vectors).
int32_t attn_kernels_count(void);
const struct attn_kernels *attn_kernels_at(int32_t index);

#endif
