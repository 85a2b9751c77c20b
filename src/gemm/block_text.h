// gemm/block_text.h: the blocked product for one element type (REAL, NAME(x) are defined by the
// includer). No include guard: it is compiled once per type.
//
// Loop order and names as in Goto & van de Geijn, "Anatomy of high-performance matrix
// multiplication", 2008, and BLIS: a group of columns of b that stays in the second-level cache, a
// piece of depth whose panel of b stays in the first-level cache, a block of rows of a that is
// packed where its own layout would be slow. Every tile goes on with the sums that c holds, so that
// an element stays one chain however depth is cut.

enum {
    GROUP_COLUMNS = 768, // columns of b that are packed together
    BLOCK_ROWS = 192,    // rows of a that are packed together
    PANEL_BYTES = 24576  // of b: half of a first-level cache
};

struct part {
    const struct KERNELS *kernels;
    const struct attn_block *block;
    REAL *b_panels, *a_panels, *copy; // scratch; copy: of a part of c that the tile cannot write
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t a, int64_t unit)
{
    return (a + unit - 1) / unit * unit;
}

static int64_t piece_of_depth(const struct KERNELS *kernels)
{
    return PANEL_BYTES / ((int64_t)sizeof(REAL) * kernels->tile_lanes);
}

// target[k*width + r] = source[r*row + k*step] for r < width, k < depth.
static void pack_panel(const struct KERNELS *kernels, const REAL *source, int64_t row, int64_t step,
                       int64_t width, int64_t depth, REAL *target, int64_t target_step)
{
    if (step == 1) {
        kernels->transpose(source, row, width, depth, target, target_step);
        return;
    }
    if (row == 1) {
        for (int64_t k = 0; k < depth; k++) {
            memcpy(target + k * target_step, source + k * step, (size_t)width * sizeof(REAL));
        }
        return;
    }
    for (int64_t k = 0; k < depth; k++) {
        for (int64_t r = 0; r < width; r++) {
            target[k * target_step + r] = source[r * row + k * step];
        }
    }
}

static void pack_b(const struct part *p, int64_t column, int64_t columns, int64_t k, int64_t depth)
{
    const struct attn_block *block = p->block;
    const int64_t lanes = p->kernels->tile_lanes;
    const REAL *b = (const REAL *)block->b + column * block->b_column + k * block->b_depth;
    for (int64_t c = 0; c < columns; c += lanes) {
        pack_panel(p->kernels, b + c * block->b_column, block->b_column, block->b_depth,
                   smaller(lanes, columns - c), depth, p->b_panels + c * depth, lanes);
    }
}

static void pack_a(const struct part *p, int64_t row, int64_t rows, int64_t k, int64_t depth)
{
    const struct attn_block *block = p->block;
    const int64_t height = p->kernels->tile_rows;
    const REAL *a = (const REAL *)block->a + row * block->a_row + k * block->a_depth;
    for (int64_t r = 0; r < rows; r += height) {
        pack_panel(p->kernels, a + r * block->a_row, block->a_row, block->a_depth,
                   smaller(height, rows - r), depth, p->a_panels + r * depth, height);
    }
}

// Rows whose elements follow each other are read where they are, unless they lie at a distance at
// which they would displace one another from the first-level cache.
static bool packs_a(const struct KERNELS *kernels, const struct attn_block *block)
{
    if (block->columns < 2 * kernels->tile_lanes || block->rows < kernels->tile_rows) {
        return false;
    }
    return block->a_depth != 1 || block->a_row * (int64_t)sizeof(REAL) % 1024 == 0;
}

static bool packs_b(const struct KERNELS *kernels, const struct attn_block *block)
{
    return !block->panels && (block->b_column != 1 || block->rows > 2 * kernels->tile_rows);
}

