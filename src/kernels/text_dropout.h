// kernels/text_dropout.h: position-addressed dropout of a strip of weights.
//
// Plain loops over the lanes, which compilers turn into vectors: integers need no care for bits.
#ifndef ATTN_KERNELS_TEXT_DROPOUT_H
#define ATTN_KERNELS_TEXT_DROPOUT_H

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/real.h"

typedef struct REAL_NAME(attn_dropout) dropout_call;

enum { DROPOUT_LANES = 16, PHILOX_ROUNDS = 10 };

// Philox 4x32-10 for the four keys of one quad and DROPOUT_LANES rows at once: word[w][lane].
INLINE void philox_quad(const dropout_call *t, int64_t quad, int64_t lane,
                        uint32_t word[4][DROPOUT_LANES])
{
    uint32_t k0[DROPOUT_LANES], k1[DROPOUT_LANES];
    for (int i = 0; i < DROPOUT_LANES; i++) {
        word[0][i] = (uint32_t)((uint64_t)quad & UINT32_MAX);
        word[1][i] = (uint32_t)((uint64_t)quad >> 32);
        word[2][i] = t->row_low[lane + i];
        word[3][i] = t->row_high[lane + i];
        k0[i] = t->key_low[lane + i];
        k1[i] = t->key_high[lane + i];
    }
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        for (int i = 0; i < DROPOUT_LANES; i++) {
            const uint64_t p0 = (uint64_t)0xD2511F53u * word[0][i];
            const uint64_t p1 = (uint64_t)0xCD9E8D57u * word[2][i];
            const uint32_t x1 = word[1][i], x3 = word[3][i];
            word[0][i] = (uint32_t)(p1 >> 32) ^ x1 ^ k0[i];
            word[1][i] = (uint32_t)(p1 & UINT32_MAX);
            word[2][i] = (uint32_t)(p0 >> 32) ^ x3 ^ k1[i];
            word[3][i] = (uint32_t)(p0 & UINT32_MAX);
            k0[i] += 0x9E3779B9u;
            k1[i] += 0xBB67AE85u;
        }
    }
}

// A hidden weight stays hidden; any other that is not kept becomes +0.
static void dropout(const dropout_call *t, int64_t keys, int64_t lanes)
{
    const real hidden = R(-0.0);
    for (int64_t lane = 0; lane < lanes; lane += DROPOUT_LANES) {
        const int64_t some = lanes - lane < DROPOUT_LANES ? lanes - lane : DROPOUT_LANES;
        uint32_t word[4][DROPOUT_LANES];
        for (int64_t k = 0; k < keys; k++) {
            const int64_t key = t->first_key + k;
            if (k == 0 || key % 4 == 0) {
                philox_quad(t, key / 4, lane, word);
            }
            real *weight = t->weight + k * t->row + lane;
            for (int64_t i = 0; i < some; i++) {
                if (word[key % 4][i] >= t->threshold &&
                    memcmp(&weight[i], &hidden, sizeof(real)) != 0) {
                    weight[i] = 0;
                }
            }
        }
    }
}

#endif
