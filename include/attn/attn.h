// attn/attn.h: everything. Attention in C11, forward and backward.
#ifndef ATTN_ATTN_H
#define ATTN_ATTN_H

#include "attn/checkpoint.h"
#include "attn/context.h"
#include "attn/dlpack.h"
#include "attn/export.h"
#include "attn/io.h"
#include "attn/layout.h"
#include "attn/module.h"
#include "attn/npy.h"
#include "attn/npz.h"
#include "attn/optim.h"
#include "attn/random.h"
#include "attn/safetensors.h"
#include "attn/sdpa.h"
#include "attn/status.h"
#include "attn/tape.h"
#include "attn/tensor.h"
#include "attn/version.h"

#endif
