// canvas.h: one drawing that becomes PNG, SVG or PDF.
//
// A figure is drawn in two passes over one canvas: first its texts are measured, which also finds
// the fonts; then the output of the right size is begun and drawn on. Units are points (1/72 inch);
// PNG has two pixels per point. Errors are sticky: after the first one nothing is drawn, and
// canvas_finish reports it.
#ifndef ATTN_TOOLS_FIGURES_CANVAS_H
#define ATTN_TOOLS_FIGURES_CANVAS_H

#include <cairo.h>
#include <stdbool.h>
#include <stddef.h>

#include "attn/status.h"
#include "colour.h"

typedef struct canvas {
    cairo_t *cairo; // of the measuring surface, then of the output
    cairo_surface_t *surface;
    const char *path;
    int format;
    unsigned char *bytes; // of the finished output
    size_t size, capacity;
    attn_error error; // status ATTN_OK while all is well
} canvas;

typedef struct font {
    double size;
    bool bold;
} font;

typedef enum align { ALIGN_LEFT = 0, ALIGN_CENTRE, ALIGN_RIGHT } align;

// Opens for measuring; the path's ending decides the format.
void canvas_open(canvas *c, const char *path);

// Begins the output: a white page.
void canvas_begin(canvas *c, double width, double height);

// Ends it: writes the file where all went well. Returns what went wrong otherwise.
attn_status canvas_finish(canvas *c, attn_error *error);

void canvas_fail(canvas *c, attn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool canvas_failed(const canvas *c);

// ---- texts --------------------------------------------------------------------------------------

// NULL is as wide as nothing, and draws nothing.
double canvas_text_width(canvas *c, font f, const char *text);

// `y` is the middle of the text's line; the anchor is where `align` puts it.
void canvas_text(canvas *c, font f, colour ink, align a, double x, double y, const char *text);

// The same turned by `degrees` clockwise about the anchor.
void canvas_turned_text(canvas *c, font f, colour ink, align a, double x, double y, double degrees,
                        const char *text);

// ---- shapes -------------------------------------------------------------------------------------

void canvas_fill(canvas *c, colour ink, double x, double y, double width, double height);
void canvas_frame(canvas *c, colour ink, double line, double x, double y, double width,
                  double height);
void canvas_line(canvas *c, colour ink, double line, double x0, double y0, double x1, double y1);

#endif
