// heat_map_layout.h: where everything of a figure of heat maps stands.
#ifndef ATTN_TOOLS_FIGURES_HEAT_MAP_LAYOUT_H
#define ATTN_TOOLS_FIGURES_HEAT_MAP_LAYOUT_H

#include <stdint.h>

#include "axis.h"
#include "canvas.h"
#include "figures.h"

// Sizes that all maps share, from the largest of them. Lengths in points.
typedef struct heat_map_layout {
    int64_t rows, columns;  // of the largest map
    int64_t across, down;   // maps in the grid
    double cell;            // side of a cell
    double value_size;      // font size of the numbers in the cells; 0: none
    int64_t label_step;     // every how many rows or columns a label fits
    double row_label_width; // room for them
    double column_label_height;
    bool turned_labels;           // the column labels stand upright
    double map_width, map_height; // one map with its labels and title
    double left, top;             // of the first map
    double bar_x, bar_y, bar_height;
    axis scale; // of the colour bar
    colour_map colours;
    double width, height; // of the figure
} heat_map_layout;

static const font heat_map_title_font = {13, true};
static const font heat_map_map_title_font = {11, true};
static const font heat_map_text_font = {11, false};
static const font heat_map_label_font = {10, false};

enum { HEAT_MAP_BAR_WIDTH = 12, HEAT_MAP_GAP = 8, HEAT_MAP_MARGIN = 14 };

// Measures every text, so that a missing font is found before anything is drawn.
heat_map_layout heat_map_measure(canvas *c, const figure_heat_map *maps, int64_t count,
                                 const figure_heat_map_options *options, double low, double high);

// The label of a row or column: the caller's, or its number in `buffer`.
const char *heat_map_label(const char *const *labels, int64_t index, char buffer[24]);

// The number that stands in a cell.
void heat_map_value(double value, int32_t digits, char buffer[48]);

#endif
