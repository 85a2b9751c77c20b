// history.c: from one fixed vector for a whole sentence to attention over all its positions.
#include <math.h>
#include <stdio.h>

#include "attention.h"
#include "print.h"
#include "sections.h"

// ---- the bottleneck: everything through one vector ----------------------------------------------

enum { STATE = 8, MAX_LENGTH = 50 };

// A recurrent encoder h_t = tanh(W h_(t-1) + U x_t) over `length` random inputs. *first receives
// the first input as a variable that wants a gradient, states[] every h_t.
static void encode(demo *d, int length, attn_var *first, attn_var *states)
{
    manual_seed(d, 123);
    const attn_var W = attn_scale(randn_leaf(d, 2, (int64_t[]){STATE, STATE}), 1 / sqrt(STATE));
    const attn_var U = attn_scale(randn_leaf(d, 2, (int64_t[]){STATE, STATE}), 1 / sqrt(STATE));
    const attn_var x = randn_leaf(d, 2, (int64_t[]){MAX_LENGTH, STATE});
    const attn_tensor first_row = attn_value(attn_slice(x, 0, 0, 1));
    *first = attn_input(d->tape, &first_row, true); // (1, 8)
    attn_var h = attn_tanh(attn_linear(*first, U, ATTN_NO_VAR));
    states[0] = h;
    for (int t = 1; t < length; ++t) {
        const attn_var x_t = attn_slice(x, 0, t, t + 1); // (1, 8)
        h = attn_tanh(attn_add(attn_linear(h, W, ATTN_NO_VAR), attn_linear(x_t, U, ATTN_NO_VAR)));
        states[t] = h;
    }
}

// |d(sum of reader)/d(first input)|: how strongly the reader still sees the first word.
static double influence_of_first(demo *d, attn_var first, attn_var reader)
{
    attn_error error = {0};
    attn_var gradient;
    must_tape(d);
    must(attn_gradients(attn_sum_all(reader), &first, 1, false, &gradient, &error), &error);
    const attn_tensor value = attn_value(gradient);
    double sum = 0;
    for (int64_t i = 0; i < STATE; ++i) {
        const double g = attn_tensor_get(&value, (int64_t[ATTN_MAX_DIMS]){0, i});
        sum += g * g;
    }
    return sqrt(sum);
}

static void bottleneck(demo *d)
{
    static const int lengths[] = {5, 10, 20, 50};
    step(d, T_HIS_BOTTLENECK);
    say(d, T_HIS_BOTTLENECK_HEADER);
    double by_state[4];
    double by_attention[4];
    for (int i = 0; i < 4; ++i) {
        fresh_tape(d);
        attn_var first;
        attn_var states[MAX_LENGTH];
        encode(d, lengths[i], &first, states);
        by_state[i] = influence_of_first(d, first, states[lengths[i] - 1]);
        // Attention whose query is like the first state: it looks for the first word.
        const attn_var h = attn_cat(states, lengths[i], 0); // (T, 8)
        const attn_tensor first_state = attn_value(attn_scale(states[0], 4));
        const attn_var query = attn_input(d->tape, &first_state, false);
        const attn_var weights = attn_softmax(attn_matmul(query, attn_transpose(h, 0, 1)), -1);
        by_attention[i] = influence_of_first(d, first, attn_matmul(weights, h));
        printf("  %6d    %-26.1e%.1e\n", lengths[i], by_state[i], by_attention[i]);
    }
    claim(d, by_state[3] < by_state[0] / 100, T_HIS_STATE_FORGETS);
    claim(d, by_attention[3] > by_attention[0] / 10, T_HIS_ATTENTION_REACHES);
    say(d, T_HIS_BOTTLENECK_MEANING);
}

// ---- Bahdanau's additive attention --------------------------------------------------------------

enum { WORDS = 4 };

static const char *const source_words[WORDS] = {"le", "chat", "noir", "dort"};
static const char *const target_words[WORDS] = {"the", "cat", "black", "sleeps"};

// States that a trained translator might have: one direction per meaning, not quite clean.
static const float source_states[WORDS][WORDS] = {{0.9F, 0.1F, 0.0F, 0.0F},
                                                  {0.1F, 0.9F, 0.1F, 0.0F},
                                                  {0.0F, 0.1F, 0.9F, 0.1F},
                                                  {0.0F, 0.0F, 0.1F, 0.9F}};

// The decoder's state while it looks for the next English word: the, black, cat, sleeps.
static const int wanted[WORDS] = {0, 2, 1, 3};

