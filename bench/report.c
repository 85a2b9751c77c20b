#include <stdio.h>
#include <string.h>

#include "case.h"

static double work_of(const struct result *result, const struct contender *c)
{
    if (result->bytes > 0) {
        return result->bytes;
    }
    const bool both = strcmp(c->what, "forward+backward") == 0;
    return result->operations + (both ? result->backward : 0);
}

static void line_of_json(const struct result *result, const struct contender *c, double limit,
                         double tile)
{
    const double work = work_of(result, c);
    printf(
        "{\"case\": \"%s\", \"what\": \"%s\", \"by\": \"%s\", \"threads\": %d, "
        "\"samples\": %d, \"median_s\": %.9g, \"best_s\": %.9g, \"low_s\": %.9g, \"high_s\": %.9g, "
        "\"limit\": \"%s\", \"limit_per_s\": %.5g, \"share\": %.4f, \"best_share\": %.4f, "
        "\"tile_share\": %.4f, \"workspace_bytes\": %.0f}\n",
        result->name, c->what, c->name, c->threads, c->samples, c->median, c->best, c->low, c->high,
        result->bytes > 0 ? "read bandwidth" : "fma peak", limit, work / c->median / limit,
        work / c->best / limit, tile, result->workspace);
}

void report_head(const struct bench *bench)
{
    if (bench->json) {
        return;
    }
    printf(
        "tier %s; operations: 4 B H Tq Tk D, half of it when causal, 2.5 times that for the "
        "backward; 2 M N K for a product\n"
        "share: of the case's own limit, timed in the same turns, by the median call; best: by the "
        "fastest call;\ntile: the tile alone, operands in cache; softmax: share of the time\n\n",
        attn_tier_name(attn_context_tier(bench->contexts[1])));
    printf("%-34s %-17s %-9s %2s %12s %13s %8s %7s %5s %7s %8s %10s\n", "case", "what", "by", "T",
           "median ms", "quartiles", "share", "best", "calls", "tile", "softmax", "scratch");
}

static void line_of_limit(const struct result *result, const struct contender *c)
{
    printf("%-34s %-17s %-9s %2d %7.1f %s\n", result->name, c->what, c->name, c->threads,
           c->worth / c->low / 1e9, result->bytes > 0 ? "GB/s" : "GFLOP/s");
}

static void line_of_text(const struct result *result, const struct contender *c, double limit,
                         double tile, double softmax)
{
    const double work = work_of(result, c);
    printf("%-34s %-17s %-9s %2d %12.5g %+5.1f/%+5.1f%% %6.1f %% %5.1f %% %5d", result->name,
           c->what, c->name, c->threads, 1e3 * c->median, 100 * (c->low / c->median - 1),
           100 * (c->high / c->median - 1), 100 * work / c->median / limit,
           100 * work / c->best / limit, c->samples);
    const bool own = strcmp(c->name, "attn") == 0;
    if (own && result->bytes == 0) {
        printf(" %5.1f %%", 100 * tile);
    }
    if (own && result->softmax_scores > 0 && softmax > 0 && strcmp(c->what, "forward") == 0) {
        printf(" %6.1f %%", 100 * result->softmax_scores * softmax / c->threads / c->median);
    } else if (own) {
        printf(" %8s", "");
    }
    if (own) {
        printf(" %6.0f KiB", result->workspace / 1024);
    }
    putchar('\n');
}

void report_case(const struct bench *bench, const struct result *result,
                 const struct contender *contenders, int count)
{
    const double tile = machine_tile_share(contenders, count);
    const double softmax = machine_softmax_seconds(contenders, count);
    for (int i = 0; i < count; i++) {
        const struct contender *const c = &contenders[i];
        const double limit = machine_limit(contenders, count, c->threads);
        if (c->worth > 0) {
            if (!bench->json && c->state != (const void *)bench->machine.alone) {
                line_of_limit(result, c);
            }
        } else if (bench->json) {
            line_of_json(result, c, limit, tile);
        } else {
            line_of_text(result, c, limit, tile, softmax);
        }
    }
    fflush(stdout);
}
