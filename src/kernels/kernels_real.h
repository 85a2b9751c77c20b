// kernels/kernels_real.h: the kernels of one element type; kernels.h includes it for float and double.

// One rows x lanes product with a chain over depth:
//   c[r*c_row + l] = start(r, l); for k ascending: fma(a[r*a_row + k*a_depth], b[k*b_depth + l], .)
// a is read one element at a time, b and c in vectors along the lanes. b and c need no alignment;
// lanes beyond `lanes` are neither read nor written. c must not overlap a, b or factor. A depth of 0
// leaves the start values in c.
struct ATTN_NAME(attn_tile) {
    const ATTN_REAL *a;
    int64_t a_row, a_depth;
    const ATTN_REAL *b;
    int64_t b_depth;
    ATTN_REAL *c;
    int64_t c_row;
    const ATTN_REAL *factor; // (rows) for SCALE_ROW, (lanes) for LANES
    attn_tile_start start;
    attn_tile_select select;
};

struct ATTN_NAME(attn_kernels) {
    // The register tile at its best: tile_rows x tile_lanes for products whose lanes are many. Other
    // sizes are right, and fastest in multiples of vector_lanes.
    int32_t vector_lanes;
    int32_t tile_rows;
    int32_t tile_lanes;
    void (*tile)(const struct ATTN_NAME(attn_tile) * tile, int64_t rows, int64_t lanes,
                 int64_t depth);

    // target[c*target_row + r] = source[r*source_row + c] for rows x columns elements of source.
    void (*transpose)(const ATTN_REAL *source, int64_t source_row, int64_t rows, int64_t columns,
                      ATTN_REAL *target, int64_t target_row);
};
