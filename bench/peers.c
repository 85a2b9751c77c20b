#include "peers.h"

#include <dlfcn.h>
#include <math.h>
#include <stddef.h>

static const struct {
    const char *name, *set_threads;
    const char *files[3];
} known[MOST_BLAS] = {
    {"openblas", "openblas_set_num_threads", {"libopenblas.so.0", "libopenblas.so", NULL}},
    {"blis", "bli_thread_set_num_threads", {"libblis.so.4", "libblis.so", NULL}},
};

// A pointer to a function out of dlsym's pointer to an object, as POSIX asks for it.
static void find_function(void *library, const char *name, void *function_pointer)
{
    *(void **)function_pointer = dlsym(library, name);
}

int peers_find_blas(struct blas *found)
{
    int count = 0;
    for (int i = 0; i < MOST_BLAS; i++) {
        void *library = NULL;
        for (int f = 0; !library && known[i].files[f]; f++) {
            library = dlopen(known[i].files[f], RTLD_NOW | RTLD_LOCAL);
        }
        struct blas blas = {.name = known[i].name};
        if (library) {
            find_function(library, "cblas_sgemm", (void *)&blas.sgemm);
            find_function(library, known[i].set_threads, (void *)&blas.set_threads);
        }
        if (blas.sgemm) {
            if (blas.set_threads) {
                blas.set_threads(1);
            }
            found[count++] = blas;
        }
    }
    return count;
}

// exp on (-87, 0] to float32's accuracy, in a form that compilers vectorise.
static inline float plain_exp(float x)
{
    const float shifter = 12582912.0F; // 1.5 * 2^23: adding it rounds to an integer
    const float clamped = x < -87.0F ? -87.0F : x;
    const float n = (clamped * 1.442695041F + shifter) - shifter;
    const float r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
    float y = 1.9875691500e-4F;
    y = y * r + 1.3981999507e-3F;
    y = y * r + 8.3334519073e-3F;
    y = y * r + 4.1665795894e-2F;
    y = y * r + 1.6666665459e-1F;
    y = y * r + 5.0000001201e-1F;
    y = y * r * r + r + 1.0F;
    union {
        int32_t i;
        float f;
    } power = {.i = ((int32_t)n + 127) * (1 << 23)};
    return y * power.f;
}

static void softmax_row(float *restrict row, int64_t visible, int64_t count, float scale)
{
    float max = -INFINITY;
    for (int64_t j = 0; j < visible; j++) {
        max = row[j] > max ? row[j] : max;
    }
    float sum = 0;
    for (int64_t j = 0; j < visible; j++) {
        row[j] = plain_exp((row[j] - max) * scale);
    }
    for (int64_t j = 0; j < visible; j++) {
        sum += row[j];
    }
    const float inverse = 1.0F / sum;
    for (int64_t j = 0; j < visible; j++) {
        row[j] *= inverse;
    }
    for (int64_t j = visible; j < count; j++) {
        row[j] = 0;
    }
}

static void plain_head(void *argument, int64_t head, int32_t worker)
{
    const struct plain *const p = argument;
    const float *const query = p->query + head * p->tq * p->head_dim;
    const float *const key = p->key + head / p->heads_per_kv * p->tk * p->head_dim;
    const float *const value = p->value + head / p->heads_per_kv * p->tk * p->head_dim;
    float *const scores = p->scores + worker * p->tq * p->tk;
    const int tq = (int)p->tq;
    const int tk = (int)p->tk;
    const int dim = (int)p->head_dim;
    p->blas->sgemm(BLAS_ROW_MAJOR, BLAS_PLAIN, BLAS_TRANSPOSED, tq, tk, dim, 1, query, dim, key,
                   dim, 0, scores, tk);
    const float scale = 1.0F / sqrtf((float)dim);
    for (int64_t i = 0; i < p->tq; i++) {
        const int64_t visible = p->causal && i + 1 < p->tk ? i + 1 : p->tk;
        softmax_row(scores + i * p->tk, visible, p->tk, scale);
    }
    p->blas->sgemm(BLAS_ROW_MAJOR, BLAS_PLAIN, BLAS_PLAIN, tq, dim, tk, 1, scores, tk, value, dim,
                   0, p->output + head * p->tq * p->head_dim, dim);
}

void peers_run_plain(void *plain)
{
    struct plain *const p = plain;
    p->executor->parallel_for(p->executor->state, p->heads, plain_head, p);
}
