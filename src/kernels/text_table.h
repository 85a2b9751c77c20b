// kernels/text_table.h: all texts, compiled for the including file's tier and element type, and the
// table of the results. The including file defines ATTN_REAL_BITS and TIER_TABLE (the table's name)
// and includes its vec_*.h first.
#include "kernels/text_dropout.h"
#include "kernels/text_gradient.h"
#include "kernels/text_math.h"
#include "kernels/text_quads.h"
#include "kernels/text_rows.h"
#include "kernels/text_small.h"
#include "kernels/text_softmax.h"
#include "kernels/text_tile.h"
#include "kernels/text_transpose.h"

const struct REAL_NAME(attn_kernels) TIER_TABLE = {
    .vector_lanes = V_LANES,
    .tile_rows = TILE_ROWS_3,
    .tile_lanes = 3 * V_LANES,
    .tile = tile,
    .transpose = transpose,
#if ATTN_REAL_BITS == 32
    .transpose_narrow = transpose_narrow,
    .softmax_quads = softmax_quads,
    .to_quads = to_quads,
#endif
    .softmax = softmax,
    .weights = weights,
    .join = join,
    .dropout = dropout,
    .adjust = adjust,
    .hide_outside = hide_outside,
    .small = small,
    .score_gradient = score_gradient,
    .gradient_sums = gradient_sums,
    .cap_slope = cap_slope,
    .lane_dots = lane_dots,
    .any_hidden = any_hidden,
    .finite = finite,
    .scale_rows = scale_rows,
    .merge_row = merge_row,
    .exp = map_exp,
    .log = map_log,
    .tanh = map_tanh,
};
