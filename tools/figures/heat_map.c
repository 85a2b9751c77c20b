#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "canvas.h"
#include "figures.h"
#include "heat_map_layout.h"

static const colour black = {0.05, 0.05, 0.05};
static const colour grey = {0.62, 0.62, 0.62};
static const colour nothing = {0.92, 0.92, 0.92}; // cells too small for a hatch

static void check_maps(canvas *c, const figure_heat_map *maps, int64_t count,
                       const figure_heat_map_options *options);
static void find_range(const figure_heat_map *maps, int64_t count, double *low, double *high);
static void draw_map(canvas *c, const heat_map_layout *l, const figure_heat_map *map,
                     const figure_heat_map_options *options, double x, double y);
static void draw_cells(canvas *c, const heat_map_layout *l, const attn_tensor *values, double x,
                       double y);
static void draw_image(canvas *c, const heat_map_layout *l, const attn_tensor *values, double x,
                       double y);
static void draw_values(canvas *c, const heat_map_layout *l, const attn_tensor *values,
                        int32_t digits, double x, double y);
static void draw_labels(canvas *c, const heat_map_layout *l, const figure_heat_map *map, double x,
                        double y);
static void draw_bar(canvas *c, const heat_map_layout *l);
static colour colour_of(const heat_map_layout *l, double value);

void figure_heat_map_options_init(figure_heat_map_options *options)
{
    *options = (figure_heat_map_options){.digits = 2};
}

attn_status figure_heat_maps(const figure_heat_map *maps, int64_t count,
                             const figure_heat_map_options *options, const char *path,
                             attn_error *error)
{
    figure_heat_map_options defaults;
    figure_heat_map_options_init(&defaults);
    options = options == NULL ? &defaults : options;
    canvas c;
    canvas_open(&c, path);
    check_maps(&c, maps, count, options);
    if (!canvas_failed(&c)) {
        double low = options->low;
        double high = options->high;
        if (low == high) {
            find_range(maps, count, &low, &high);
        }
        const heat_map_layout l = heat_map_measure(&c, maps, count, options, low, high);
        canvas_begin(&c, l.width, l.height);
        canvas_text(&c, heat_map_title_font, black, ALIGN_LEFT, HEAT_MAP_MARGIN,
                    HEAT_MAP_MARGIN + heat_map_title_font.size / 2, options->title);
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = i / l.across;
            const int64_t column = i % l.across;
            draw_map(&c, &l, &maps[i], options,
                     l.left + (double)column * (l.map_width + 2 * HEAT_MAP_GAP),
                     l.top + (double)row * (l.map_height + HEAT_MAP_GAP));
        }
        draw_bar(&c, &l);
    }
    return canvas_finish(&c, error);
}

static void check_maps(canvas *c, const figure_heat_map *maps, int64_t count,
                       const figure_heat_map_options *options)
{
    if (maps == NULL || count <= 0) {
        canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT, "figure: no heat map was given");
        return;
    }
    if (options->digits > 17 || options->columns < 0 || !isfinite(options->low) ||
        !isfinite(options->high)) {
        canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT,
                    "figure: digits, columns, low or high is out of range");
    }
    for (int64_t i = 0; i < count; i++) {
        attn_error reason;
        const attn_tensor *values = &maps[i].values;
        const attn_status status = attn_tensor_check(values, "figure", &reason);
        if (status != ATTN_OK) {
            canvas_fail(c, status, "%s", reason.text);
        } else if (values->ndim != 2 || attn_tensor_count(values) == 0) {
            char shape[160];
            attn_tensor_format_shape(values, shape, sizeof(shape));
            canvas_fail(c, ATTN_ERR_SHAPE, "figure: a heat map needs rows and columns, not %s",
                        shape);
        }
    }
}

