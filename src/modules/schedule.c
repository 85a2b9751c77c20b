// The learning rate over time.
#include <math.h>

#include "attn/optim.h"

double attn_schedule_factor(const attn_schedule *schedule, int64_t step)
{
    const int64_t warmup = schedule->warmup_steps;
    if (step < warmup) {
        return ((double)step + 1) / (double)warmup;
    }
    if (schedule->kind != ATTN_SCHEDULE_COSINE) {
        return 1;
    }
    const double pi = 3.14159265358979323846;
    const double done = (double)(step - warmup) / (double)(schedule->total_steps - warmup);
    const double final = schedule->final_factor;
    return final + (1 - final) * (1 + cos(pi * (done < 1 ? done : 1))) / 2;
}
