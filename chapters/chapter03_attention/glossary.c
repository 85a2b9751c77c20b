// glossary.c: the chapter's terms in one sentence each.
#include <stdio.h>

#include "print.h"
#include "sections.h"

void glossary(demo *d)
{
    static const text_id entries[][2] = {
        {T_GLO_SELF_ATTENTION, T_GLO_SELF_ATTENTION_IS},
        {T_GLO_CONTEXT_VECTOR, T_GLO_CONTEXT_VECTOR_IS},
        {T_GLO_SCORE, T_GLO_SCORE_IS},
        {T_GLO_WEIGHT, T_GLO_WEIGHT_IS},
        {T_GLO_PARAMETER, T_GLO_PARAMETER_IS},
        {T_GLO_QUERY, T_GLO_QUERY_IS},
        {T_GLO_KEY, T_GLO_KEY_IS},
        {T_GLO_VALUE, T_GLO_VALUE_IS},
        {T_GLO_SCALED, T_GLO_SCALED_IS},
        {T_GLO_CAUSAL, T_GLO_CAUSAL_IS},
        {T_GLO_BUFFER, T_GLO_BUFFER_IS},
        {T_GLO_DROPOUT, T_GLO_DROPOUT_IS},
        {T_GLO_HEAD, T_GLO_HEAD_IS},
        {T_GLO_HEAD_DIM, T_GLO_HEAD_DIM_IS},
        {T_GLO_BATCHED, T_GLO_BATCHED_IS},
        {T_GLO_OUT_PROJ, T_GLO_OUT_PROJ_IS},
    };
    heading(d, "--glossary", T_GLO_TITLE, "glossary.c");
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
        say(d, entries[i][0]);
        say(d, entries[i][1]);
        putchar('\n');
    }
}
