#include <inttypes.h>
#include <math.h>

#include "canvas.h"
#include "figures.h"
#include "plot_area.h"

enum { MOST_CURVES = 8, MARGIN = 14, WIDTH = 440, HEIGHT = 250, LEGEND_LINE = 16 };

// What the curves need.
typedef struct curve_layout {
    plot_area area;
    axis horizontal;
    double legend_width; // 0: none
    double width, height;
} curve_layout;

static void check_curves(canvas *c, const figure_curve *curves, int64_t count, bool log_scale);
static curve_layout measure(canvas *c, const figure_curve *curves, int64_t count,
                            const figure_curve_options *options);
static void find_range(const figure_curve *curves, int64_t count, double *low, double *high,
                       int64_t *longest);
static void draw_axes(canvas *c, const curve_layout *l, const figure_curve_options *options);
static void draw_curve(canvas *c, const curve_layout *l, const figure_curve *curve, int index);
static void draw_legend(canvas *c, const curve_layout *l, const figure_curve *curves,
                        int64_t count);

attn_status figure_curves(const figure_curve *curves, int64_t count,
                          const figure_curve_options *options, const char *path, attn_error *error)
{
    static const figure_curve_options plain = {0};
    options = options == NULL ? &plain : options;
    canvas c;
    canvas_open(&c, path);
    check_curves(&c, curves, count, options->log_scale);
    if (!canvas_failed(&c)) {
        const curve_layout l = measure(&c, curves, count, options);
        canvas_begin(&c, l.width, l.height);
        draw_axes(&c, &l, options);
        for (int64_t i = 0; i < count; i++) {
            draw_curve(&c, &l, &curves[i], (int)i);
        }
        draw_legend(&c, &l, curves, count);
    }
    return canvas_finish(&c, error);
}

static void check_curves(canvas *c, const figure_curve *curves, int64_t count, bool log_scale)
{
    if (curves == NULL || count <= 0 || count > MOST_CURVES) {
        canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT, "figure: between 1 and 8 curves can be drawn");
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (curves[i].count < 0 || (curves[i].count > 0 && curves[i].values == NULL)) {
            canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT, "figure: curve %" PRId64 " has no values", i);
            return;
        }
        for (int64_t k = 0; log_scale && k < curves[i].count; k++) {
            if (curves[i].values[k] <= 0) {
                canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT,
                            "figure: value %" PRId64 " of curve %" PRId64
                            " is %g; a logarithmic axis needs values above 0",
                            k, i, curves[i].values[k]);
            }
        }
    }
}

// ---- sizes --------------------------------------------------------------------------------------

static curve_layout measure(canvas *c, const figure_curve *curves, int64_t count,
                            const figure_curve_options *options)
{
    curve_layout l = {.area = {.width = WIDTH, .height = HEIGHT}};
    double low, high;
    int64_t longest;
    find_range(curves, count, &low, &high, &longest);
    l.area.logarithmic = options->log_scale;
    l.area.vertical = options->log_scale ? axis_logarithmic(low, high)
                                         : axis_linear(low, high, 6, 1);
    l.horizontal = axis_linear(0, longest > 1 ? (double)(longest - 1) : 1, 8, 0);
    for (int64_t i = 0; i < count; i++) {
        l.legend_width =
            fmax(l.legend_width, canvas_text_width(c, plot_text_font, curves[i].label));
    }
    plot_axis_width(c, &l.horizontal);
    canvas_text_width(c, plot_text_font, options->x_title);
    canvas_text_width(c, plot_text_font, options->y_title);
    const double line = plot_text_font.size * 1.5;
    l.area.x = MARGIN + (options->y_title == NULL ? 0 : line) +
               plot_axis_width(c, &l.area.vertical) + 6;
    l.area.y = MARGIN + (options->title == NULL ? 0 : plot_title_font.size * 2);
    const double legend = l.legend_width > 0 ? l.legend_width + 36 : 0;
    l.width = fmax(l.area.x + l.area.width + legend,
                   MARGIN + canvas_text_width(c, plot_title_font, options->title)) +
              MARGIN;
    l.height = l.area.y + l.area.height + 5 + plot_label_font.size * 1.25 +
               (options->x_title == NULL ? 0 : line) + MARGIN;
    return l;
}

