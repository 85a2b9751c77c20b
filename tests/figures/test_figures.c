// The figures' colours and axes by their own rules, and what the interface refuses.
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "axis.h"
#include "colour.h"
#include "figures.h"
#include "status.h"

// ---- colours ------------------------------------------------------------------------------------

typedef struct lab {
    double lightness, a, b;
} lab;

static double decode(double encoded)
{
    return encoded <= 0.04045 ? encoded / 12.92 : pow((encoded + 0.055) / 1.055, 2.4);
}

// Ottosson's matrices from linear sRGB to OKLab: the inverse of what the map uses.
static lab to_lab(colour c)
{
    const double r = decode(c.red), g = decode(c.green), b = decode(c.blue);
    const double l = cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const double m = cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const double s = cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return (lab){0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
                 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
                 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

static void test_map_is_even_and_darkens(void **state)
{
    (void)state;
    const colour_map map = colour_map_make();
    double smallest = INFINITY, largest = 0;
    for (int i = 1; i < COLOUR_STEPS; i++) {
        const lab before = to_lab(map.at[i - 1]), after = to_lab(map.at[i]);
        assert_true(after.lightness < before.lightness);
        const double step = hypot(hypot(after.lightness - before.lightness, after.a - before.a),
                                  after.b - before.b);
        smallest = fmin(smallest, step);
        largest = fmax(largest, step);
    }
    assert_true(largest / smallest < 1.02);
    // Nearly the whole range of lightness is used.
    assert_true(to_lab(map.at[0]).lightness > 0.95);
    assert_true(to_lab(map.at[COLOUR_STEPS - 1]).lightness < 0.35);
}

static void test_map_is_clamped(void **state)
{
    (void)state;
    const colour_map map = colour_map_make();
    const colour low = colour_map_at(&map, -1), zero = colour_map_at(&map, NAN);
    const colour high = colour_map_at(&map, 2);
    assert_memory_equal(&low, &map.at[0], sizeof(colour));
    assert_memory_equal(&zero, &map.at[0], sizeof(colour));
    assert_memory_equal(&high, &map.at[COLOUR_STEPS - 1], sizeof(colour));
}

// Contrast as WCAG 2 counts it: 4.5 is its bound for text.
static void test_text_can_be_read_on_every_colour(void **state)
{
    (void)state;
    const colour_map map = colour_map_make();
    for (int i = 0; i < COLOUR_STEPS; i++) {
        const colour text = colour_of_text_on(map.at[i]);
        double luminance[2];
        const colour both[2] = {text, map.at[i]};
        for (int k = 0; k < 2; k++) {
            luminance[k] = 0.05 + 0.2126 * decode(both[k].red) + 0.7152 * decode(both[k].green) +
                           0.0722 * decode(both[k].blue);
        }
        const double contrast = fmax(luminance[0], luminance[1]) / fmin(luminance[0], luminance[1]);
        assert_true(contrast > 4);
    }
}

// ---- axes ---------------------------------------------------------------------------------------

static void check_axis(const axis *a, int ticks, const char *const *labels)
{
    assert_int_equal(a->ticks, ticks);
    for (int i = 0; i < ticks; i++) {
        assert_string_equal(a->labels[i], labels[i]);
        assert_true(a->at[i] >= a->low - 1e-9 && a->at[i] <= a->high + 1e-9);
    }
}

static void test_linear_axes(void **state)
{
    (void)state;
    axis a = axis_linear(0, 1, 5, 0);
    check_axis(&a, 6, (const char *const[]){"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"});
    a = axis_linear(0, 0.405, 5, 0);
    check_axis(&a, 5, (const char *const[]){"0.0", "0.1", "0.2", "0.3", "0.4"});
    assert_true(a.high == 0.405);
    a = axis_linear(-3, 17, 5, 1);
    check_axis(&a, 6, (const char *const[]){"-5", "0", "5", "10", "15", "20"});
    assert_true(a.low == -5 && a.high == 20);
    a = axis_linear(1000000, 3000000, 2, 0);
    check_axis(&a, 3, (const char *const[]){"1e+06", "2e+06", "3e+06"});
}

static void test_axes_without_width(void **state)
{
    (void)state;
    const struct {
        double low, high;
    } cases[] = {{2, 2}, {0, 0}, {NAN, 1}, {-INFINITY, INFINITY}, {1e300, 1e300}, {3, 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const axis a = axis_linear(cases[i].low, cases[i].high, 5, 1);
        assert_true(isfinite(a.low) && isfinite(a.high) && a.low <= a.high);
        assert_true(a.ticks >= 0 && a.ticks <= AXIS_MOST_TICKS);
    }
}

static void test_logarithmic_axes(void **state)
{
    (void)state;
    axis a = axis_logarithmic(0.03, 2.2);
    check_axis(&a, 6, (const char *const[]){"0.05", "0.1", "0.2", "0.5", "1", "2"});
    a = axis_logarithmic(1e-12, 1e12);
    assert_true(a.ticks >= 4 && a.ticks <= 10);
    a = axis_logarithmic(5, 5);
    assert_true(a.low < 5 && a.high > 5 && a.ticks > 0);
}

// ---- refusals -----------------------------------------------------------------------------------

static void test_refusals(void **state)
{
    (void)state;
    float values[4] = {0, 1, 2, 3};
    const int64_t square[] = {2, 2}, line[] = {4}, empty[] = {0, 4};
    figure_heat_map map = {.values = attn_tensor_wrap(values, ATTN_F32, 2, square)};
    attn_error error;
    ASSERT_FAILS(ATTN_ERR_NOT_SUPPORTED, "figure: x.gif: the name must end in .png, .svg or .pdf",
                 figure_heat_maps(&map, 1, NULL, "x.gif", &error));
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT, "figure: no heat map was given",
                 figure_heat_maps(NULL, 0, NULL, "x.png", &error));
    map.values = attn_tensor_wrap(values, ATTN_F32, 1, line);
    ASSERT_FAILS(ATTN_ERR_SHAPE, "figure: a heat map needs rows and columns, not [4]",
                 figure_heat_maps(&map, 1, NULL, "x.png", &error));
    map.values = attn_tensor_wrap(NULL, ATTN_F32, 2, empty);
    ASSERT_FAILS(ATTN_ERR_SHAPE, "figure: a heat map needs rows and columns, not [0,4]",
                 figure_heat_maps(&map, 1, NULL, "x.png", &error));
    map.values = attn_tensor_wrap(values, ATTN_F32, 2, square);
    ASSERT_FAILS(ATTN_ERR_IO, "absent/x.png: No such file or directory",
                 figure_heat_maps(&map, 1, NULL, "absent/x.png", &error));
    map.title = "\xff";
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "figure: a text cannot be drawn: input string not valid UTF-8",
                 figure_heat_maps(&map, 1, NULL, "x.png", &error));

    double bars[2] = {1, -1};
    const figure_bars panel = {.values = bars, .count = 2};
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "figure: bar 1 of panel 0 is -1; bars start at 0 and are finite",
                 figure_bar_panels(&panel, 1, NULL, NULL, "x.png", &error));
    const figure_curve curve = {.values = bars, .count = 2};
    const figure_curve_options options = {.log_scale = true};
    ASSERT_FAILS(ATTN_ERR_INVALID_ARGUMENT,
                 "figure: value 1 of curve 0 is -1; a logarithmic axis needs values above 0",
                 figure_curves(&curve, 1, &options, "x.png", &error));
    assert_int_not_equal(access("x.png", F_OK), 0);
}

