// axis.h: round numbers along an axis.
#ifndef ATTN_TOOLS_FIGURES_AXIS_H
#define ATTN_TOOLS_FIGURES_AXIS_H

enum { AXIS_MOST_TICKS = 16, AXIS_LABEL_SIZE = 32 };

typedef struct axis {
    double low, high; // the ends of the axis
    int ticks;
    double at[AXIS_MOST_TICKS];
    char labels[AXIS_MOST_TICKS][AXIS_LABEL_SIZE];
} axis;

// An axis from low to high with about `wanted` ticks at 1, 2 or 5 times a power of ten. With `widen`
// the ends move out to the next tick; else they stay. low > high is turned round; equal or not finite
// ends become an interval of width 1.
axis axis_linear(double low, double high, int wanted, int widen);

// A logarithmic axis, low > 0: ticks at the powers of ten, and at 2 and 5 times them where there
// would be few.
axis axis_logarithmic(double low, double high);

#endif