static void find_range(const figure_curve *curves, int64_t count, double *low, double *high,
                       int64_t *longest)
{
    *low = INFINITY;
    *high = -INFINITY;
    *longest = 0;
    for (int64_t i = 0; i < count; i++) {
        *longest = curves[i].count > *longest ? curves[i].count : *longest;
        for (int64_t k = 0; k < curves[i].count; k++) {
            if (isfinite(curves[i].values[k])) {
                *low = fmin(*low, curves[i].values[k]);
                *high = fmax(*high, curves[i].values[k]);
            }
        }
    }
    if (*low > *high) {
        *low = 0.1;
        *high = 1;
    }
}

// ---- drawing ------------------------------------------------------------------------------------

static double x_of(const curve_layout *l, double step)
{
    return l->area.x + l->area.width * step / l->horizontal.high;
}

static void draw_axes(canvas *c, const curve_layout *l, const figure_curve_options *options)
{
    const double bottom = l->area.y + l->area.height;
    canvas_text(c, plot_title_font, plot_ink, ALIGN_LEFT, MARGIN, MARGIN + plot_title_font.size / 2,
                options->title);
    plot_area_draw(c, &l->area, true);
    for (int i = 0; i < l->horizontal.ticks; i++) {
        const double x = x_of(l, l->horizontal.at[i]);
        canvas_line(c, plot_frame, 0.8, x, bottom, x, bottom + 3);
        canvas_text(c, plot_label_font, plot_ink, ALIGN_CENTRE, x,
                    bottom + 5 + plot_label_font.size * 0.6, l->horizontal.labels[i]);
    }
    canvas_text(c, plot_text_font, plot_ink, ALIGN_CENTRE, l->area.x + l->area.width / 2,
                bottom + 5 + plot_label_font.size * 1.25 + plot_text_font.size * 0.75,
                options->x_title);
    canvas_turned_text(c, plot_text_font, plot_ink, ALIGN_CENTRE, MARGIN + plot_text_font.size / 2,
                       l->area.y + l->area.height / 2, -90, options->y_title);
}

static void draw_curve(canvas *c, const curve_layout *l, const figure_curve *curve, int index)
{
    if (canvas_failed(c)) {
        return;
    }
    const colour ink = colour_of_curve(index);
    bool drawing = false;
    for (int64_t k = 0; k < curve->count; k++) {
        if (!isfinite(curve->values[k])) {
            drawing = false;
            continue;
        }
        const double x = x_of(l, (double)k);
        const double y = plot_area_y(&l->area, curve->values[k]);
        if (drawing) {
            cairo_line_to(c->cairo, x, y);
        } else {
            cairo_move_to(c->cairo, x, y);
            cairo_line_to(c->cairo, x, y); // a value between two gaps is a dot
        }
        drawing = true;
    }
    cairo_set_source_rgb(c->cairo, ink.red, ink.green, ink.blue);
    cairo_set_line_width(c->cairo, 1.6);
    cairo_set_line_cap(c->cairo, CAIRO_LINE_CAP_ROUND);
    cairo_set_line_join(c->cairo, CAIRO_LINE_JOIN_ROUND);
    cairo_stroke(c->cairo);
}

static void draw_legend(canvas *c, const curve_layout *l, const figure_curve *curves, int64_t count)
{
    if (l->legend_width == 0) {
        return;
    }
    const double x = l->area.x + l->area.width + 10;
    for (int64_t i = 0; i < count; i++) {
        const double y = l->area.y + LEGEND_LINE * ((double)i + 0.5);
        canvas_line(c, colour_of_curve((int)i), 2, x, y, x + 18, y);
        canvas_text(c, plot_text_font, plot_ink, ALIGN_LEFT, x + 24, y, curves[i].label);
    }
}
