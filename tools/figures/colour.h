// colour.h: the colours of the figures.
#ifndef ATTN_TOOLS_FIGURES_COLOUR_H
#define ATTN_TOOLS_FIGURES_COLOUR_H

// sRGB, each in [0, 1].
typedef struct colour {
    double red, green, blue;
} colour;

// The map of values: t = 0 is a pale yellow, t = 1 a dark blue, by way of green. It is a curve through
// the OKLab space that is walked at a constant speed, so equal steps of t look equal; lightness falls
// all the way, so that it can be read without colour vision and on grey paper.
enum { COLOUR_STEPS = 256 };
typedef struct colour_map {
    colour at[COLOUR_STEPS];
} colour_map;

colour_map colour_map_make(void);

// The colour of t, which is clamped to [0, 1]; NaN counts as 0.
colour colour_map_at(const colour_map *map, double t);

// Black or white, whichever is easier to read on it.
colour colour_of_text_on(colour background);

// Eight colours that stay apart for colour-blind readers (Okabe and Ito, 2008); index mod 8.
colour colour_of_curve(int index);

#endif