// One piece: rows x columns of c with `depth` terms from k on, all tiles.
static void multiply(const struct part *p, int64_t row, int64_t rows, int64_t column,
                     int64_t columns, int64_t k, int64_t depth, REAL *c, int64_t c_row,
                     attn_tile_start start)
{
    const struct attn_block *block = p->block;
    const int64_t lanes = p->kernels->tile_lanes;
    const int64_t height = p->a_panels ? p->kernels->tile_rows : rows;
    for (int64_t n = 0; n < columns; n += lanes) {
        struct TILE tile = {.c_row = c_row, .start = start, .b_depth = lanes};
        if (block->panels) {
            tile.b = (const REAL *)block->panels + (column + n) * block->depth + k * lanes;
        } else if (p->b_panels) {
            tile.b = p->b_panels + n * depth;
        } else {
            tile.b = (const REAL *)block->b + k * block->b_depth + column + n;
            tile.b_depth = block->b_depth;
        }
        if (start == ATTN_TILE_LANES) {
            tile.factor = (const REAL *)block->bias + column + n;
        }
        for (int64_t m = 0; m < rows; m += height) {
            if (p->a_panels) {
                tile.a = p->a_panels + m * depth;
                tile.a_row = 1;
                tile.a_depth = height;
            } else {
                tile.a = (const REAL *)block->a + (row + m) * block->a_row + k * block->a_depth;
                tile.a_row = block->a_row;
                tile.a_depth = block->a_depth;
            }
            tile.c = c + m * c_row + n;
            p->kernels->tile(&tile, smaller(height, rows - m), smaller(lanes, columns - n), depth);
        }
    }
}

// The whole depth for a group of columns, straight into c.
static void group_direct(const struct part *p, int64_t column, int64_t columns)
{
    const struct attn_block *block = p->block;
    const int64_t piece = piece_of_depth(p->kernels);
    attn_tile_start start = block->accumulate ? ATTN_TILE_ADD
                            : block->bias     ? ATTN_TILE_LANES
                                              : ATTN_TILE_ZERO;
    for (int64_t k = 0; k == 0 || k < block->depth; k += piece, start = ATTN_TILE_ADD) {
        const int64_t depth = smaller(piece, block->depth - k);
        if (p->b_panels) {
            pack_b(p, column, columns, k, depth);
        }
        for (int64_t row = 0; row < block->rows; row += BLOCK_ROWS) {
            const int64_t rows = smaller(BLOCK_ROWS, block->rows - row);
            if (p->a_panels) {
                pack_a(p, row, rows, k, depth);
            }
            multiply(p, row, rows, column, columns, k, depth,
                     (REAL *)block->c + row * block->c_row + column, block->c_row, start);
        }
    }
}

static void copy_in(const struct part *p, int64_t row, int64_t rows, int64_t column,
                    int64_t columns)
{
    const struct attn_block *block = p->block;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t n = 0; n < columns; n++) {
            REAL from = 0;
            if (block->accumulate) {
                from = ((const REAL *)
                            block->c)[(row + r) * block->c_row + (column + n) * block->c_column];
            } else if (block->bias) {
                from = ((const REAL *)block->bias)[(row + r) * block->bias_row +
                                                   (column + n) * block->bias_column];
            }
            p->copy[r * GROUP_COLUMNS + n] = from;
        }
    }
}

static void copy_out(const struct part *p, int64_t row, int64_t rows, int64_t column,
                     int64_t columns)
{
    const struct attn_block *block = p->block;
    REAL *c = (REAL *)block->c + row * block->c_row + column * block->c_column;
    if (block->c_row == 1) {
        p->kernels->transpose(p->copy, GROUP_COLUMNS, rows, columns, c, block->c_column);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t n = 0; n < columns; n++) {
            c[r * block->c_row + n * block->c_column] = p->copy[r * GROUP_COLUMNS + n];
        }
    }
}

