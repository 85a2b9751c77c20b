// saturation.c: what raw and scaled scores do to a softmax, and to learning.
#include <math.h>
#include <stdio.h>

#include <attn/optim.h>

#include "print.h"
#include "sections.h"

static const int key_sizes[] = {8, 64, 512};
enum { KEY_SIZES = 3, SEED = 123 };

// ---- the softmax alone --------------------------------------------------------------------------

enum { QUERIES = 256, KEYS = 16 };

typedef struct softmax_state {
    double deviation; // of the scores
    double largest;   // weight of a row, mean over rows
    double entropy;   // of a row in bits, mean; log2(16) = 4 is even
    double slope;     // p (1 - p), mean over all weights: the softmax's own derivative
} softmax_state;

static softmax_state measure(attn_var scores, attn_var weights)
{
    softmax_state state = {0};
    const attn_tensor shape = attn_value(weights);
    const double count = (double)(shape.shape[0] * shape.shape[1]);
    for (int64_t i = 0; i < shape.shape[0]; ++i) {
        double largest = 0;
        for (int64_t j = 0; j < shape.shape[1]; ++j) {
            const double s = element(scores, i, j);
            const double p = element(weights, i, j);
            state.deviation += s * s / count;
            largest = p > largest ? p : largest;
            state.entropy -= p > 0 ? p * log2(p) / (double)shape.shape[0] : 0;
            state.slope += p * (1 - p) / count;
        }
        state.largest += largest / (double)shape.shape[0];
    }
    state.deviation = sqrt(state.deviation);
    return state;
}

static void print_state(demo *d, int d_k, text_id kind, const softmax_state *state)
{
    printf("  %5d  ", d_k);
    print_padded(d->text[kind], 10);
    printf("%9.2f  %9.4f  %9.4f  %9.4f\n", state->deviation, state->largest, state->entropy,
           state->slope);
}

static void softmax_alone(demo *d)
{
    step(d, T_SAT_SOFTMAX, SEED, QUERIES, KEYS);
    say(d, T_SAT_SOFTMAX_HEADER);
    softmax_state states[KEY_SIZES][2];
    for (int i = 0; i < KEY_SIZES; ++i) {
        manual_seed(d, SEED);
        const int64_t d_k = key_sizes[i];
        const attn_var queries = randn_leaf(d, 2, (int64_t[]){QUERIES, d_k});
        const attn_var keys = randn_leaf(d, 2, (int64_t[]){KEYS, d_k});
        const attn_var raw = attn_matmul(queries, attn_transpose(keys, 0, 1)); // (256, 16)
        const attn_var scaled = attn_scale(raw, 1 / sqrt((double)d_k));
        states[i][0] = measure(raw, attn_softmax(raw, -1));
        states[i][1] = measure(scaled, attn_softmax(scaled, -1));
        print_state(d, key_sizes[i], T_SAT_RAW, &states[i][0]);
        print_state(d, key_sizes[i], T_SAT_SCALED, &states[i][1]);
    }
    must_tape(d);
    claim(d, states[2][0].slope < states[0][0].slope / 5, T_SAT_SLOPE_FALLS);
    claim(d, fabs(states[2][1].slope / states[0][1].slope - 1) < 0.1, T_SAT_SLOPE_STAYS);
    say(d, T_SAT_SOFTMAX_MEANING);
}

// ---- learning -----------------------------------------------------------------------------------

enum { D_IN = 16, LENGTH = 16, BATCH = 8, STEPS = 60 };

// A self-attention of one head whose values are the inputs themselves. For every token, the
// token that the fixed matrix R calls its best match is the right answer: W_query and W_key must
// learn R.
typedef struct matcher {
    attn_parameter W_query, W_key; // (D_IN, d_k)
    attn_optimizer *optimizer;
    double scale;
} matcher;

typedef struct learning_curve {
    double score_gradient; // first step: |dL/d(what enters the softmax)|
    double silent_rows;    // first step: share of rows whose part of it is below 1 % of the largest
    double query_gradient; // first step: |dL/dW_query|
    double query_gradient_late;
    double loss; // mean of the last five steps
} learning_curve;

static void matcher_create(demo *d, matcher *m, int64_t d_k, bool scaled)
{
    attn_error error = {0};
    attn_optimizer_config config;
    attn_adamw_config_init(&config);
    config.learning_rate = 3e-3;
    must(attn_optimizer_create(d->context, &config, &m->optimizer, &error), &error);
    const double deviation = 1 / sqrt(D_IN); // queries and keys of variance 1
    own_parameter_create(d, &m->W_query, "W_query", D_IN, d_k, deviation);
    own_parameter_create(d, &m->W_key, "W_key", D_IN, d_k, deviation);
    must(attn_optimizer_add_parameter(m->optimizer, "W_query", &m->W_query, &error), &error);
    must(attn_optimizer_add_parameter(m->optimizer, "W_key", &m->W_key, &error), &error);
    m->scale = scaled ? 1 / sqrt((double)d_k) : 1;
}

static void matcher_destroy(demo *d, matcher *m)
{
    attn_optimizer_destroy(m->optimizer);
    own_parameter_destroy(d, &m->W_query);
    own_parameter_destroy(d, &m->W_key);
}

