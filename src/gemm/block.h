// gemm/block.h: one matrix product on one thread.
#ifndef ATTN_GEMM_BLOCK_H
#define ATTN_GEMM_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

// c (rows x columns) = start + a (rows x depth) b (depth x columns); strides in elements.
struct attn_block {
    int64_t rows, columns, depth;
    const void *a;
    int64_t a_row, a_depth;
    const void *b; // not read where `panels` is given
    int64_t b_depth, b_column;
    const void *panels; // all of b in panels (see attn_block_pack), or NULL
    void *c;
    int64_t c_row, c_column;
    const void *bias; // element (r, c) starts from bias[r*bias_row + c*bias_column]; or NULL
    int64_t bias_row, bias_column;
    bool accumulate;     // element (r, c) starts from what c holds
    int64_t cache_bytes; // of a core's second level: what is packed takes its share of it
};

// Bytes of scratch (a multiple of 64) for attn_block_run, and the product itself.
size_t attn_block_scratch_f32(const struct attn_kernels *kernels, const struct attn_block *block);
size_t attn_block_scratch_f64(const struct attn_kernels *kernels, const struct attn_block *block);
void attn_block_run_f32(const struct attn_kernels *kernels, const struct attn_block *block,
                        void *scratch);
void attn_block_run_f64(const struct attn_kernels *kernels, const struct attn_block *block,
                        void *scratch);

// Panels: columns in groups of tile_lanes, each stored k after k:
//   panels[(c / lanes * depth + k) * lanes + c % lanes] = b[k*b_depth + c*b_column]
// The last group's missing columns stay unwritten. Bytes, and the packing of groups
// [first, last).
size_t attn_block_panel_bytes_f32(const struct attn_kernels *kernels, int64_t columns,
                                  int64_t depth);
size_t attn_block_panel_bytes_f64(const struct attn_kernels *kernels, int64_t columns,
                                  int64_t depth);
void attn_block_pack_f32(const struct attn_kernels *kernels, const struct attn_block *block,
                         int64_t first, int64_t last, void *panels);
void attn_block_pack_f64(const struct attn_kernels *kernels, const struct attn_block *block,
                         int64_t first, int64_t last, void *panels);

#endif