// Numbers that are not numbers, one value only, nothing finite: still a picture.
static void test_unusual_values_are_drawn(void **state)
{
    (void)state;
    char path[] = "/tmp/attn-figure.XXXXXX.png";
    const int descriptor = mkstemps(path, 4);
    assert_true(descriptor >= 0);
    close(descriptor);
    const float cases[][2] = {
        {NAN, NAN}, {INFINITY, 1}, {-INFINITY, INFINITY}, {0, 0}, {3e38F, -3e38F}};
    const int64_t shape[] = {1, 2};
    attn_error error;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const figure_heat_map map = {
            .values = attn_tensor_wrap_const(cases[i], ATTN_F32, 2, shape)};
        ASSERT_OK(figure_heat_maps(&map, 1, NULL, path, &error));
    }
    const double gaps[] = {1, NAN, 2, INFINITY, 3};
    const figure_curve curves[] = {{"gaps", gaps, 5}, {"none", NULL, 0}};
    ASSERT_OK(figure_curves(curves, 2, NULL, path, &error));
    const double zeros[] = {0, 0};
    const figure_bars panel = {.values = zeros, .count = 2};
    ASSERT_OK(figure_bar_panels(&panel, 1, NULL, NULL, path, &error));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_is_even_and_darkens),
        cmocka_unit_test(test_map_is_clamped),
        cmocka_unit_test(test_text_can_be_read_on_every_colour),
        cmocka_unit_test(test_linear_axes),
        cmocka_unit_test(test_axes_without_width),
        cmocka_unit_test(test_logarithmic_axes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_unusual_values_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
