// A part of an attention problem as a problem of its own, on views of the whole's tensors.
#ifndef ATTN_TESTS_SUPPORT_ATTENTION_PART_H
#define ATTN_TESTS_SUPPORT_ATTENTION_PART_H

#include "attention.h"

// One batch entry; half-open ranges of key/value heads (with the query heads that read them), rows
// and keys.
struct attention_block {
    int64_t batch;
    int64_t head_begin, head_end;
    int64_t query_begin, query_end;
    int64_t key_begin, key_end;
};

// All of batch entry b.
struct attention_block attention_entry(const struct attention *whole, int64_t b);

// The block's own problem: no lengths and no starts; the dropout's batch, head and row are moved to
// where the block stands in a batch (for packed sequences the caller sets the batch). A diagonal
// other than the default is the caller's to set. `own` borrows from `whole`; end it with
// attention_end.
void attention_part(struct attention *own, const struct attention *whole,
                    const struct attention_block *block);

// The results of the block's own run against the block's part of the whole's, bit for bit. Results
// that sum over what the block leaves out do not count: gradients of key, value and key_sums unless
// the block has all rows, gradients of a bias that the block shares with others, and of sinks.
void assert_attention_part(const struct attention *whole, const struct attention_results *all,
                           const struct attention_results *own,
                           const struct attention_block *block);

#endif