// The smallest and largest finite values; weights, which lie in [0, 1], start at 0.
static void find_range(const figure_heat_map *maps, int64_t count, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        int64_t at[2];
        for (at[0] = 0; at[0] < maps[i].values.shape[0]; at[0]++) {
            for (at[1] = 0; at[1] < maps[i].values.shape[1]; at[1]++) {
                const double value = attn_tensor_get(&maps[i].values, at);
                if (isfinite(value)) {
                    *low = fmin(*low, value);
                    *high = fmax(*high, value);
                }
            }
        }
    }
    if (*low >= 0 && *high > 0 && *high <= 1) {
        *low = 0;
    }
}

// ---- one map ------------------------------------------------------------------------------------

// x, y: the corner of the cells.
static void draw_map(canvas *c, const heat_map_layout *l, const figure_heat_map *map,
                     const figure_heat_map_options *options, double x, double y)
{
    const attn_tensor *values = &map->values;
    const double width = l->cell * (double)values->shape[1];
    const double height = l->cell * (double)values->shape[0];
    // Small cells are pixels of one image; large ones are squares.
    if (l->cell < 4) {
        draw_image(c, l, values, x, y);
    } else {
        draw_cells(c, l, values, x, y);
    }
    if (l->value_size > 0) {
        draw_values(c, l, values, options->digits, x, y);
    }
    canvas_frame(c, grey, 0.6, x, y, width, height);
    draw_labels(c, l, map, x, y);
    const double line = heat_map_text_font.size * 1.5;
    canvas_text(c, heat_map_map_title_font, black, ALIGN_CENTRE, x + width / 2, y - line / 2 - 1,
                map->title);
    canvas_text(c, heat_map_text_font, black, ALIGN_CENTRE, x + width / 2,
                y + height + 6 + l->column_label_height + line / 2, options->column_title);
    canvas_turned_text(c, heat_map_text_font, black, ALIGN_CENTRE,
                       x - 9 - l->row_label_width - line / 2, y + height / 2, -90,
                       options->row_title);
}

static void draw_cells(canvas *c, const heat_map_layout *l, const attn_tensor *values, double x,
                       double y)
{
    int64_t at[2];
    for (at[0] = 0; at[0] < values->shape[0]; at[0]++) {
        for (at[1] = 0; at[1] < values->shape[1]; at[1]++) {
            const double left = x + l->cell * (double)at[1];
            const double top = y + l->cell * (double)at[0];
            const double value = attn_tensor_get(values, at);
            if (isnan(value) && l->cell < 10) {
                canvas_fill(c, nothing, left, top, l->cell + 0.2, l->cell + 0.2);
            } else if (isnan(value)) {
                canvas_line(c, grey, 0.5, left + l->cell * 0.2, top + l->cell * 0.8,
                            left + l->cell * 0.8, top + l->cell * 0.2);
            } else {
                // Neighbours overlap by a hair, so that no seam of the page shows between them.
                canvas_fill(c, colour_of(l, value), left, top, l->cell + 0.2, l->cell + 0.2);
            }
        }
    }
}

static uint32_t pixel_of(colour ink)
{
    return (uint32_t)lround(ink.red * 255) << 16 | (uint32_t)lround(ink.green * 255) << 8 |
           (uint32_t)lround(ink.blue * 255);
}

static void draw_image(canvas *c, const heat_map_layout *l, const attn_tensor *values, double x,
                       double y)
{
    if (canvas_failed(c)) {
        return;
    }
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)values->shape[1],
                                                        (int)values->shape[0]);
    unsigned char *pixels = cairo_image_surface_get_data(image);
    if (pixels == NULL) {
        cairo_surface_destroy(image);
        canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT,
                    "figure: a heat map of this size cannot be drawn; choose fewer rows");
        return;
    }
    const int stride = cairo_image_surface_get_stride(image);
    int64_t at[2];
    for (at[0] = 0; at[0] < values->shape[0]; at[0]++) {
        for (at[1] = 0; at[1] < values->shape[1]; at[1]++) {
            const double value = attn_tensor_get(values, at);
            const uint32_t pixel = pixel_of(isnan(value) ? nothing : colour_of(l, value));
            memcpy(pixels + at[0] * stride + 4 * at[1], &pixel, sizeof(pixel));
        }
    }
    cairo_surface_mark_dirty(image);
    cairo_save(c->cairo);
    cairo_translate(c->cairo, x, y);
    cairo_scale(c->cairo, l->cell, l->cell);
    cairo_set_source_surface(c->cairo, image, 0, 0);
    cairo_pattern_set_filter(cairo_get_source(c->cairo),
                             l->cell >= 1 ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_GOOD);
    cairo_paint(c->cairo);
    cairo_restore(c->cairo);
    cairo_surface_destroy(image);
}

