// progress.h: a bar on standard error for long work, when that is a terminal.
#ifndef ATTN_TOOL_PROGRESS_H
#define ATTN_TOOL_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attn/context.h"

typedef struct progress {
    const char *what; // in front of the bar
    int64_t total;
    atomic_llong done;
    atomic_llong next_draw; // milliseconds; the bar appears only after half a second
    bool shown;             // standard error is a terminal
    atomic_bool drawn;
} progress;

void progress_begin(progress *p, const char *what, int64_t total);
void progress_advance(progress *p, int64_t steps); // from any thread
void progress_end(progress *p);                    // wipes the bar

// An executor that counts the jobs of `inner` as steps; their number is added to the total as loops
// begin. It owns `inner`, and p must outlive it.
attn_executor progress_executor(progress *p, attn_executor inner);

#endif
