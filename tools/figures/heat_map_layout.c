#include "heat_map_layout.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void arrange(heat_map_layout *l, const figure_heat_map *maps, int64_t count,
                    const figure_heat_map_options *options);
static double choose_cell(const heat_map_layout *l, int64_t count);
static void measure_labels(canvas *c, heat_map_layout *l, const figure_heat_map *maps,
                           int64_t count);
static int64_t round_step(double step);
static double widest_label(canvas *c, const char *const *labels, int64_t count, int64_t step);
static void measure_values(canvas *c, heat_map_layout *l, const figure_heat_map *maps,
                           int64_t count, int32_t digits);
static double measure_titles(canvas *c, const figure_heat_map *maps, int64_t count,
                             const figure_heat_map_options *options);
static void place(canvas *c, heat_map_layout *l, const figure_heat_map *maps, int64_t count,
                  const figure_heat_map_options *options);

heat_map_layout heat_map_measure(canvas *c, const figure_heat_map *maps, int64_t count,
                                 const figure_heat_map_options *options, double low, double high)
{
    heat_map_layout l = {.scale = axis_linear(low, high, 5, 0), .colours = colour_map_make()};
    arrange(&l, maps, count, options);
    l.cell = choose_cell(&l, count);
    measure_labels(c, &l, maps, count);
    if (options->digits >= 0) {
        measure_values(c, &l, maps, count, options->digits);
    }
    place(c, &l, maps, count, options);
    return l;
}

const char *heat_map_label(const char *const *labels, int64_t index, char buffer[24])
{
    if (labels != NULL) {
        return labels[index];
    }
    snprintf(buffer, 24, "%" PRId64, index);
    return buffer;
}

void heat_map_value(double value, int32_t digits, char buffer[48])
{
    if (fabs(value) >= 1e6) {
        snprintf(buffer, 48, "%.*e", digits > 4 ? 4 : digits, value);
    } else {
        snprintf(buffer, 48, "%.*f", digits, value);
    }
}

// ---- steps --------------------------------------------------------------------------------------

static void arrange(heat_map_layout *l, const figure_heat_map *maps, int64_t count,
                    const figure_heat_map_options *options)
{
    for (int64_t i = 0; i < count; i++) {
        l->rows = maps[i].values.shape[0] > l->rows ? maps[i].values.shape[0] : l->rows;
        l->columns = maps[i].values.shape[1] > l->columns ? maps[i].values.shape[1] : l->columns;
    }
    l->across = options->columns > 0 ? options->columns : (int64_t)ceil(sqrt((double)count));
    l->across = l->across > count ? count : l->across;
    l->down = (count + l->across - 1) / l->across;
}

// Cells are as large as lets one map fill about a page's width and a grid two.
static double choose_cell(const heat_map_layout *l, int64_t count)
{
    const double room = count == 1 ? 400 : count == 2 ? 300 : 160;
    const double most = (double)(l->rows > l->columns ? l->rows : l->columns);
    return fmin(fmax(room / most, 0.25), 46);
}

static void measure_labels(canvas *c, heat_map_layout *l, const figure_heat_map *maps,
                           int64_t count)
{
    const double line = heat_map_label_font.size * 1.25;
    l->label_step = round_step(line / l->cell);
    double widest = 0;
    for (int64_t i = 0; i < count; i++) {
        const attn_tensor *values = &maps[i].values;
        l->row_label_width =
            fmax(l->row_label_width,
                 widest_label(c, maps[i].row_labels, values->shape[0], l->label_step));
        widest =
            fmax(widest, widest_label(c, maps[i].column_labels, values->shape[1], l->label_step));
    }
    l->turned_labels = widest + 3 > l->cell * (double)l->label_step;
    l->column_label_height = l->turned_labels ? widest : line;
}

// 1, 2 or 5 times a power of ten, and at least `step`.
static int64_t round_step(double step)
{
    int64_t power = 1;
    while ((double)power * 10 < step) {
        power *= 10;
    }
    const int64_t lead = step <= (double)power         ? 1
                         : step <= (double)(2 * power) ? 2
                         : step <= (double)(5 * power) ? 5
                                                       : 10;
    return lead * power;
}

