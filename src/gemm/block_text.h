// gemm/block_text.h: the blocked product for one element type (REAL, NAME(x) are defined by the
// includer). No include guard: it is compiled once per type.
//
// Loop order (names as in Goto & van de Geijn, "Anatomy of high-performance matrix multiplication",
// 2008): a group of columns of b, packed into panels, that stays in the second-level cache; a piece
// of depth; a strip of rows of a that stays in the first-level cache while the panels stream past it.
// Here the streamed operand is the one that is read in vectors: three lines per step, which the
// second-level cache delivers in time, so that pieces can be deep and c is seldom written twice.
// Every tile goes on with the sums that c holds, so that an element stays one chain however depth is
// cut.

enum {
    CACHE_PARTS = 7,
    PANEL_PARTS = 4,                // so many sevenths of a second-level cache hold packed b
    MOST_PANEL_BYTES = 1536 * 1024, // however large the cache is: several cores may share it
    STRIP_BYTES = 24576,            // of a: half of a first-level cache
    DEPTH_BYTES = 3072,             // of a row of a that takes part in one piece
    // A transposed a is packed anew for every group of columns: less depth gives wider groups.
    DEPTH_BYTES_PACKED = 1024,
    // A b that is read where it lies comes from memory once: its panel stays in the first level.
    DEPTH_BYTES_DIRECT = 512,
    BLOCK_ROWS = 96,        // rows of a that are packed together
    COPY_BYTES = 128 * 1024 // of c that is copied together
};

struct part {
    const struct KERNELS *kernels;
    const struct attn_block *block;
    int64_t piece, rows;              // of depth; of rows that are worked on together
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

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

// Rows whose elements follow each other are read where they are.
static bool packs_a(const struct KERNELS *kernels, const struct attn_block *block)
{
    return block->a_depth != 1 && block->columns >= 2 * kernels->tile_lanes &&
           block->rows >= kernels->tile_rows;
}

static bool packs_b(const struct KERNELS *kernels, const struct attn_block *block)
{
    return !block->panels && (block->b_column != 1 || block->rows > 2 * kernels->tile_rows);
}

// `whole` in equal parts of at most `most`, rounded up to `unit`; at least 1.
static int64_t equal_part(int64_t whole, int64_t most, int64_t unit)
{
    if (whole <= most) { // small products do not pay for divisions
        return larger(whole, 1);
    }
    const int64_t parts = (whole + most - 1) / most;
    return round_up((whole + parts - 1) / parts, unit);
}

static int64_t piece_of_depth(const struct KERNELS *kernels, const struct attn_block *block)
{
    const bool direct_b = !block->panels && !packs_b(kernels, block);
    const int64_t bytes = direct_b                  ? DEPTH_BYTES_DIRECT
                          : packs_a(kernels, block) ? DEPTH_BYTES_PACKED
                                                    : DEPTH_BYTES;
    return equal_part(block->depth, bytes / (int64_t)sizeof(REAL), 16);
}

static int64_t group_of_columns(const struct KERNELS *kernels, const struct attn_block *block,
                                int64_t piece)
{
    const int64_t bytes = piece * (int64_t)sizeof(REAL); // of a column
    if (block->columns <= 2 * kernels->tile_lanes) {
        return larger(block->columns, 1);
    }
    const int64_t share = smaller(block->cache_bytes / CACHE_PARTS * PANEL_PARTS, MOST_PANEL_BYTES);
    return equal_part(block->columns, larger(share / bytes, kernels->tile_lanes),
                      kernels->tile_lanes);
}

static int64_t strip_of_rows(const struct KERNELS *kernels, int64_t rows, int64_t depth)
{
    if (rows <= kernels->tile_rows || depth == 0) {
        return kernels->tile_rows;
    }
    const int64_t most = STRIP_BYTES / (depth * (int64_t)sizeof(REAL));
    return larger(most / kernels->tile_rows, 1) * kernels->tile_rows;
}

// A few neighbours, in steps of fixed size: a call of memcpy takes longer than such a copy.
static void copy_few(const REAL *source, REAL *target, int64_t count)
{
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        memcpy(target + i, source + i, 4 * sizeof(REAL));
    }
    for (; i < count; i++) {
        target[i] = source[i];
    }
}

