#include "generate.h"

#include <stdbool.h>
#include <string.h>

#include "attn/version.h"

static void generate_man(const command *const *commands, FILE *out);
static void generate_bash(const command *const *commands, FILE *out);
static void generate_zsh(const command *const *commands, FILE *out);
static void generate_fish(const command *const *commands, FILE *out);
static void generate_options(const command *const *commands, FILE *out);

int generate(const command *const *commands, const char *what, FILE *out)
{
    static const struct {
        const char *name;
        void (*write)(const command *const *commands, FILE *out);
    } kinds[] = {{"man", generate_man},
                 {"bash", generate_bash},
                 {"zsh", generate_zsh},
                 {"fish", generate_fish},
                 {"options", generate_options}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (strcmp(what, kinds[i].name) == 0) {
            kinds[i].write(commands, out);
            return EXIT_OK;
        }
    }
    fprintf(stderr, "attn: --generate takes man, bash, zsh, fish or options\n");
    return EXIT_USAGE;
}

// Calls `each` for every option of a command.
typedef void (*row_writer)(const option_row *row, FILE *out);

static void for_each_row(const command *of, row_writer each, FILE *out)
{
    for (const option_group *const *group = of->groups; *group != NULL; group++) {
        for (const option_row *row = (*group)->rows; row->name != NULL; row++) {
            each(row, out);
        }
    }
}

static bool is_file(const option_row *row)
{
    return row->argument != NULL && strcmp(row->argument, "FILE") == 0;
}

static bool is_folder(const option_row *row)
{
    return row->argument != NULL && strcmp(row->argument, "DIR") == 0;
}

static bool has_choices(const option_row *row)
{
    return row->argument != NULL && strchr(row->argument, '|') != NULL;
}

// The choices with another character between them.
static void write_choices(const option_row *row, char between, FILE *out)
{
    for (const char *c = row->argument; *c != '\0'; c++) {
        fputc(*c == '|' ? between : *c, out);
    }
}

// ---- the list -----------------------------------------------------------------------------------

static void generate_options(const command *const *commands, FILE *out)
{
    for (; *commands != NULL; commands++) {
        for (const option_group *const *group = (*commands)->groups; *group != NULL; group++) {
            for (const option_row *row = (*group)->rows; row->name != NULL; row++) {
                fprintf(out, "%s --%s\n", (*commands)->name, row->name);
            }
        }
    }
}

// ---- man ----------------------------------------------------------------------------------------

// Text for troff: a hyphen that is one, no request at the start of a line.
static void write_troff(const char *text, FILE *out)
{
    bool start = true;
    for (const char *c = text; *c != '\0'; c++) {
        if (start && (*c == '.' || *c == '\'')) {
            fputs("\\&", out);
        }
        start = *c == '\n';
        if (*c == '\\') {
            fputs("\\e", out);
        } else if (*c == '-') {
            fputs("\\-", out);
        } else if (*c == '\n' && c[1] == '\n') {
            fputs("\n.PP\n", out);
            c++;
            start = true;
        } else {
            fputc(*c, out);
        }
    }
}

