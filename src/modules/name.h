// modules/name.h: names put together from parts.
#ifndef ATTN_MODULES_NAME_H
#define ATTN_MODULES_NAME_H

#include "attn/context.h"

// <prefix><name><suffix> in fresh memory: "heads.0." "W_query" ".weight". NULL without memory.
char *attn_name_create(const attn_context *context, const char *prefix, const char *name,
                       const char *suffix);
void attn_name_release(const attn_context *context, const char *name); // takes NULL

#endif
