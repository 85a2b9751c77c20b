// sdpa/shared.h: which calls are worth a second thread, and which of their jobs a thread gets.
#ifndef ATTN_SDPA_SHARED_H
#define ATTN_SDPA_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/context.h"
#include "core/job.h"
#include "sdpa/problem.h"

// False where two products over all pairs are so few multiply-adds that a thread's start takes longer.
static inline bool attn_sdpa_is_shared(const struct attn_sdpa_problem *problem)
{
    static const double least = 2e5;
    return (double)problem->batch * (double)problem->query_heads * (double)problem->queries *
               (double)problem->keys * (double)(problem->head_dim + problem->value_dim) >=
           least;
}

// The job behind an index. Workers that take indices in turns get neighbouring jobs each, which share keys
// and ask for what the next one needs, where there are as many heads as workers. A single head's jobs, which
// may differ in size, keep their order.
static inline int64_t attn_sdpa_in_turns(int64_t index, int64_t count, int64_t jobs_per_head,
                                         int64_t workers)
{
    if (count < jobs_per_head * workers) {
        return index;
    }
    const int64_t each = count / workers, more = count % workers, worker = index % workers;
    return worker * each + (worker < more ? worker : more) + index / workers;
}

// attn_parallel_for, on the calling thread alone where the problem is not shared.
static inline void attn_sdpa_for_each(const attn_context *context,
                                      const struct attn_sdpa_problem *problem, int64_t count,
                                      attn_job job, void *argument)
{
    if (attn_sdpa_is_shared(problem)) {
        attn_parallel_for(context, count, job, argument);
    } else {
        attn_run_serially(context->executor.workers, count, job, argument);
    }
}

#endif
