// attn/version.h: the version of the header and of the library that runs.
#ifndef ATTN_VERSION_H
#define ATTN_VERSION_H

#include "attn/export.h"

#define ATTN_VERSION_MAJOR 0
#define ATTN_VERSION_MINOR 1
#define ATTN_VERSION_PATCH 0

ATTN_BEGIN_DECLS

// "0.1.0"
ATTN_API const char *attn_version(void);

ATTN_END_DECLS

#endif
