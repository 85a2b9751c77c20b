// tool.h: what the commands share beyond their arguments.
#ifndef ATTN_TOOL_TOOL_H
#define ATTN_TOOL_TOOL_H

#include <stdint.h>

#include "arguments.h"
#include "attn/attn.h"
#include "progress.h"

extern const command run_command, inspect_command, convert_command, check_command, oracle_command,
    plot_command, bench_command, version_command;

extern const option_group compute_group; // --threads, --tier
extern const option_group format_group;  // --bfloat16

// A context as --threads and --tier ask for (default: all CPUs of the affinity mask). With `p` its
// jobs advance that bar. NULL after a message; then *status is the exit status.
attn_context *context_for(const arguments *a, progress *p, int *status);

// A serial context, for commands that only move data. NULL after a message.
attn_context *plain_context(const arguments *a);

uint32_t npy_flags(const arguments *a);

// A message with what the library said; returns EXIT_TROUBLE.
int library_trouble(const arguments *a, const attn_error *error);

#endif
