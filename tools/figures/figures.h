// figures.h: pictures of attention, from one drawing to PNG, SVG or PDF.
//
// The ending of the path chooses the format: .png, .svg or .pdf. A file appears whole or not at all.
// Colours come from one map, even to the eye and safe for colour-blind readers: light for the low
// end, dark for the high end. Text is UTF-8. Where no installed font has a character, nothing is
// drawn and the call fails with ATTN_ERR_NOT_SUPPORTED and a text that names the character and, for
// Chinese, Japanese and Korean, the package to install (fonts-noto-cjk); so a caller can show that
// text and draw again with other labels.
//
// Every function: errors INVALID_ARGUMENT, SHAPE, NOT_SUPPORTED (a character without a font, an
// unknown ending), OUT_OF_MEMORY, IO. Nothing is kept after the call.
#ifndef ATTN_TOOLS_FIGURES_H
#define ATTN_TOOLS_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "attn/status.h"
#include "attn/tensor.h"

// ---- heat maps ----------------------------------------------------------------------------------

// One map of values (rows, columns). NaN cells are hatched: they hold nothing (a masked weight).
typedef struct figure_heat_map {
    const char *title;                // above the map, or NULL
    attn_tensor values;               // (rows, columns), any floating dtype and strides
    const char *const *row_labels;    // `rows` texts, or NULL: numbers where they fit
    const char *const *column_labels; // `columns` texts, or NULL
} figure_heat_map;

typedef struct figure_heat_map_options {
    const char *title;        // of the whole figure, or NULL
    const char *row_title;    // left of every map, such as "query", or NULL
    const char *column_title; // below every map, such as "key", or NULL
    double low, high;         // the colour bar's ends; low == high (default): from the values
    int32_t digits;           // decimals in the cells where they fit; -1: none. Default 2
    int32_t columns;          // maps side by side; 0 (default): as square as possible
} figure_heat_map_options;

void figure_heat_map_options_init(figure_heat_map_options *options);

// `count` maps in a grid with one colour bar. options NULL: the defaults.
attn_status figure_heat_maps(const figure_heat_map *maps, int64_t count,
                             const figure_heat_map_options *options, const char *path,
                             attn_error *error);

// ---- bars ---------------------------------------------------------------------------------------

// One distribution: `count` values >= 0, drawn as bars from 0.
typedef struct figure_bars {
    const char *title; // above the panel, or NULL
    const double *values;
    int64_t count;
    const char *const *labels; // below the bars, or NULL: numbers
} figure_bars;

// `panels` distributions side by side over one axis; the value stands on a bar where it fits. All
// texts may be NULL.
attn_status figure_bar_panels(const figure_bars *panels, int64_t count, const char *title,
                              const char *value_title, const char *path, attn_error *error);

// ---- curves -------------------------------------------------------------------------------------

// One line through (0, values[0]), (1, values[1]), ...; values that are not finite break it.
typedef struct figure_curve {
    const char *label; // in the legend, or NULL
    const double *values;
    int64_t count;
} figure_curve;

typedef struct figure_curve_options {
    const char *title;   // or NULL
    const char *x_title; // such as "step", or NULL
    const char *y_title; // such as "loss", or NULL
    bool log_scale;      // logarithmic y axis; all finite values must then be > 0
} figure_curve_options;

// Up to 8 curves in one diagram. options NULL: no texts, linear.
attn_status figure_curves(const figure_curve *curves, int64_t count,
                          const figure_curve_options *options, const char *path, attn_error *error);

#endif
