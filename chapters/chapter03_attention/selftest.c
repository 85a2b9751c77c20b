// selftest.c: the chapter's ten questions. For each: the question, evidence computed here and now,
// and, after a key press, the answer.
#define _POSIX_C_SOURCE 200809L // isatty, tcsetattr

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#include "attention.h"
#include "causal.h"
#include "gpt2.h"
#include "print.h"
#include "sections.h"

// ---- evidence -----------------------------------------------------------------------------------

static void evidence_first_numbers(demo *d)
{
    const attn_var inputs = make_inputs(d); // (6, 3)
    const attn_var query = attn_slice(inputs, 0, 1, 2);
    const attn_var scores = attn_matmul(query, attn_transpose(inputs, 0, 1)); // (1, 6)
    const attn_var weights = attn_softmax(scores, -1);
    show(d, "attn_scores_2", attn_select(scores, 0, 0));
    show(d, "attn_weights_2", attn_select(weights, 0, 0));
    show(d, "context_vec_2", attn_select(attn_matmul(weights, inputs), 0, 0));
}

static void evidence_unit_vectors(demo *d)
{
    const float unit[] = {1, 0};
    const float others[] = {1, 0, 0, 1, -1, 0};
    const attn_var a = leaf(d, unit, 2, (int64_t[]){1, 2});
    const attn_var b = leaf(d, others, 2, (int64_t[]){3, 2});
    const attn_var products = attn_matmul(a, attn_transpose(b, 0, 1)); // (1, 3)
    show(d, "a", attn_select(a, 0, 0));
    show(d, "b_1, b_2, b_3", b);
    show(d, "a . b_i", attn_select(products, 0, 0));
}

static void evidence_scaling(demo *d)
{
    static const int sizes[] = {8, 64, 512};
    for (int i = 0; i < 3; ++i) {
        manual_seed(d, 123);
        const attn_var query = randn_leaf(d, 2, (int64_t[]){1, sizes[i]});
        const attn_var keys = randn_leaf(d, 2, (int64_t[]){4, sizes[i]});
        const attn_var scores = attn_matmul(query, attn_transpose(keys, 0, 1)); // (1, 4)
        const attn_var scaled = attn_scale(scores, 1 / sqrt(sizes[i]));
        char name[64];
        snprintf(name, sizeof name, "d_k = %3d, softmax(s)", sizes[i]);
        show(d, name, attn_select(attn_softmax(scores, -1), 0, 0));
        snprintf(name, sizeof name, "d_k = %3d, softmax(s/sqrt(d_k))", sizes[i]);
        show(d, name, attn_select(attn_softmax(scaled, -1), 0, 0));
    }
}

static void evidence_two_weights(demo *d)
{
    manual_seed(d, 789);
    attn_module *sa_v2 = self_attention_v2(d, EMBEDDING, 2, false);
    const float other[] = {0.90F, 0.10F, 0.20F};
    const attn_tensor *value = &attn_module_find_parameter(sa_v2, "W_query.weight")->value;
    show_tensor(d, "W_query.weight", value, NULL);
    show(d, "attn_weights[1], sentence",
         attn_select(traced(d, sa_v2, make_inputs(d), "attn_weights"), 0, 1));
    show(d, "attn_weights[1], another end",
         attn_select(traced(d, sa_v2, sentence_ending_in(d, other), "attn_weights"), 0, 1));
    show_tensor(d, "W_query.weight", value, NULL);
    fresh_tape(d);
    attn_module_destroy(sa_v2);
}

static void evidence_mask(demo *d)
{
    manual_seed(d, 789);
    attn_module *sa_v2 = self_attention_v2(d, EMBEDDING, 2, false);
    bool memory[TOKENS][TOKENS];
    const attn_tensor mask = causal_mask(memory);
    const attn_var weights = causal_weights(causal_scores(d, sa_v2, make_inputs(d)), &mask);
    show_tokens(d, "attn_weights", weights);
    show(d, "row sums", attn_sum(weights, -1, false));
    fresh_tape(d);
    attn_module_destroy(sa_v2);
}

// One row of four scores of which the first two are allowed.
static void evidence_no_leak(demo *d)
{
    const float scores[] = {1.0F, 2.0F, 3.0F, 0.5F};
    const attn_var all = leaf(d, scores, 1, (int64_t[]){4});
    const attn_var allowed = attn_slice(all, 0, 0, 2);
    const attn_var kept = attn_slice(attn_softmax(all, -1), 0, 0, 2);
    show(d, "scores", all);
    show(d, "softmax of all four, first two", kept);
    show(d, "divided by their sum", attn_divide(kept, attn_sum(kept, 0, true)));
    show(d, "softmax of the first two alone", attn_softmax(allowed, -1));
}

// The spread of dot products of 64 numbers, and what each divisor makes of it.
static void evidence_head_dim(demo *d)
{
    manual_seed(d, 123);
    const attn_var query = randn_leaf(d, 2, (int64_t[]){64, 64});
    const attn_var key = randn_leaf(d, 2, (int64_t[]){64, 64});
    const attn_var scores = attn_matmul(query, attn_transpose(key, 0, 1)); // (64, 64)
    const double deviation = sqrt(attn_item(attn_mean_all(attn_multiply(scores, scores))));
    show_number(d, "std(q . k)", deviation);
    show_number(d, "std(q . k) / sqrt(64)", deviation / sqrt(64));
    show_number(d, "std(q . k) / sqrt(768)", deviation / sqrt(768));
}