static void write_man_row(const option_row *row, FILE *out)
{
    fputs(".TP\n", out);
    if (row->letter != 0) {
        fprintf(out, "\\fB\\-%c\\fR, ", row->letter);
    }
    fputs("\\fB\\-\\-", out);
    write_troff(row->name, out);
    fputs("\\fR", out);
    if (row->argument != NULL) {
        fputs("=\\fI", out);
        write_troff(row->argument, out);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    write_troff(row->help, out);
    fputc('\n', out);
}

static void write_man_command(const command *of, FILE *out)
{
    fprintf(out, ".SS attn %s\n", of->name);
    fprintf(out, ".B attn %s\n[\\fIOPTION\\fR]...", of->name);
    fprintf(out, "%s%s\n.PP\n", *of->operands == '\0' ? "" : " ", of->operands);
    write_troff(of->description, out);
    fputc('\n', out);
    for (const option_group *const *group = of->groups; *group != NULL; group++) {
        fprintf(out, ".PP\n\\fI%s:\\fR\n", (*group)->heading);
        for (const option_row *row = (*group)->rows; row->name != NULL; row++) {
            write_man_row(row, out);
        }
    }
    fputs(".PP\nExample:\n.PP\n.nf\n", out);
    write_troff(of->example, out);
    fputs(".fi\n", out);
}

static void generate_man(const command *const *commands, FILE *out)
{
    fprintf(out, ".TH ATTN 1 \"\" \"attn %s\" \"User Commands\"\n", attn_version());
    fputs(".SH NAME\nattn \\- attention on tensors from files\n", out);
    fputs(".SH SYNOPSIS\n.B attn\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n", out);
    fputs(
        ".SH DESCRIPTION\nComputes attention, forward and in the float64 definition also backward, "
        "on tensors\nfrom .npy, .npz and .safetensors files; looks into these files, converts, "
        "compares and draws them.\n",
        out);
    fputs(".SH COMMANDS\n", out);
    for (const command *const *of = commands; *of != NULL; of++) {
        write_man_command(*of, out);
    }
    fputs(".SH EXIT STATUS\n.TP\n0\nSuccess; for check: no element differs.\n"
          ".TP\n1\ncheck: some elements differ.\n"
          ".TP\n2\nThe command line is wrong.\n"
          ".TP\n3\nA file cannot be read or written, or does not fit.\n",
          out);
    fputs(".SH ENVIRONMENT\n.TP\nATTN_CPU\nThe instruction set, as \\-\\-tier; portable, avx2, "
          "avx512 or neon.\n",
          out);
}

// ---- bash ---------------------------------------------------------------------------------------

static void write_bash_name(const option_row *row, FILE *out)
{
    fprintf(out, " --%s%s", row->name, row->argument == NULL ? "" : "=");
}

static void write_bash_values(const command *of, FILE *out)
{
    for (const option_group *const *group = of->groups; *group != NULL; group++) {
        for (const option_row *row = (*group)->rows; row->name != NULL; row++) {
            if (has_choices(row)) {
                fprintf(out, "    %s:--%s) words='", of->name, row->name);
                write_choices(row, ' ', out);
                fputs("' ;;\n", out);
            } else if (is_folder(row)) {
                fprintf(out, "    %s:--%s) kind=-d ;;\n", of->name, row->name);
            } else if (is_file(row)) {
                fprintf(out, "    %s:--%s) kind=-f ;;\n", of->name, row->name);
            }
        }
    }
}

static void generate_bash(const command *const *commands, FILE *out)
{
    fputs("# bash completion for attn\n_attn() {\n"
          "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
          "  local command=${COMP_WORDS[1]} words='' kind=''\n"
          "  COMPREPLY=()\n"
          "  if ((COMP_CWORD == 1)); then\n    mapfile -t COMPREPLY < <(compgen -W '",
          out);
    for (const command *const *of = commands; *of != NULL; of++) {
        fprintf(out, "%s ", (*of)->name);
    }
    fputs("help' -- \"$current\")\n    return\n  fi\n"
          "  if [[ $current == '=' ]]; then\n    current=''\n"
          "  elif [[ $previous == '=' ]]; then\n    previous=${COMP_WORDS[COMP_CWORD-2]}\n  fi\n"
          "  case $command:$previous in\n",
          out);
    for (const command *const *of = commands; *of != NULL; of++) {
        write_bash_values(*of, out);
    }
    fputs("  esac\n"
          "  if [[ -n $kind ]]; then\n"
          "    mapfile -t COMPREPLY < <(compgen \"$kind\" -- \"$current\")\n    return\n  fi\n"
          "  if [[ -z $words && $current == -* ]]; then\n    compopt -o nospace\n"
          "    case $command in\n",
          out);
    for (const command *const *of = commands; *of != NULL; of++) {
        fprintf(out, "    %s) words='", (*of)->name);
        for_each_row(*of, write_bash_name, out);
        fputs("' ;;\n", out);
    }
    fputs("    esac\n  fi\n"
          "  if [[ -n $words ]]; then\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
          "  else\n    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n  fi\n}\n"
          "complete -o filenames -F _attn attn\n",
          out);
}

// ---- zsh ----------------------------------------------------------------------------------------

// A help text between brackets and single quotes.
static void write_zsh_text(const char *text, FILE *out)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'') {
            fputs("'\\''", out);
        } else if (*c == '[' || *c == ']' || *c == ':' || *c == '\\') {
            fprintf(out, "\\%c", *c);
        } else {
            fputc(*c, out);
        }
    }
}

