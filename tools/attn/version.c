// attn version: what this program is and runs on.
#include "tool.h"

static int run(const arguments *a);

static const option_group *const groups[] = {&help_group, NULL};

const command version_command = {
    .name = "version",
    .summary = "show the version, the numerics version and what this machine offers",
    .operands = "",
    .description = "Shows the version of the library, the numerics version (it changes whenever "
                   "any output bit may), the instruction sets that this machine can run, and the "
                   "number of CPUs that the process may use.",
    .groups = groups,
    .example = "  attn version\n",
    .run = run,
};

static int run(const arguments *a)
{
    attn_context *context = plain_context(a);
    if (context == NULL) {
        return EXIT_TROUBLE;
    }
    printf("attn %s, numerics %u\n", attn_version(), (unsigned)attn_numerics_version());
    printf("tier %s; available:", attn_tier_name(attn_context_tier(context)));
    for (int tier = ATTN_TIER_PORTABLE; tier < ATTN_TIER_COUNT; tier++) {
        if (attn_tier_available((attn_tier)tier)) {
            printf(" %s", attn_tier_name((attn_tier)tier));
        }
    }
    printf("\n%d CPU%s\n", (int)attn_available_cpus(), attn_available_cpus() == 1 ? "" : "s");
    attn_context_destroy(context);
    return EXIT_OK;
}
