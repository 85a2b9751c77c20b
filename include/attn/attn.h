// attn/attn.h: everything. Attention in C11, forward and backward.
#ifndef ATTN_ATTN_H
#define ATTN_ATTN_H

#define ATTN_VERSION_MAJOR 0
#define ATTN_VERSION_MINOR 1
#define ATTN_VERSION_PATCH 0

#include "attn/context.h"
#include "attn/export.h"
#include "attn/module.h"
#include "attn/random.h"
#include "attn/safetensors.h"
#include "attn/sdpa.h"
#include "attn/status.h"
#include "attn/tape.h"
#include "attn/tensor.h"

ATTN_BEGIN_DECLS

// "0.1.0"
ATTN_API const char *attn_version(void);

ATTN_END_DECLS

#endif