static void write_zsh_row(const option_row *row, FILE *out)
{
    const char *forms[2] = {row->letter != 0 ? "-" : NULL, "--"};
    for (int form = 0; form < 2; form++) {
        if (forms[form] == NULL) {
            continue;
        }
        fputs("        '", out);
        if (form == 0) {
            fprintf(out, "-%c%s", row->letter, row->argument == NULL ? "" : "+");
        } else {
            fprintf(out, "--%s%s", row->name, row->argument == NULL ? "" : "=");
        }
        fputc('[', out);
        write_zsh_text(row->help, out);
        fputc(']', out);
        if (has_choices(row)) {
            fputs(":choice:(", out);
            write_choices(row, ' ', out);
            fputc(')', out);
        } else if (is_file(row)) {
            fputs(":file:_files", out);
        } else if (is_folder(row)) {
            fputs(":folder:_files -/", out);
        } else if (row->argument != NULL) {
            fprintf(out, ":%s:", row->argument);
        }
        fputs("' \\\n", out);
    }
}

static void generate_zsh(const command *const *commands, FILE *out)
{
    fputs("#compdef attn\n_attn() {\n  local -a commands\n  commands=(\n", out);
    for (const command *const *of = commands; *of != NULL; of++) {
        fprintf(out, "    '%s:", (*of)->name);
        write_zsh_text((*of)->summary, out);
        fputs("'\n", out);
    }
    fputs("  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
          "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n",
          out);
    for (const command *const *of = commands; *of != NULL; of++) {
        fprintf(out, "    %s)\n      _arguments -s -S \\\n", (*of)->name);
        for_each_row(*of, write_zsh_row, out);
        fputs("        '*:file:_files' ;;\n", out);
    }
    fputs("  esac\n}\n_attn \"$@\"\n", out);
}

// ---- fish ---------------------------------------------------------------------------------------

static void write_fish_text(const char *text, FILE *out)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'' || *c == '\\') {
            fputc('\\', out);
        }
        fputc(*c, out);
    }
}

static void write_fish_row(const char *name, const option_row *row, FILE *out)
{
    fprintf(out, "complete -c attn -n '__fish_seen_subcommand_from %s' -l %s", name, row->name);
    if (row->letter != 0) {
        fprintf(out, " -s %c", row->letter);
    }
    if (has_choices(row)) {
        fputs(" -x -a '", out);
        write_choices(row, ' ', out);
        fputc('\'', out);
    } else if (is_folder(row)) {
        fputs(" -x -a '(__fish_complete_directories)'", out);
    } else if (is_file(row)) {
        fputs(" -r -F", out);
    } else if (row->argument != NULL) {
        fputs(" -x", out);
    }
    fputs(" -d '", out);
    write_fish_text(row->help, out);
    fputs("'\n", out);
}

static void generate_fish(const command *const *commands, FILE *out)
{
    fputs("# fish completion for attn\n", out);
    for (const command *const *of = commands; *of != NULL; of++) {
        fprintf(out, "complete -c attn -f -n __fish_use_subcommand -a %s -d '", (*of)->name);
        write_fish_text((*of)->summary, out);
        fputs("'\n", out);
    }
    for (const command *const *of = commands; *of != NULL; of++) {
        for (const option_group *const *group = (*of)->groups; *group != NULL; group++) {
            for (const option_row *row = (*group)->rows; row->name != NULL; row++) {
                write_fish_row((*of)->name, row, out);
            }
        }
    }
}