static double widest_label(canvas *c, const char *const *labels, int64_t count, int64_t step)
{
    double widest = 0;
    char buffer[24];
    for (int64_t i = 0; i < count; i += step) {
        widest = fmax(widest,
                      canvas_text_width(c, heat_map_label_font, heat_map_label(labels, i, buffer)));
    }
    return widest;
}

// The largest size at which every number fits into its cell; none where it could not be read.
static void measure_values(canvas *c, heat_map_layout *l, const figure_heat_map *maps,
                           int64_t count, int32_t digits)
{
    static const double smallest = 5.5;
    if (l->cell < 2 * smallest) {
        return;
    }
    const font unit = {10, false};
    double widest = 0;
    for (int64_t i = 0; i < count; i++) {
        const attn_tensor *values = &maps[i].values;
        int64_t at[2];
        for (at[0] = 0; at[0] < values->shape[0]; at[0]++) {
            for (at[1] = 0; at[1] < values->shape[1]; at[1]++) {
                char text[48];
                heat_map_value(attn_tensor_get(values, at), digits, text);
                widest = fmax(widest, canvas_text_width(c, unit, text));
            }
        }
    }
    const double fitting = widest > 0 ? 10 * 0.86 * l->cell / widest : 0;
    l->value_size = fitting < smallest ? 0 : fmin(fitting, fmin(12, 0.5 * l->cell));
}

static double measure_titles(canvas *c, const figure_heat_map *maps, int64_t count,
                             const figure_heat_map_options *options)
{
    double widest = 0;
    for (int64_t i = 0; i < count; i++) {
        widest = fmax(widest, canvas_text_width(c, heat_map_map_title_font, maps[i].title));
    }
    canvas_text_width(c, heat_map_text_font, options->row_title);
    canvas_text_width(c, heat_map_text_font, options->column_title);
    return widest;
}

static void place(canvas *c, heat_map_layout *l, const figure_heat_map *maps, int64_t count,
                  const figure_heat_map_options *options)
{
    const double line = heat_map_text_font.size * 1.5;
    const double map_titles = measure_titles(c, maps, count, options);
    const double title_width = canvas_text_width(c, heat_map_title_font, options->title);
    const double labels = l->row_label_width + 9 + (options->row_title == NULL ? 0 : line);
    const double cells_width = l->cell * (double)l->columns;
    const double cells_height = l->cell * (double)l->rows;
    // A map's title is centred over its cells and may stand out on both sides.
    const double standing_out = fmax(0, (map_titles - cells_width) / 2);
    l->map_width = fmax(labels, standing_out) + cells_width + standing_out;
    l->map_height = cells_height + (map_titles > 0 ? line : 0) + l->column_label_height + 6 +
                    (options->column_title == NULL ? 0 : line);
    l->left = HEAT_MAP_MARGIN + fmax(labels, standing_out);
    l->top = HEAT_MAP_MARGIN + (options->title == NULL ? 0 : heat_map_title_font.size * 2) +
             (map_titles > 0 ? line : 0);
    const double gap = HEAT_MAP_GAP;
    const double grid_width = (double)l->across * (l->map_width + 2 * gap) - 2 * gap;
    const double grid_height = (double)l->down * (l->map_height + gap) - gap;

    double bar_labels = 0;
    for (int i = 0; i < l->scale.ticks; i++) {
        bar_labels =
            fmax(bar_labels, canvas_text_width(c, heat_map_label_font, l->scale.labels[i]));
    }
    l->bar_x = HEAT_MAP_MARGIN + grid_width + 14;
    l->bar_y = l->top;
    const double covered = (double)(l->down - 1) * (l->map_height + gap) + cells_height;
    l->bar_height = fmax(60, fmin(covered, 320));
    l->width = fmax(l->bar_x + HEAT_MAP_BAR_WIDTH + 6 + bar_labels, HEAT_MAP_MARGIN + title_width) +
               HEAT_MAP_MARGIN;
    l->height = fmax(l->top - (map_titles > 0 ? line : 0) + grid_height, l->bar_y + l->bar_height) +
                HEAT_MAP_MARGIN;
}