static void evidence_view(demo *d)
{
    const attn_var x = randn_leaf(d, 4, (int64_t[]){2, 2, 6, 2});
    const attn_var transposed = attn_transpose(x, 1, 2);
    const attn_tensor before = attn_value(x);
    const attn_tensor after = attn_value(transposed);
    const attn_tensor copy = attn_value(attn_contiguous(transposed));
    char layout[128];
    attn_tensor_format_layout(&before, layout, sizeof layout);
    printf("  %-28s %s\n", "x", layout);
    attn_tensor_format_layout(&after, layout, sizeof layout);
    printf("  %-28s %s\n", "x.transpose(1, 2)", layout);
    attn_tensor_format_layout(&copy, layout, sizeof layout);
    printf("  %-28s %s\n", ".contiguous()", layout);
    must_tape(d);
    (void)attn_view(transposed, 3, (int64_t[]){2, 6, 4});
    printf("  %s\n", attn_tape_error(d->tape)->text);
    fresh_tape(d);
}

static void print_parameters(attn_module *module)
{
    char shape[SHAPE_TEXT];
    for (int64_t i = 0; i < attn_module_parameter_count(module); ++i) {
        const attn_parameter *p = attn_module_parameter(module, i);
        printf("    %-26s %s\n", p->name, shape_text(&p->value, shape));
    }
}

static void evidence_two_heads(demo *d)
{
    manual_seed(d, 123);
    attn_module *wrapper = multi_head_attention_wrapper(d, EMBEDDING, 2, TOKENS, 0.0, 2, false);
    attn_module *mha = multi_head_attention(d, EMBEDDING, 2, TOKENS, 0.0, 2, false);
    show_shape(d, "wrapper(x)", attn_module_apply(wrapper, make_batch(d)));
    print_parameters(wrapper);
    show_shape(d, "mha(x)", attn_module_apply(mha, make_batch(d)));
    print_parameters(mha);
    must_tape(d);
    fresh_tape(d);
    attn_module_destroy(wrapper);
    attn_module_destroy(mha);
}

static void evidence_gpt2(demo *d)
{
    manual_seed(d, 123);
    attn_module *mha = multi_head_attention(d, EMBEDDING, 2, TOKENS, 0.0, 2, false);
    show_shape(d, "x", make_batch(d));
    show_shape(d, "mha(x), d_out = 2, H = 2", attn_module_apply(mha, make_batch(d)));
    must_tape(d);
    fresh_tape(d);
    attn_module_destroy(mha);
    const gpt2_run run = gpt2_forward(d, 768, 12);
    char shape[SHAPE_TEXT];
    printf("  %-28s (2, 8, 768)\n", "x");
    printf("  %-28s %s\n", "mha(x), d_out = 768, H = 12", shape_text(&run.output, shape));
}

// ---- the dialogue -------------------------------------------------------------------------------

// One key on a terminal, one line otherwise.
static void wait_for_key(const demo *d)
{
    say(d, T_ST_PRESS);
    fflush(stdout);
    struct termios before;
    const bool keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
    if (keys) {
        struct termios raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        const int key = getchar();
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
        if (key == before.c_cc[VINTR]) {
            raise(SIGINT); // Ctrl-C, with the terminal as it was
        }
        return;
    }
    int character = 0;
    while (character != '\n' && character != EOF) {
        character = getchar();
    }
}

void selftest(demo *d, bool show_answers)
{
    static const struct {
        text_id question, answer;
        void (*evidence)(demo *);
    } items[] = {
        {T_ST1_QUESTION, T_ST1_ANSWER, evidence_first_numbers},
        {T_ST2_QUESTION, T_ST2_ANSWER, evidence_unit_vectors},
        {T_ST3_QUESTION, T_ST3_ANSWER, evidence_scaling},
        {T_ST4_QUESTION, T_ST4_ANSWER, evidence_two_weights},
        {T_ST5_QUESTION, T_ST5_ANSWER, evidence_mask},
        {T_ST6_QUESTION, T_ST6_ANSWER, evidence_no_leak},
        {T_ST7_QUESTION, T_ST7_ANSWER, evidence_head_dim},
        {T_ST8_QUESTION, T_ST8_ANSWER, evidence_view},
        {T_ST9_QUESTION, T_ST9_ANSWER, evidence_two_heads},
        {T_ST10_QUESTION, T_ST10_ANSWER, evidence_gpt2},
    };
    heading(d, "--selftest", T_ST_TITLE, "selftest.c");
    say(d, T_ST_INTRO);
    for (size_t i = 0; i < sizeof items / sizeof items[0]; ++i) {
        fresh_tape(d);
        step(d, T_ST_NUMBER, (int)i + 1);
        say(d, items[i].question);
        items[i].evidence(d);
        must_tape(d);
        if (!show_answers) {
            wait_for_key(d);
        }
        say(d, T_ST_ANSWER);
        say(d, items[i].answer);
    }
}
