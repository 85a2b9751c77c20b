#include "plot_area.h"

#include <math.h>

double plot_axis_width(canvas *c, const axis *a)
{
    double widest = 0;
    for (int i = 0; i < a->ticks; i++) {
        widest = fmax(widest, canvas_text_width(c, plot_label_font, a->labels[i]));
    }
    return widest;
}

void plot_area_draw(canvas *c, const plot_area *area, bool labels)
{
    for (int i = 0; i < area->vertical.ticks; i++) {
        const double y = plot_area_y(area, area->vertical.at[i]);
        canvas_line(c, plot_grid, 0.6, area->x, y, area->x + area->width, y);
        if (labels) {
            canvas_text(c, plot_label_font, plot_ink, ALIGN_RIGHT, area->x - 5, y,
                        area->vertical.labels[i]);
        }
    }
    canvas_line(c, plot_frame, 0.8, area->x, area->y, area->x, area->y + area->height);
    canvas_line(c, plot_frame, 0.8, area->x, area->y + area->height, area->x + area->width,
                area->y + area->height);
}

double plot_area_y(const plot_area *area, double value)
{
    const axis *a = &area->vertical;
    const double share = area->logarithmic
                             ? (log(value) - log(a->low)) / (log(a->high) - log(a->low))
                             : (value - a->low) / (a->high - a->low);
    return area->y + area->height * (1 - share);
}
