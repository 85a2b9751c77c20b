#include "colour.h"

#include <math.h>

// A point of OKLab (Ottosson, 2020): lightness, green to red, blue to yellow.
typedef struct lab {
    double lightness, a, b;
} lab;

static const double pi = 3.14159265358979323846;

// The curve before its speed is evened out; s in [0, 1].
static lab curve_at(double s)
{
    return (lab){
        .lightness = 0.98 + (0.30 - 0.98) * s,
        .a = -0.012 * (1 - s) - 0.06 * sin(pi * s),
        .b = 0.045 + (-0.12 - 0.045) * s,
    };
}

static double distance(lab from, lab to)
{
    return hypot(hypot(to.lightness - from.lightness, to.a - from.a), to.b - from.b);
}

static double clamp(double x)
{
    return !(x > 0) ? 0 : x > 1 ? 1 : x;
}

// Linear light to sRGB's own scale (IEC 61966-2-1).
static double encode(double linear)
{
    linear = clamp(linear);
    return linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055;
}

static double decode(double encoded)
{
    return encoded <= 0.04045 ? encoded / 12.92 : pow((encoded + 0.055) / 1.055, 2.4);
}

static colour to_srgb(lab p)
{
    const double l = pow(p.lightness + 0.3963377774 * p.a + 0.2158037573 * p.b, 3);
    const double m = pow(p.lightness - 0.1055613458 * p.a - 0.0638541728 * p.b, 3);
    const double s = pow(p.lightness - 0.0894841775 * p.a - 1.2914855480 * p.b, 3);
    return (colour){
        .red = encode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
        .green = encode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
        .blue = encode(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s),
    };
}

// Walks the curve in fine steps and takes a colour whenever another equal share of its length lies
// behind.
colour_map colour_map_make(void)
{
    enum { FINE = 4096 };
    double length = 0;
    for (int i = 0; i < FINE; i++) {
        length += distance(curve_at((double)i / FINE), curve_at((double)(i + 1) / FINE));
    }
    colour_map map;
    double behind = 0;
    int taken = 0;
    for (int i = 0; i < FINE; i++) {
        const double step = distance(curve_at((double)i / FINE), curve_at((double)(i + 1) / FINE));
        while (taken < COLOUR_STEPS - 1 && taken * length / (COLOUR_STEPS - 1) <= behind + step) {
            const double part = (taken * length / (COLOUR_STEPS - 1) - behind) / step;
            map.at[taken++] = to_srgb(curve_at((i + part) / FINE));
        }
        behind += step;
    }
    map.at[COLOUR_STEPS - 1] = to_srgb(curve_at(1));
    return map;
}

colour colour_map_at(const colour_map *map, double t)
{
    return map->at[(int)(clamp(t) * (COLOUR_STEPS - 1) + 0.5)];
}

colour colour_of_text_on(colour background)
{
    const double luminance = 0.2126 * decode(background.red) + 0.7152 * decode(background.green) +
                             0.0722 * decode(background.blue);
    // Equal contrast ratios (WCAG 2) against black and white.
    const double level = luminance > sqrt(1.05 * 0.05) - 0.05 ? 0.05 : 1;
    return (colour){level, level, level};
}

colour colour_of_curve(int index)
{
    static const colour colours[8] = {
        {0.000, 0.447, 0.698}, {0.835, 0.369, 0.000}, {0.000, 0.620, 0.451}, {0.800, 0.475, 0.655},
        {0.902, 0.624, 0.000}, {0.337, 0.706, 0.914}, {0.400, 0.400, 0.400}, {0.941, 0.894, 0.259},
    };
    return colours[index % 8];
}
