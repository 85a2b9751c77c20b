// run_module.h: the part of `attn run` that runs a layer of a model.
#ifndef ATTN_TOOL_RUN_MODULE_H
#define ATTN_TOOL_RUN_MODULE_H

#include "tool.h"

int run_module(const arguments *a, const attn_context *context);

#endif