// W_s = W_h = 2 I and v = (-4, -4, -4, -4). tanh saturates: a component that s and h share adds one
// tanh, two components that only one of them has add two. With v < 0 the shared one scores higher.
static attn_var additive_scores(demo *d, attn_var s, attn_var h)
{
    float two_eye[WORDS][WORDS] = {{0}};
    float minus_four[WORDS];
    for (int i = 0; i < WORDS; ++i) {
        two_eye[i][i] = 2;
        minus_four[i] = -4;
    }
    const attn_var W_s = leaf(d, two_eye[0], 2, (int64_t[]){WORDS, WORDS});
    const attn_var W_h = leaf(d, two_eye[0], 2, (int64_t[]){WORDS, WORDS});
    const attn_var v = leaf(d, minus_four, 2, (int64_t[]){1, WORDS});
    const attn_var sum =
        attn_add(attn_linear(s, W_s, ATTN_NO_VAR), attn_linear(h, W_h, ATTN_NO_VAR));
    return attn_linear(attn_tanh(sum), v, ATTN_NO_VAR); // (words, 1)
}

static void additive_step(demo *d)
{
    fresh_tape(d);
    step(d, T_HIS_BAHDANAU);
    const int64_t square[] = {WORDS, WORDS};
    const attn_var h = leaf(d, source_states[0], 2, square);
    attn_var alignments[WORDS];
    const char *labels[WORDS];
    const attn_tensor states = attn_value(h);
    show_tensor(d, "h, source states", &states, source_words);
    for (int t = 0; t < WORDS; ++t) {
        const attn_var s = attn_slice(h, 0, wanted[t], wanted[t] + 1); // (1, 4)
        const attn_var scores = additive_scores(d, s, h);              // (4, 1)
        const attn_var weights = attn_softmax(attn_transpose(scores, 0, 1), -1);
        const attn_var context = attn_matmul(weights, h); // (1, 4)
        alignments[t] = attn_select(weights, 0, 0);
        labels[t] = target_words[wanted[t]];
        if (t == 1) {
            say(d, T_HIS_ONE_STEP, labels[t]);
            show(d, "s", attn_select(s, 0, 0));
            show(d, "scores", attn_select(scores, 1, 0));
            show(d, "weights", alignments[t]);
            show(d, "context", attn_select(context, 0, 0));
        }
    }
    say(d, T_HIS_ALIGNMENT);
    const attn_tensor alignment = attn_value(attn_stack(alignments, WORDS, 0)); // (4, 4)
    show_heat(d, "weights", &alignment, labels, source_words);
    must_tape(d);
    say(d, T_HIS_BAHDANAU_MEANING);
}

// ---- self-attention and cross-attention as shapes -----------------------------------------------

static attn_module *two_input_attention(demo *d)
{
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = WORDS;
    config.d_out = WORDS;
    config.causal = false;
    manual_seed(d, 123);
    return multi_head_attention_of(d, &config);
}

static void self_and_cross(demo *d)
{
    fresh_tape(d);
    step(d, T_HIS_SHAPES);
    attn_module *attention = two_input_attention(d);
    const attn_var source = randn_leaf(d, 3, (int64_t[]){1, 5, WORDS});
    const attn_var target = randn_leaf(d, 3, (int64_t[]){1, 3, WORDS});
    const attn_var self = traced(d, attention, source, "attn_weights");
    say(d, T_HIS_SELF);
    show_shape(d, "x", source);
    show_shape(d, "attn_weights", self);

    attn_error error = {0};
    attn_trace *cross_trace;
    must(attn_trace_create(d->context, &cross_trace, &error), &error);
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = target;
    call.context = source;
    call.trace = cross_trace;
    const attn_var output = attn_module_forward(attention, &call);
    must_tape(d);
    const attn_named_tensor *cross = attn_trace_find(cross_trace, "attn_weights");
    char shape[SHAPE_TEXT];
    say(d, T_HIS_CROSS);
    show_shape(d, "target (queries)", target);
    show_shape(d, "source (keys, values)", source);
    printf("  %-28s %s\n", "attn_weights", cross ? shape_text(&cross->tensor, shape) : "-");
    show_shape(d, "output", output);
    attn_trace_destroy(cross_trace);
    fresh_tape(d);
    attn_module_destroy(attention);
    say(d, T_HIS_SHAPES_MEANING);
}

void history(demo *d)
{
    heading(d, "--history", T_HIS_TITLE, "history.c");
    say(d, T_HIS_INTRO);
    bottleneck(d);
    additive_step(d);
    self_and_cross(d);
}
