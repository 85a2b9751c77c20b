// 3.3.1 Simple self-attention for one query, in plain loops: every number can be checked by hand.
#include <math.h>
#include <stdio.h>

#include "print.h"
#include "sections.h"

static float dot(const float *a, const float *b, int64_t size)
{
    float sum = 0;
    for (int64_t d = 0; d < size; ++d) {
        sum += a[d] * b[d];
    }
    return sum;
}

// weight_j = score_j / sum of scores: sums to 1, but is a weighting only while no score is
// negative.
static void normalise_by_sum(const float *scores, int64_t size, float *weights)
{
    float sum = 0;
    for (int64_t j = 0; j < size; ++j) {
        sum += scores[j];
    }
    for (int64_t j = 0; j < size; ++j) {
        weights[j] = scores[j] / sum;
    }
}

// weight_j = exp(score_j) / sum of exp(score): exp overflows float32 above a score of 88.
static void softmax_naive(const float *scores, int64_t size, float *weights)
{
    float sum = 0;
    for (int64_t j = 0; j < size; ++j) {
        weights[j] = expf(scores[j]);
        sum += weights[j];
    }
    for (int64_t j = 0; j < size; ++j) {
        weights[j] /= sum;
    }
}

// The same after subtracting the largest score from all: the quotient does not change, and no
// exponent is above 0.
static void softmax(const float *scores, int64_t size, float *weights)
{
    float largest = scores[0];
    for (int64_t j = 1; j < size; ++j) {
        largest = scores[j] > largest ? scores[j] : largest;
    }
    float sum = 0;
    for (int64_t j = 0; j < size; ++j) {
        weights[j] = expf(scores[j] - largest);
        sum += weights[j];
    }
    for (int64_t j = 0; j < size; ++j) {
        weights[j] /= sum;
    }
}

static void show_vector(demo *d, const char *name, const float *numbers, int64_t size)
{
    const attn_tensor tensor = attn_tensor_wrap_const(numbers, ATTN_F32, 1, &size);
    show_tensor(d, name, &tensor, NULL);
}

static void explain_dot_products(demo *d)
{
    static const struct {
        text_id name;
        float vector[2];
    } others[] = {{T_331_SAME, {1, 0}},
                  {T_331_SIXTY_DEGREES, {0.5F, 0.8660254F}},
                  {T_331_ORTHOGONAL, {0, 1}},
                  {T_331_OPPOSITE, {-1, 0}}};
    static const float unit[2] = {1, 0};

    step(d, T_331_WHY_DOT);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; ++i) {
        const float *b = others[i].vector;
        fputs("  ", stdout);
        print_padded(d->text[others[i].name], 20);
        printf("[1, 0] . [%.4g, %.4g] = %.4g\n", (double)b[0], (double)b[1],
               (double)dot(unit, b, 2));
    }
    say(d, T_331_WHY_DOT_MEANING);
}

static void explain_softmax(demo *d)
{
    static const float negative[3] = {1.0F, -2.0F, 0.5F};
    static const float large[3] = {1000.0F, 999.0F, 998.0F};
    float weights[3];

    step(d, T_331_WHY_NOT_SUM);
    show_vector(d, "scores", negative, 3);
    normalise_by_sum(negative, 3, weights);
    show_vector(d, "scores / sum(scores)", weights, 3);
    softmax(negative, 3, weights);
    show_vector(d, "softmax(scores)", weights, 3);
    say(d, T_331_WHY_NOT_SUM_MEANING);

    step(d, T_331_WHY_NOT_NAIVE);
    show_vector(d, "scores", large, 3);
    softmax_naive(large, 3, weights);
    show_vector(d, "softmax_naive(scores)", weights, 3);
    claim(d, isnan(weights[0]), T_331_NAIVE_IS_NAN);
    softmax(large, 3, weights);
    show_vector(d, "softmax(scores)", weights, 3);
    say(d, T_331_WHY_NOT_NAIVE_MEANING);
}

void section_3_3_1(demo *d)
{
    heading(d, "3.3.1", T_331_TITLE, "section_3_3_1.c");
    fresh_tape(d);
    say(d, T_331_INTRO);
    show_tokens(d, "inputs", make_inputs(d));

    step(d, T_331_STEP_SCORES);
    const float *query = token_inputs[1]; // journey, x_2
    float attn_scores_2[TOKENS];
    for (int j = 0; j < TOKENS; ++j) {
        const float *x = token_inputs[j];
        attn_scores_2[j] = dot(x, query, EMBEDDING);
        fputs("  ", stdout);
        print_padded(token_names[j], 9);
        printf("%.2f*%.2f + %.2f*%.2f + %.2f*%.2f = %.4f\n", (double)x[0], (double)query[0],
               (double)x[1], (double)query[1], (double)x[2], (double)query[2],
               (double)attn_scores_2[j]);
    }
    show_vector(d, "attn_scores_2", attn_scores_2, TOKENS);
    say(d, T_331_CORRECTION);
    explain_dot_products(d);

    step(d, T_331_STEP_WEIGHTS);
    float weights[TOKENS];
    normalise_by_sum(attn_scores_2, TOKENS, weights);
    show_vector(d, "attn_weights_sumnorm", weights, TOKENS);
    softmax_naive(attn_scores_2, TOKENS, weights);
    show_vector(d, "attn_weights_naive", weights, TOKENS);
    float attn_weights_2[TOKENS];
    softmax(attn_scores_2, TOKENS, attn_weights_2);
    show_vector(d, "attn_weights_2", attn_weights_2, TOKENS);
    explain_softmax(d);

    step(d, T_331_STEP_CONTEXT);
    float context_vec_2[EMBEDDING] = {0};
    for (int j = 0; j < TOKENS; ++j) {
        for (int k = 0; k < EMBEDDING; ++k) {
            context_vec_2[k] += attn_weights_2[j] * token_inputs[j][k];
        }
    }
    show_vector(d, "context_vec_2", context_vec_2, EMBEDDING);
    say(d, T_331_CONTEXT_MEANING);

    step(d, T_SAME_BY_LIBRARY);
    const attn_var scores = leaf(d, attn_scores_2, 1, (int64_t[]){TOKENS});
    const attn_var by_hand = leaf(d, attn_weights_2, 1, (int64_t[]){TOKENS});
    claim(d, close_to(attn_softmax(scores, -1), by_hand, 1e-6), T_331_LIBRARY_SOFTMAX);
    must_tape(d);
    say(d, T_331_SUMMARY);
}
