#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "canvas.h"
#include "figures.h"
#include "plot_area.h"

enum { MARGIN = 14, GAP = 20, PANEL_HEIGHT = 180 };

// Sizes that all panels share.
typedef struct bar_layout {
    plot_area area;     // of the first panel
    double bar;         // room for one bar
    double panel_width; // with the gap to the next
    double value_size;  // font size of the numbers on the bars; 0: none
    int64_t label_step;
    double label_height; // room below the bars
    bool turned_labels;
    double width, height;
} bar_layout;

static void check_panels(canvas *c, const figure_bars *panels, int64_t count);
static bar_layout measure(canvas *c, const figure_bars *panels, int64_t count, const char *title,
                          const char *value_title);
static void measure_labels(canvas *c, bar_layout *l, const figure_bars *panels, int64_t count);
static void measure_values(canvas *c, bar_layout *l, const figure_bars *panels, int64_t count);
static void draw_panel(canvas *c, const bar_layout *l, const figure_bars *panel, int64_t index);
static const char *label_of(const figure_bars *panel, int64_t index, char buffer[24]);

attn_status figure_bar_panels(const figure_bars *panels, int64_t count, const char *title,
                              const char *value_title, const char *path, attn_error *error)
{
    canvas c;
    canvas_open(&c, path);
    check_panels(&c, panels, count);
    if (!canvas_failed(&c)) {
        const bar_layout l = measure(&c, panels, count, title, value_title);
        canvas_begin(&c, l.width, l.height);
        canvas_text(&c, plot_title_font, plot_ink, ALIGN_LEFT, MARGIN,
                    MARGIN + plot_title_font.size / 2, title);
        canvas_turned_text(&c, plot_text_font, plot_ink, ALIGN_CENTRE,
                           MARGIN + plot_text_font.size / 2, l.area.y + l.area.height / 2, -90,
                           value_title);
        for (int64_t i = 0; i < count; i++) {
            draw_panel(&c, &l, &panels[i], i);
        }
    }
    return canvas_finish(&c, error);
}

static void check_panels(canvas *c, const figure_bars *panels, int64_t count)
{
    if (panels == NULL || count <= 0) {
        canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT, "figure: no bars were given");
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (panels[i].values == NULL || panels[i].count <= 0) {
            canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT, "figure: panel %" PRId64 " has no bars", i);
            return;
        }
        for (int64_t k = 0; k < panels[i].count; k++) {
            if (!(panels[i].values[k] >= 0 && isfinite(panels[i].values[k]))) {
                canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT,
                            "figure: bar %" PRId64 " of panel %" PRId64
                            " is %g; bars start at 0 and are finite",
                            k, i, panels[i].values[k]);
            }
        }
    }
}

// ---- sizes --------------------------------------------------------------------------------------

static bar_layout measure(canvas *c, const figure_bars *panels, int64_t count, const char *title,
                          const char *value_title)
{
    bar_layout l = {0};
    double highest = 0;
    double titles = 0;
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        most = panels[i].count > most ? panels[i].count : most;
        titles = fmax(titles, canvas_text_width(c, plot_subtitle_font, panels[i].title));
        for (int64_t k = 0; k < panels[i].count; k++) {
            highest = fmax(highest, panels[i].values[k]);
        }
    }
    l.area.vertical = axis_linear(0, highest > 0 ? highest : 1, 5, 1);
    l.bar = fmin(fmax(240 / (double)most, 2), 40);
    measure_labels(c, &l, panels, count);
    measure_values(c, &l, panels, count);

    const double line = plot_text_font.size * 1.5;
    l.area.x = MARGIN + (value_title == NULL ? 0 : line) + plot_axis_width(c, &l.area.vertical) + 6;
    l.area.y = MARGIN + (title == NULL ? 0 : plot_title_font.size * 2) + (titles > 0 ? line : 0) +
               plot_label_font.size;
    l.area.width = fmax(l.bar * (double)most, titles);
    l.area.height = PANEL_HEIGHT;
    l.panel_width = l.area.width + GAP;
    canvas_text_width(c, plot_text_font, value_title);
    l.width = fmax(l.area.x + (double)count * l.panel_width - GAP,
                   MARGIN + canvas_text_width(c, plot_title_font, title)) +
              MARGIN;
    l.height = l.area.y + l.area.height + 5 + l.label_height + MARGIN;
    return l;
}

