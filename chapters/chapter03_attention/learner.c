// learner.c: embeddings, attention, readout.
#include "learner.h"

#include <stdio.h>

#include "attention.h"

void learner_create(demo *d, learner *l, int64_t heads, bool causal, int64_t answers)
{
    attn_error error = {0};
    manual_seed(d, LEARNER_SEED);
    l->answers = answers;
    own_parameter_create(d, &l->token, "token", VOCABULARY, WIDTH, 1);
    own_parameter_create(d, &l->position, "position", SEQUENCE, WIDTH, 1);
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = WIDTH;
    config.d_out = WIDTH;
    config.context_length = SEQUENCE;
    config.num_heads = heads;
    config.causal = causal;
    l->attention = multi_head_attention_of(d, &config);
    must(attn_linear_create(d->context, WIDTH, answers * VOCABULARY, true, ATTN_F32, d->generator,
                            &l->readout, &error),
         &error);
}

void learner_destroy(demo *d, learner *l)
{
    own_parameter_destroy(d, &l->token);
    own_parameter_destroy(d, &l->position);
    attn_module_destroy(l->attention);
    attn_module_destroy(l->readout);
}

void learner_add(learner *l, attn_optimizer *optimizer, const char *prefix)
{
    attn_error error = {0};
    attn_parameter *const embeddings[] = {&l->token, &l->position};
    for (int i = 0; i < 2; ++i) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", prefix, embeddings[i]->name);
        must(attn_optimizer_add_parameter(optimizer, name, embeddings[i], &error), &error);
    }
    attn_module *const modules[] = {l->attention, l->readout};
    static const char *const names[] = {"attention.", "readout."};
    for (int i = 0; i < 2; ++i) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", prefix, names[i]);
        must(attn_optimizer_add_module(optimizer, name, modules[i], &error), &error);
    }
}

// Token plus position: (batch, SEQUENCE, WIDTH).
static attn_var embed(demo *d, learner *l, const attn_tensor *tokens)
{
    const attn_var token = attn_borrow(d->tape, &l->token.value, &l->token.grad);
    const attn_var position = attn_borrow(d->tape, &l->position.value, &l->position.grad);
    return attn_add(attn_embedding(token, tokens), position);
}

attn_var learner_logits(demo *d, learner *l, const attn_tensor *tokens)
{
    const attn_var context = attn_module_apply(l->attention, embed(d, l, tokens));
    const attn_var logits = attn_module_apply(l->readout, context);
    const int64_t shape[] = {tokens->shape[0], SEQUENCE, l->answers, VOCABULARY};
    return attn_view(logits, 4, shape);
}

attn_var learner_weights(demo *d, learner *l, const attn_tensor *tokens)
{
    const attn_var x = embed(d, l, tokens);
    return attn_select(traced(d, l->attention, x, "attn_weights"), 0, 0);
}