// The same where the lanes of the tile cannot be stored into c: through a copy.
static void group_through_copy(const struct part *p, int64_t column, int64_t columns)
{
    const struct attn_block *block = p->block;
    const int64_t piece = piece_of_depth(p->kernels);
    for (int64_t row = 0; row < block->rows; row += BLOCK_ROWS) {
        const int64_t rows = smaller(BLOCK_ROWS, block->rows - row);
        copy_in(p, row, rows, column, columns);
        for (int64_t k = 0; k < block->depth; k += piece) {
            const int64_t depth = smaller(piece, block->depth - k);
            if (p->b_panels) {
                pack_b(p, column, columns, k, depth);
            }
            if (p->a_panels) {
                pack_a(p, row, rows, k, depth);
            }
            multiply(p, row, rows, column, columns, k, depth, p->copy, GROUP_COLUMNS,
                     ATTN_TILE_ADD);
        }
        copy_out(p, row, rows, column, columns);
    }
}

// The tile writes neighbours along the columns, and takes one bias per column.
static bool writes_direct(const struct attn_block *block)
{
    const bool bias = block->bias && !(block->bias_row == 0 && block->bias_column == 1);
    return (block->c_column == 1 || block->columns == 1) && !bias;
}

struct sizes {
    size_t b_panels, a_panels, copy; // bytes, multiples of 64
};

static struct sizes scratch_sizes(const struct KERNELS *kernels, const struct attn_block *block)
{
    struct sizes sizes = {0};
    const int64_t piece = smaller(piece_of_depth(kernels), block->depth);
    const int64_t columns = smaller(GROUP_COLUMNS, block->columns);
    const int64_t rows = smaller(BLOCK_ROWS, block->rows);
    const int64_t unit = 64 / (int64_t)sizeof(REAL);
    if (packs_b(kernels, block)) {
        sizes.b_panels = (size_t)round_up(round_up(columns, kernels->tile_lanes) * piece, unit);
    }
    if (packs_a(kernels, block)) {
        sizes.a_panels = (size_t)round_up(round_up(rows, kernels->tile_rows) * piece, unit);
    }
    if (!writes_direct(block)) {
        sizes.copy = (size_t)(rows * GROUP_COLUMNS);
    }
    sizes.b_panels *= sizeof(REAL);
    sizes.a_panels *= sizeof(REAL);
    sizes.copy *= sizeof(REAL);
    return sizes;
}

size_t NAME(attn_block_scratch)(const struct attn_kernels *kernels, const struct attn_block *block)
{
    const struct sizes sizes = scratch_sizes(kernels->FIELD, block);
    return sizes.b_panels + sizes.a_panels + sizes.copy;
}

void NAME(attn_block_run)(const struct attn_kernels *kernels, const struct attn_block *block,
                          void *scratch)
{
    const struct sizes sizes = scratch_sizes(kernels->FIELD, block);
    char *const memory = scratch;
    const struct part p = {
        .kernels = kernels->FIELD,
        .block = block,
        .b_panels = sizes.b_panels ? (REAL *)memory : NULL,
        .a_panels = sizes.a_panels ? (REAL *)(memory + sizes.b_panels) : NULL,
        .copy = sizes.copy ? (REAL *)(memory + sizes.b_panels + sizes.a_panels) : NULL,
    };
    const int64_t group = GROUP_COLUMNS / p.kernels->tile_lanes * p.kernels->tile_lanes;
    for (int64_t column = 0; column < block->columns; column += group) {
        const int64_t columns = smaller(group, block->columns - column);
        if (p.copy) {
            group_through_copy(&p, column, columns);
        } else {
            group_direct(&p, column, columns);
        }
    }
}

size_t NAME(attn_block_panel_bytes)(const struct attn_kernels *kernels, int64_t columns,
                                    int64_t depth)
{
    return (size_t)(round_up(columns, kernels->FIELD->tile_lanes) * depth) * sizeof(REAL);
}

void NAME(attn_block_pack)(const struct attn_kernels *kernels, const struct attn_block *block,
                           int64_t first, int64_t last, void *panels)
{
    const int64_t lanes = kernels->FIELD->tile_lanes;
    for (int64_t group = first; group < last; group++) {
        const int64_t column = group * lanes;
        pack_panel(kernels->FIELD, (const REAL *)block->b + column * block->b_column,
                   block->b_column, block->b_depth, smaller(lanes, block->columns - column),
                   block->depth, (REAL *)panels + column * block->depth, lanes);
    }
}