static void draw_values(canvas *c, const heat_map_layout *l, const attn_tensor *values,
                        int32_t digits, double x, double y)
{
    const font f = {l->value_size, false};
    int64_t at[2];
    for (at[0] = 0; at[0] < values->shape[0]; at[0]++) {
        for (at[1] = 0; at[1] < values->shape[1]; at[1]++) {
            const double value = attn_tensor_get(values, at);
            if (isnan(value)) {
                continue;
            }
            char text[48];
            heat_map_value(value, digits, text);
            canvas_text(c, f, colour_of_text_on(colour_of(l, value)), ALIGN_CENTRE,
                        x + l->cell * ((double)at[1] + 0.5), y + l->cell * ((double)at[0] + 0.5),
                        text);
        }
    }
}

static void draw_labels(canvas *c, const heat_map_layout *l, const figure_heat_map *map, double x,
                        double y)
{
    char buffer[24];
    for (int64_t row = 0; row < map->values.shape[0]; row += l->label_step) {
        canvas_text(c, heat_map_label_font, black, ALIGN_RIGHT, x - 5,
                    y + l->cell * ((double)row + 0.5),
                    heat_map_label(map->row_labels, row, buffer));
    }
    const double below = y + l->cell * (double)map->values.shape[0] + 4;
    for (int64_t column = 0; column < map->values.shape[1]; column += l->label_step) {
        const char *text = heat_map_label(map->column_labels, column, buffer);
        const double middle = x + l->cell * ((double)column + 0.5);
        if (l->turned_labels) {
            canvas_turned_text(c, heat_map_label_font, black, ALIGN_RIGHT, middle, below, -90,
                               text);
        } else {
            canvas_text(c, heat_map_label_font, black, ALIGN_CENTRE, middle,
                        below + heat_map_label_font.size * 0.6, text);
        }
    }
}

// ---- the colour bar -----------------------------------------------------------------------------

static void draw_bar(canvas *c, const heat_map_layout *l)
{
    enum { STEPS = 128 };
    for (int i = 0; i < STEPS; i++) {
        const double height = l->bar_height / STEPS;
        canvas_fill(c, colour_map_at(&l->colours, 1 - (i + 0.5) / STEPS), l->bar_x,
                    l->bar_y + height * i, HEAT_MAP_BAR_WIDTH,
                    i + 1 < STEPS ? height + 0.3 : height);
    }
    canvas_frame(c, grey, 0.6, l->bar_x, l->bar_y, HEAT_MAP_BAR_WIDTH, l->bar_height);
    for (int i = 0; i < l->scale.ticks; i++) {
        const double share = (l->scale.at[i] - l->scale.low) / (l->scale.high - l->scale.low);
        const double y = l->bar_y + l->bar_height * (1 - share);
        const double x = l->bar_x + HEAT_MAP_BAR_WIDTH;
        canvas_line(c, grey, 0.6, x, y, x + 3, y);
        canvas_text(c, heat_map_label_font, black, ALIGN_LEFT, x + 6, y, l->scale.labels[i]);
    }
}

static colour colour_of(const heat_map_layout *l, double value)
{
    return colour_map_at(&l->colours, (value - l->scale.low) / (l->scale.high - l->scale.low));
}
