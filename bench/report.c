#include <stdio.h>
#include <string.h>

#include "case.h"

static void line_of_json(const struct bench *bench, const struct result *result,
                         const struct contender *c, double share)
{
    (void)bench;
    printf("{\"case\": \"%s\", \"what\": \"%s\", \"by\": \"%s\", \"threads\": %d, "
           "\"median_s\": %.9g, \"low_s\": %.9g, \"high_s\": %.9g, \"limit\": \"%s\", "
           "\"share\": %.4f, \"workspace_bytes\": %.0f}\n",
           result->name, c->what, c->name, c->threads, c->median, c->low, c->high,
           result->bytes > 0 ? "read bandwidth" : "fma peak", share, result->workspace);
}

// The backward counts 2.5 forwards: five products instead of two.
static double share_of_limit(const struct bench *bench, const struct result *result,
                             const struct contender *c, double seconds)
{
    if (result->bytes > 0) {
        return result->bytes / seconds / bench->machine.bandwidth[c->threads];
    }
    const double forwards = strcmp(c->what, "forward+backward") == 0 ? 3.5 : 1.0;
    return forwards * result->operations / seconds / bench->machine.fma_peak[c->threads];
}

void report_machine(const struct bench *bench)
{
    const struct machine *const m = &bench->machine;
    for (int t = 1; t <= m->threads; t++) {
        if (bench->json) {
            printf("{\"machine\": \"limits\", \"threads\": %d, \"tier\": \"%s\", "
                   "\"fma_peak\": %.4g, \"read_bandwidth\": %.4g}\n",
                   t, attn_tier_name(attn_context_tier(bench->contexts[1])), m->fma_peak[t],
                   m->bandwidth[t]);
        } else {
            printf("%d thread%s: %.1f GFLOP/s fused multiply-add, %.1f GB/s read, tier %s\n", t,
                   t > 1 ? "s" : " ", m->fma_peak[t] / 1e9, m->bandwidth[t] / 1e9,
                   attn_tier_name(attn_context_tier(bench->contexts[1])));
        }
    }
    if (!bench->json) {
        printf("the tile alone, 64 x 64 x 64: %.1f %% of the peak; "
               "the softmax pass alone: %.2f ns per score\n",
               100 * m->tile, 1e9 * m->softmax);
        printf(
            "operations: 4 B H Tq Tk D, half of it when causal, 2.5 times that for the backward; "
            "2 M N K for a product\n\n");
        printf("%-34s %-17s %-9s %2s %12s %13s %8s %8s %10s\n", "case", "what", "by", "T",
               "median ms", "quartiles", "share", "softmax", "scratch");
    }
    fflush(stdout);
}

void report_case(const struct bench *bench, const struct result *result,
                 const struct contender *contenders, int count)
{
    for (int i = 0; i < count; i++) {
        const struct contender *const c = &contenders[i];
        const double share = share_of_limit(bench, result, c, c->median);
        if (bench->json) {
            line_of_json(bench, result, c, share);
            continue;
        }
        printf("%-34s %-17s %-9s %2d %12.5g %+5.1f/%+5.1f%% %6.1f %%", result->name, c->what,
               c->name, c->threads, 1e3 * c->median, 100 * (c->low / c->median - 1),
               100 * (c->high / c->median - 1), 100 * share);
        const bool own = strcmp(c->name, "attn") == 0;
        if (own && result->softmax_scores > 0 && strcmp(c->what, "forward") == 0) {
            printf(" %6.1f %%",
                   100 * result->softmax_scores * bench->machine.softmax / c->threads / c->median);
        } else {
            printf(" %8s", "");
        }
        if (own) {
            printf(" %6.0f KiB", result->workspace / 1024);
        }
        putchar('\n');
    }
    fflush(stdout);
}
