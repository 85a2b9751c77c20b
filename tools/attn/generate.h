// generate.h: the man page and the completions, from the commands' own tables.
#ifndef ATTN_TOOL_GENERATE_H
#define ATTN_TOOL_GENERATE_H

#include <stdio.h>

#include "arguments.h"

// `what`: "man", "bash", "zsh", "fish", or "options": every command's options, one "COMMAND OPTION"
// a line. Returns an exit status; an unknown word is EXIT_USAGE.
int generate(const command *const *commands, const char *what, FILE *out);

#endif
