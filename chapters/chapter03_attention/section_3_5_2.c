// 3.5.2 Dropout on the attention weights.
#include <math.h>
#include <string.h>

#include "attention.h"
#include "causal.h"
#include "print.h"
#include "sections.h"

enum { D_OUT = 2, DRAWS = 10000 };

// True when every element is either 0 or `survivor` (to float32's rounding).
static bool only_zero_or(attn_var var, double survivor)
{
    for (int64_t i = 0; i < TOKENS; ++i) {
        for (int64_t j = 0; j < TOKENS; ++j) {
            const double x = element(var, i, j);
            if (x != 0 && fabs(x - survivor) > 1e-6) {
                return false;
            }
        }
    }
    return true;
}

// The mean of all elements over many draws from one seed.
static double mean_over_draws(demo *d, attn_var values, double p)
{
    const attn_tape_mark mark = attn_tape_get_mark(d->tape);
    double sum = 0;
    for (int draw = 0; draw < DRAWS; ++draw) {
        sum += attn_item(attn_mean_all(attn_dropout(values, p, true, d->generator)));
        attn_error error = {0};
        must(attn_tape_release(d->tape, mark, &error), &error);
    }
    return sum / DRAWS;
}

void section_3_5_2(demo *d)
{
    heading(d, "3.5.2", T_352_TITLE, "section_3_5_2.c");
    fresh_tape(d);
    say(d, T_352_INTRO);

    step(d, T_352_STEP_ONES);
    manual_seed(d, 123);
    const attn_var dropout_ones = attn_dropout(ones(d), 0.5, true, d->generator);
    show(d, "dropout_ones", dropout_ones);
    claim(d, only_zero_or(dropout_ones, 2.0), T_352_TWO);
    say(d, T_352_PLATFORM);

    step(d, T_352_STEP_TEN_PERCENT);
    manual_seed(d, 123);
    const attn_var dropout_10 = attn_dropout(ones(d), 0.1, true, d->generator);
    show(d, "dropout_ones, p = 0.1", dropout_10);
    claim(d, only_zero_or(dropout_10, 1 / 0.9), T_352_ONE_OVER_KEEP);

    step(d, T_352_STEP_WEIGHTS);
    manual_seed(d, 789);
    attn_module *sa_v2 = self_attention_v2(d, EMBEDDING, D_OUT, false);
    bool mask_memory[TOKENS][TOKENS];
    const attn_tensor mask = causal_mask(mask_memory);
    const attn_var attn_weights = causal_weights(causal_scores(d, sa_v2, make_inputs(d)), &mask);
    manual_seed(d, 123);
    const attn_var dropped = attn_dropout(attn_weights, 0.5, true, d->generator);
    show_tokens(d, "dropout_attn_weights", dropped);
    show(d, "row sums", attn_sum(dropped, -1, false));
    say(d, T_352_WEIGHTS_MEANING);

    step(d, T_352_STEP_EVAL);
    attn_generator_state before;
    attn_generator_state after;
    attn_generator_save(d->generator, &before);
    const attn_var in_eval = attn_dropout(attn_weights, 0.5, false, d->generator);
    attn_generator_save(d->generator, &after);
    claim(d, same_bits(in_eval, attn_weights), T_352_EVAL_SAME);
    claim(d, memcmp(&before, &after, sizeof before) == 0, T_352_EVAL_DRAWS_NOTHING);

    step(d, T_352_STEP_MEAN, DRAWS);
    manual_seed(d, 123);
    const double half = mean_over_draws(d, ones(d), 0.5);
    const double tenth = mean_over_draws(d, ones(d), 0.1);
    show_number(d, "mean (p = 0.5)", half);
    show_number(d, "mean (p = 0.1)", tenth);
    claim(d, fabs(half - 1) < 0.01 && fabs(tenth - 1) < 0.01, T_352_MEAN_ONE);
    must_tape(d);
    say(d, T_352_SUMMARY);
    fresh_tape(d);
    attn_module_destroy(sa_v2);
}
