// plot_area.h: the frame with a vertical axis in which bars and curves are drawn.
#ifndef ATTN_TOOLS_FIGURES_PLOT_AREA_H
#define ATTN_TOOLS_FIGURES_PLOT_AREA_H

#include <stdbool.h>

#include "axis.h"
#include "canvas.h"

typedef struct plot_area {
    double x, y, width, height;
    axis vertical;
    bool logarithmic;
} plot_area;

static const colour plot_ink = {0.05, 0.05, 0.05};
static const colour plot_grid = {0.85, 0.85, 0.85};
static const colour plot_frame = {0.45, 0.45, 0.45};
static const font plot_title_font = {13, true};
static const font plot_subtitle_font = {11, true};
static const font plot_text_font = {11, false};
static const font plot_label_font = {10, false};

// The widest label of an axis.
double plot_axis_width(canvas *c, const axis *a);

// Grid lines and frame, and with `labels` the axis's numbers to the left.
void plot_area_draw(canvas *c, const plot_area *area, bool labels);

// The height at which a value stands.
double plot_area_y(const plot_area *area, double value);

#endif