// target[k*width + r] = source[r*row + k*step] for r < width, k < depth.
static void pack_panel(const struct KERNELS *kernels, const REAL *source, int64_t row, int64_t step,
                       int64_t width, int64_t depth, REAL *target, int64_t target_step)
{
    if (step == 1) {
        const struct NAME(attn_transpose) turn = {
            .source = source,
            .source_row = row,
            .factor = 1,
            .target = target,
            .target_row = target_step,
        };
        kernels->transpose(&turn, width, depth);
        return;
    }
    if (row == 1) {
        for (int64_t k = 0; k < depth; k++) {
            copy_few(source + k * step, target + k * target_step, width);
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

// Lot `part` of `lines` lines, cut into `parts` equal lots.
static struct attn_ahead_rows some_lines(const REAL *first, int64_t length, int64_t step,
                                         int64_t lines, int64_t part, int64_t parts)
{
    const int64_t size = (int64_t)sizeof(REAL), from = lines * part / parts;
    const int64_t to = lines * (part + 1) / parts;
    return (struct attn_ahead_rows){(const char *)(first + from * step), 0, length * size,
                                    step * size, to - from};
}

// What a strip of `height` rows from `row` on asks for while it is at work, where rows are packed block
// by block: the sums of the next strip, and its share of what will be packed next, which is the next
// block of a, and the next piece of b.
static struct attn_ahead strip_ahead(const struct part *p, int64_t row, int64_t height,
                                     int64_t column, int64_t columns, int64_t k, int64_t depth,
                                     const REAL *c, int64_t c_row)
{
    const struct attn_block *block = p->block;
    const int64_t strips = (block->rows + height - 1) / height, below = row + height;
    const int64_t in_block = (p->rows + height - 1) / height;
    const int64_t next_k = k + depth, next_depth = smaller(p->piece, block->depth - next_k);
    const bool last = row / p->rows == (block->rows - 1) / p->rows;
    const int64_t a_row = last ? 0 : (row / p->rows + 1) * p->rows, a_k = last ? next_k : k;
    struct attn_ahead ahead = {0};
    if (below < block->rows) {
        ahead.parts[0] = some_lines(c + height * c_row, columns, c_row,
                                    smaller(height, block->rows - below), 0, 1);
    }
    if (block->a_row == 1 && (!last || next_depth > 0)) {
        const REAL *a = (const REAL *)block->a + a_row + a_k * block->a_depth;
        ahead.parts[1] = some_lines(a, smaller(p->rows, block->rows - a_row), block->a_depth,
                                    last ? next_depth : depth, row % p->rows / height, in_block);
    }
    if (p->b_panels && block->b_column == 1 && next_depth > 0) {
        const REAL *b = (const REAL *)block->b + column + next_k * block->b_depth;
        ahead.parts[2] = some_lines(b, columns, block->b_depth, next_depth, row / height, strips);
    }
    const int64_t work = height * columns * depth / p->kernels->vector_lanes;
    ahead.rate = attn_ahead_rate((double)attn_ahead_bytes(&ahead), (double)work);
    return ahead;
}

// One piece: rows x columns of c with `depth` terms from k on, all tiles.
static void multiply(const struct part *p, int64_t row, int64_t rows, int64_t column,
                     int64_t columns, int64_t k, int64_t depth, REAL *c, int64_t c_row,
                     attn_tile_start start)
{
    const struct attn_block *block = p->block;
    const int64_t lanes = p->kernels->tile_lanes;
    const int64_t height = p->a_panels ? p->kernels->tile_rows
                                       : strip_of_rows(p->kernels, rows, depth);
    struct TILE tile = {.c_row = c_row, .start = start};
    const REAL *b;   // the first panel
    int64_t b_panel; // from panel to panel
    tile.b_depth = lanes;
    if (block->panels) {
        b = (const REAL *)block->panels + column * block->depth + k * lanes;
        b_panel = lanes * block->depth;
    } else if (p->b_panels) {
        b = p->b_panels;
        b_panel = lanes * depth;
    } else {
        b = (const REAL *)block->b + k * block->b_depth + column;
        b_panel = lanes;
        tile.b_depth = block->b_depth;
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
        struct attn_ahead ahead;
        if (p->a_panels && !p->copy) {
            ahead =
                strip_ahead(p, row + m, height, column, columns, k, depth, c + m * c_row, c_row);
            tile.ahead = &ahead;
        }
        tile.b = b;
        for (int64_t n = 0; n < columns; n += lanes, tile.b += b_panel) {
            tile.c = c + m * c_row + n;
            if (start == ATTN_TILE_LANES) {
                tile.factor = (const REAL *)block->bias + column + n;
            }
            p->kernels->tile(&tile, smaller(height, rows - m), smaller(lanes, columns - n), depth);
        }
    }
}

// The whole depth for a group of columns, straight into c.
static void group_direct(const struct part *p, int64_t column, int64_t columns)
{
    const struct attn_block *block = p->block;
    attn_tile_start start = block->accumulate ? ATTN_TILE_ADD
                            : block->bias     ? ATTN_TILE_LANES
                                              : ATTN_TILE_ZERO;
    for (int64_t k = 0; k == 0 || k < block->depth; k += p->piece, start = ATTN_TILE_ADD) {
        const int64_t depth = smaller(p->piece, block->depth - k);
        if (p->b_panels) {
            pack_b(p, column, columns, k, depth);
        }
        for (int64_t row = 0; row < block->rows; row += p->rows) {
            const int64_t rows = smaller(p->rows, block->rows - row);
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
            p->copy[r * columns + n] = from;
        }
    }
}

static void copy_out(const struct part *p, int64_t row, int64_t rows, int64_t column,
                     int64_t columns)
{
    const struct attn_block *block = p->block;
    REAL *c = (REAL *)block->c + row * block->c_row + column * block->c_column;
    if (block->c_row == 1) {
        const struct NAME(attn_transpose) turn = {
            .source = p->copy,
            .source_row = columns,
            .factor = 1,
            .target = c,
            .target_row = block->c_column,
        };
        p->kernels->transpose(&turn, rows, columns);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t n = 0; n < columns; n++) {
            c[r * block->c_row + n * block->c_column] = p->copy[r * columns + n];
        }
    }
}

// The same where the lanes of the tile cannot be stored into c: through a copy.
static void group_through_copy(const struct part *p, int64_t column, int64_t columns)
{
    const struct attn_block *block = p->block;
    for (int64_t row = 0; row < block->rows; row += p->rows) {
        const int64_t rows = smaller(p->rows, block->rows - row);
        copy_in(p, row, rows, column, columns);
        for (int64_t k = 0; k < block->depth; k += p->piece) {
            const int64_t depth = smaller(p->piece, block->depth - k);
            if (p->b_panels) {
                pack_b(p, column, columns, k, depth);
            }
            if (p->a_panels) {
                pack_a(p, row, rows, k, depth);
            }
            multiply(p, row, rows, column, columns, k, depth, p->copy, columns, ATTN_TILE_ADD);
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
    int64_t piece, group, rows;      // of depth, of columns, of rows: worked on together
    size_t b_panels, a_panels, copy; // bytes, multiples of 64
};

static size_t bytes_of(int64_t rows, int64_t columns)
{
    return (size_t)round_up(rows * columns * (int64_t)sizeof(REAL), 64);
}

static struct sizes choose_sizes(const struct KERNELS *kernels, const struct attn_block *block)
{
    struct sizes sizes = {.piece = piece_of_depth(kernels, block), .rows = block->rows};
    sizes.group = group_of_columns(kernels, block, sizes.piece);
    if (packs_b(kernels, block)) {
        sizes.b_panels = bytes_of(round_up(sizes.group, kernels->tile_lanes), sizes.piece);
    }
    if (packs_a(kernels, block)) {
        sizes.rows = smaller(BLOCK_ROWS, block->rows);
        sizes.a_panels = bytes_of(round_up(sizes.rows, kernels->tile_rows), sizes.piece);
    }
    if (!writes_direct(block)) {
        const int64_t most = COPY_BYTES / (sizes.group * (int64_t)sizeof(REAL));
        sizes.rows = smaller(larger(most, BLOCK_ROWS), sizes.rows);
        sizes.copy = bytes_of(sizes.rows, sizes.group);
    }
    return sizes;
}

size_t NAME(attn_block_scratch)(const struct attn_kernels *kernels, const struct attn_block *block)
{
    const struct sizes sizes = choose_sizes(kernels->FIELD, block);
    return sizes.b_panels + sizes.a_panels + sizes.copy;
}

void NAME(attn_block_run)(const struct attn_kernels *kernels, const struct attn_block *block,
                          void *scratch)
{
    const struct sizes sizes = choose_sizes(kernels->FIELD, block);
    char *const memory = scratch;
    const struct part p = {
        .kernels = kernels->FIELD,
        .block = block,
        .piece = sizes.piece,
        .rows = sizes.rows,
        .b_panels = sizes.b_panels ? (REAL *)memory : NULL,
        .a_panels = sizes.a_panels ? (REAL *)(memory + sizes.b_panels) : NULL,
        .copy = sizes.copy ? (REAL *)(memory + sizes.b_panels + sizes.a_panels) : NULL,
    };
    for (int64_t column = 0; column < block->columns; column += sizes.group) {
        const int64_t columns = smaller(sizes.group, block->columns - column);
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
