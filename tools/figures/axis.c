#include "axis.h"

#include <math.h>
#include <stdio.h>

static void add_tick(axis *a, double at, int decimals)
{
    if (a->ticks == AXIS_MOST_TICKS) {
        return;
    }
    a->at[a->ticks] = at;
    const double size = fabs(at);
    if (size != 0 && (size >= 1e6 || size < 1e-4)) {
        snprintf(a->labels[a->ticks], AXIS_LABEL_SIZE, "%g", at);
    } else {
        snprintf(a->labels[a->ticks], AXIS_LABEL_SIZE, "%.*f", decimals, at);
    }
    a->ticks++;
}

axis axis_linear(double low, double high, int wanted, int widen)
{
    axis a = {0};
    if (!isfinite(low) || !isfinite(high) || !isfinite(high - low)) {
        low = 0;
        high = 1;
    }
    if (low > high) {
        const double kept = low;
        low = high;
        high = kept;
    }
    // Closer together than the numbers around them can be told apart.
    if (high - low <= 1e-12 * fmax(fabs(low), fabs(high))) {
        const double room = fmax(0.5, 0.1 * fabs(low));
        low -= room;
        high += room;
    }
    const double rough = (high - low) / wanted;
    const double power = pow(10, floor(log10(rough)));
    const double lead = rough / power;
    const double step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
    const double slack = 1e-9 * step;
    if (widen) {
        low = floor((low + slack) / step) * step;
        high = ceil((high - slack) / step) * step;
    }
    a.low = low;
    a.high = high;
    const int decimals = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9);
    const double first = ceil((low - slack) / step);
    for (int i = 0; (first + i) * step <= high + slack && i < AXIS_MOST_TICKS; i++) {
        const double at = (first + i) * step;
        add_tick(&a, fabs(at) < slack ? 0 : at, decimals);
    }
    return a;
}

axis axis_logarithmic(double low, double high)
{
    static const double fine[] = {1, 2, 5};
    axis a = {.low = low, .high = high};
    if (high <= low * (1 + 1e-9)) {
        a.low = low / 2;
        a.high = high * 2;
    }
    const int first = (int)floor(log10(a.low) + 1e-9);
    const int last = (int)ceil(log10(a.high) - 1e-9);
    const int stride = 1 + (last - first) / 8;
    const int per_power = last - first <= 3 ? 3 : 1;
    for (int power = first; power <= last; power += stride) {
        for (int i = 0; i < per_power; i++) {
            const double at = fine[i] * pow(10, power);
            if (at >= a.low * (1 - 1e-9) && at <= a.high * (1 + 1e-9)) {
                add_tick(&a, at, power < 0 ? -power : 0);
            }
        }
    }
    return a;
}