// For every token the token of its sequence with the largest x_i R x_j: (batch, T, D_IN).
static attn_var best_matches(demo *d, attn_var x, attn_var R)
{
    const attn_var similarity = attn_matmul(attn_matmul(x, R), attn_transpose(x, 1, 2));
    const attn_tensor s = attn_value(similarity); // (batch, T, T)
    float choice[BATCH][LENGTH][LENGTH] = {0};
    for (int64_t b = 0; b < BATCH; ++b) {
        for (int64_t i = 0; i < LENGTH; ++i) {
            int64_t best = 0;
            for (int64_t j = 1; j < LENGTH; ++j) {
                const double candidate = attn_tensor_get(&s, (int64_t[ATTN_MAX_DIMS]){b, i, j});
                if (candidate > attn_tensor_get(&s, (int64_t[ATTN_MAX_DIMS]){b, i, best})) {
                    best = j;
                }
            }
            choice[b][i][best] = 1;
        }
    }
    return attn_matmul(leaf(d, choice[0][0], 3, (int64_t[]){BATCH, LENGTH, LENGTH}), x);
}

static double norm(const attn_tensor *tensor)
{
    const float *numbers = tensor->data;
    double sum = 0;
    for (int64_t i = 0; i < attn_tensor_count(tensor); ++i) {
        sum += (double)numbers[i] * (double)numbers[i];
    }
    return sqrt(sum);
}

// The loss on a fresh batch; *entering receives the scores that enter the softmax.
static attn_var matcher_loss(demo *d, matcher *m, attn_var R, attn_var *entering)
{
    const attn_var x = randn_leaf(d, 3, (int64_t[]){BATCH, LENGTH, D_IN});
    const attn_var queries =
        attn_matmul(x, attn_borrow(d->tape, &m->W_query.value, &m->W_query.grad));
    const attn_var keys = attn_matmul(x, attn_borrow(d->tape, &m->W_key.value, &m->W_key.grad));
    const attn_var scores = attn_matmul(queries, attn_transpose(keys, 1, 2)); // (batch, T, T)
    *entering = attn_scale(scores, m->scale);
    const attn_var context = attn_matmul(attn_softmax(*entering, -1), x);
    return attn_mse_loss(context, best_matches(d, x, R));
}

// The gradient of the scores that enter the softmax: its norm, and how it is spread over the rows.
static void measure_scores(attn_var loss, attn_var entering, learning_curve *curve)
{
    attn_error error = {0};
    attn_var gradient;
    must(attn_gradients(loss, &entering, 1, false, &gradient, &error), &error);
    const int64_t row_shape[] = {BATCH * LENGTH, LENGTH};
    const attn_var rows = attn_view(attn_contiguous(gradient), 2, row_shape);
    double row_norms[BATCH * LENGTH];
    double largest = 0;
    for (int64_t i = 0; i < BATCH * LENGTH; ++i) {
        const attn_tensor row = attn_value(attn_select(rows, 0, i));
        row_norms[i] = norm(&row);
        largest = row_norms[i] > largest ? row_norms[i] : largest;
    }
    const attn_tensor all = attn_value(rows);
    curve->score_gradient = norm(&all);
    for (int64_t i = 0; i < BATCH * LENGTH; ++i) {
        curve->silent_rows += row_norms[i] < 0.01 * largest ? 1.0 / (BATCH * LENGTH) : 0;
    }
}

static learning_curve learn(demo *d, int64_t d_k, bool scaled)
{
    attn_error error = {0};
    manual_seed(d, SEED);
    matcher m;
    matcher_create(d, &m, d_k, scaled);
    float R_numbers[D_IN][D_IN];
    const attn_tensor R_tensor = attn_tensor_wrap(R_numbers, ATTN_F32, 2, (int64_t[]){D_IN, D_IN});
    must(attn_randn(d->generator, &R_tensor, &error), &error);

    learning_curve curve = {0};
    for (int s = 0; s < STEPS; ++s) {
        fresh_tape(d);
        attn_var entering;
        const attn_var R = attn_input(d->tape, &R_tensor, false);
        const attn_var loss = matcher_loss(d, &m, R, &entering);
        must_tape(d);
        if (s == 0) {
            measure_scores(loss, entering, &curve);
        }
        attn_optimizer_zero_grad(m.optimizer);
        must(attn_backward(loss, &error), &error);
        curve.query_gradient = s == 0 ? norm(&m.W_query.grad) : curve.query_gradient;
        curve.query_gradient_late = norm(&m.W_query.grad);
        curve.loss += s >= STEPS - 5 ? attn_item(loss) / 5 : 0;
        attn_optimizer_step(m.optimizer);
    }
    fresh_tape(d);
    matcher_destroy(d, &m);
    return curve;
}

static void learning(demo *d)
{
    step(d, T_SAT_LEARNING, SEED, STEPS);
    say(d, T_SAT_LEARNING_HEADER, STEPS, STEPS);
    learning_curve curves[KEY_SIZES][2];
    for (int i = 0; i < KEY_SIZES; ++i) {
        for (int scaled = 0; scaled < 2; ++scaled) {
            const learning_curve c = learn(d, key_sizes[i], scaled != 0);
            curves[i][scaled] = c;
            printf("  %5d  ", key_sizes[i]);
            print_padded(d->text[scaled ? T_SAT_SCALED : T_SAT_RAW], 10);
            printf("%9.4f  %7.0f %%  %9.4f  %9.4f  %9.3f\n", c.score_gradient, 100 * c.silent_rows,
                   c.query_gradient, c.query_gradient_late, c.loss);
        }
    }
    claim(d, curves[2][0].score_gradient < curves[0][0].score_gradient, T_SAT_SCORE_GRADIENT);
    claim(d, curves[2][1].loss < curves[2][0].loss, T_SAT_SCALED_LEARNS);
    say(d, T_SAT_LEARNING_MEANING);
}

void saturation(demo *d)
{
    heading(d, "--saturation", T_SAT_TITLE, "saturation.c");
    fresh_tape(d);
    say(d, T_SAT_INTRO);
    softmax_alone(d);
    learning(d);
    say(d, T_SAT_SUMMARY);
}