static void measure_labels(canvas *c, bar_layout *l, const figure_bars *panels, int64_t count)
{
    const double line = plot_label_font.size * 1.25;
    double widest = 0;
    char buffer[24];
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < panels[i].count; k++) {
            widest = fmax(widest,
                          canvas_text_width(c, plot_label_font, label_of(&panels[i], k, buffer)));
        }
    }
    // Numbers may be left out; the caller's own labels stand upright first.
    l->turned_labels = widest + 3 > l->bar && panels[0].labels != NULL;
    const double needed = l->turned_labels ? line : widest + 3;
    l->label_step = needed <= l->bar ? 1 : (int64_t)ceil(needed / l->bar);
    l->label_height = l->turned_labels ? widest : line;
}

// Two decimals for weights and their like.
static void value_text(const bar_layout *l, double value, char text[48])
{
    snprintf(text, 48, l->area.vertical.high <= 10 ? "%.2f" : "%.3g", value);
}

static void measure_values(canvas *c, bar_layout *l, const figure_bars *panels, int64_t count)
{
    const font unit = {10, false};
    double widest = 0;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < panels[i].count; k++) {
            char text[48];
            value_text(l, panels[i].values[k], text);
            widest = fmax(widest, canvas_text_width(c, unit, text));
        }
    }
    const double fitting = widest > 0 ? 10 * (l->bar - 2) / widest : 0;
    l->value_size = fitting < 5.5 ? 0 : fmin(fitting, 9);
}

// ---- drawing ------------------------------------------------------------------------------------

static void draw_panel(canvas *c, const bar_layout *l, const figure_bars *panel, int64_t index)
{
    plot_area area = l->area;
    area.x += (double)index * l->panel_width;
    plot_area_draw(c, &area, index == 0);
    const double bottom = area.y + area.height;
    canvas_text(c, plot_subtitle_font, plot_ink, ALIGN_CENTRE, area.x + area.width / 2,
                area.y - plot_label_font.size - plot_subtitle_font.size * 0.75, panel->title);
    const double room = area.width / (double)panel->count;
    const double thickness = fmin(l->bar, room) * 0.78;
    for (int64_t k = 0; k < panel->count; k++) {
        const double middle = area.x + room * ((double)k + 0.5);
        const double top = plot_area_y(&area, panel->values[k]);
        canvas_fill(c, colour_of_curve(0), middle - thickness / 2, top, thickness, bottom - top);
        if (l->value_size > 0) {
            char text[48];
            value_text(l, panel->values[k], text);
            canvas_text(c, (font){l->value_size, false}, plot_ink, ALIGN_CENTRE, middle,
                        top - l->value_size * 0.7, text);
        }
        if (k % l->label_step != 0) {
            continue;
        }
        char buffer[24];
        const char *label = label_of(panel, k, buffer);
        if (l->turned_labels) {
            canvas_turned_text(c, plot_label_font, plot_ink, ALIGN_RIGHT, middle, bottom + 5, -90,
                               label);
        } else {
            canvas_text(c, plot_label_font, plot_ink, ALIGN_CENTRE, middle,
                        bottom + 5 + plot_label_font.size * 0.6, label);
        }
    }
}

static const char *label_of(const figure_bars *panel, int64_t index, char buffer[24])
{
    if (panel->labels != NULL) {
        return panel->labels[index];
    }
    snprintf(buffer, 24, "%" PRId64, index);
    return buffer;
}
