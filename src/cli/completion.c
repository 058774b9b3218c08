/* completion.c - completions for bash, zsh and fish, from the tables of flags. */
#include <string.h>

#include "cli/pages.h"

/* Parts of a command and the words that its arguments may be, with a blank behind each. */
static void put_words(const tp_usage *usage, const char *command)
{
    for (size_t k = 0; k < tp_n_command_parts; k++)
        if (strcmp(tp_command_parts[k].command, command) == 0)
            printf("%s ", tp_command_parts[k].part);
    for (size_t i = 0; usage->word && usage->word(i); i++)
        printf("%s ", usage->word(i));
}

/* Texts in single quotes: what ends them, and what `escaped` says, gets a backslash. */
static void put_quoted(const char *text, const char *escaped)
{
    for (const char *p = text; *p && *p != '\n'; p++)
        if (*p == '\'')
            printf("'\\''");
        else
            printf(strchr(escaped, *p) ? "\\%c" : "%c", *p);
}

static bool takes_recipe(const tp_usage *usage) { return strstr(usage->arguments, "CONFIG"); }

/* ---- bash ---- */

static const char bash_head[] =
    "# bash completion for temper; made by 'temper help --completion bash'.\n"
    "\n"
    "_temper_offer() # WORDS: those that begin with what was typed\n"
    "{\n"
    "    local word\n"
    "    for word in $1; do\n"
    "        [[ $word == \"$cur\"* ]] && COMPREPLY+=(\"$word\")\n"
    "    done\n"
    "}\n"
    "\n"
    "_temper_files()\n"
    "{\n"
    "    local file\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    while IFS= read -r file; do\n"
    "        COMPREPLY+=(\"$file\")\n"
    "    done < <(compgen -f -- \"$cur\")\n"
    "}\n"
    "\n"
    "_temper_recipe() # recipes and files; behind the first word keys, and files as their values\n"
    "{\n"
    "    if [[ -n $is_value ]]; then\n"
    "        _temper_files\n"
    "    elif [[ $n_words == 0 ]]; then\n"
    "        _temper_offer \"$(\"$program\" help --list recipes 2>/dev/null)\"\n"
    "        _temper_files\n"
    "    else\n"
    "        compopt -o nospace 2>/dev/null\n"
    "        _temper_offer \"$(\"$program\" help --list keys 2>/dev/null)\"\n"
    "    fi\n"
    "}\n"
    "\n"
    "_temper()\n"
    "{\n"
    "    local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} option= command= i\n"
    "    local prev= n_words=0 is_value=\n"
    "    COMPREPLY=()\n"
    "    [[ $COMP_CWORD -gt 0 ]] && prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    # '=' is a word of its own, unless somebody took it out of COMP_WORDBREAKS.\n"
    "    if [[ $cur == = ]]; then\n"
    "        option=$prev cur= is_value=yes\n"
    "    elif [[ $prev == = ]]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD - 2]} is_value=yes\n"
    "    elif [[ $prev == -* ]]; then\n"
    "        option=$prev\n"
    "    fi\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        [[ ${COMP_WORDS[i]} == [-=]* || ${COMP_WORDS[i - 1]} == = ]] && continue\n"
    "        if [[ -z $command ]]; then\n"
    "            command=${COMP_WORDS[i]}\n"
    "        else\n"
    "            case \"$command ${COMP_WORDS[i]}\" in\n"
    "            %s) command+=\" ${COMP_WORDS[i]}\" ;;\n"
    "            *) n_words=$((n_words + 1)) ;;\n"
    "            esac\n"
    "        fi\n"
    "    done\n"
    "    case \"$command:$option\" in\n"
    "    *:--color) _temper_offer 'auto always never'; return ;;\n";

static char bash_name[64];

static void name_it(const tp_command *command, const char *part)
{
    snprintf(bash_name, sizeof bash_name, "%s%s%s", command->name, part ? " " : "",
             part ? part : "");
}

static void put_bash_values(const tp_usage *usage, const tp_command *command, const char *part)
{
    name_it(command, part);
    for (const tp_flag *f = usage->flags; f->name; f++) {
        if (!f->argument)
            continue;
        printf("    '%s:--%s'", bash_name, f->name);
        if (f->letter)
            printf(" | '%s:-%c'", bash_name, f->letter);
        if (f->choices)
            printf(") _temper_offer '%s'; return ;;\n", f->choices);
        else
            printf(") %sreturn ;;\n", tp_takes_file(f) ? "_temper_files; " : "");
    }
}

static void put_bash_options(const tp_usage *usage, const tp_command *command, const char *part)
{
    name_it(command, part);
    printf("        '%s') _temper_offer '", bash_name);
    for (const tp_flag *f = usage->flags; f->name; f++)
        printf("--%s ", f->name);
    printf("--color --help' ;;\n");
}

static void put_bash_words(const tp_usage *usage, const tp_command *command, const char *part)
{
    name_it(command, part);
    printf("    '%s')", bash_name);
    if (strcmp(bash_name, "help") == 0) {
        printf(" _temper_offer \"$(\"$program\" help --list commands)\" ;;\n");
        return;
    }
    printf(" _temper_offer '");
    put_words(usage, part ? "" : command->name);
    printf("'; %s ;;\n", takes_recipe(usage) ? "_temper_recipe" : "_temper_files");
}

static void put_bash_parts(void)
{
    const char *between = "";
    for (size_t k = 0; k < tp_n_command_parts; k++)
        if (tp_command_parts[k].usage) {
            printf("%s'%s %s'", between, tp_command_parts[k].command, tp_command_parts[k].part);
            between = " | ";
        }
}

static void print_bash(void)
{
    const char *hole = strstr(bash_head, "%s");
    printf("%.*s", (int)(hole - bash_head), bash_head);
    put_bash_parts();
    printf("%s", hole + 2);
    tp_pages_walk(put_bash_values);
    printf("    esac\n    if [[ $cur == -* ]]; then\n        case \"$command\" in\n");
    tp_pages_walk(put_bash_options);
    printf(
        "        esac\n        return\n    fi\n    case \"$command\" in\n    '') _temper_offer '");
    for (size_t i = 0; i < tp_n_commands; i++)
        printf("%s ", tp_commands[i].name);
    printf("' ;;\n");
    tp_pages_walk(put_bash_words);
    printf("    esac\n}\n\ncomplete -F _temper temper\n");
}

/* ---- zsh ---- */

static const char zsh_head[] =
    "#compdef temper\n"
    "# zsh completion for temper; made by 'temper help --completion zsh'.\n"
    "\n"
    "_temper_recipes() # recipes and files\n"
    "{\n"
    "    local -a recipes\n"
    "    recipes=(${(f)\"$($_temper_program help --list recipes 2>/dev/null)\"})\n"
    "    _alternative 'recipes:recipe:compadd -a recipes' 'files:file:_files'\n"
    "}\n"
    "\n"
    "_temper_keys()\n"
    "{\n"
    "    local -a keys\n"
    "    keys=(${(f)\"$($_temper_program help --list keys 2>/dev/null)\"})\n"
    "    compadd -S '' -a keys\n"
    "}\n"
    "\n"
    "_temper()\n"
    "{\n"
    "    local curcontext=$curcontext state line _temper_program=${(Q)words[1]} part\n"
    "    local -a commands\n"
    "    commands=(\n";

static void put_zsh_flag(const tp_flag *f)
{
    if (f->letter)
        printf("            '(-%c --%s)'{-%c%s,--%s%s}'[", f->letter, f->name, f->letter,
               f->argument ? "+" : "", f->name, f->argument ? "=" : "");
    else
        printf("            '%s--%s%s[", f->type == TP_FLAG_LIST ? "*" : "", f->name,
               f->argument ? "=" : "");
    put_quoted(f->doc, "[]\\");
    putchar(']');
    if (f->argument) {
        putchar(':');
        put_quoted(f->argument, ":\\");
        if (f->choices)
            printf(":(%s)", f->choices);
        else
            printf(":%s", tp_takes_file(f) ? "_files" : " ");
    }
    printf("' \\\n");
}

static void put_zsh_case(const tp_usage *usage, const tp_command *command, const char *part)
{
    printf("    '%s%s%s')\n        _arguments \\\n", command->name, part ? " " : "",
           part ? part : "");
    for (const tp_flag *f = usage->flags; f->name; f++)
        put_zsh_flag(f);
    put_zsh_flag(tp_cli_color_flag());
    printf("            '(-h --help)'{-h,--help}'[its options]' \\\n");
    if (takes_recipe(usage))
        printf("            '1:recipe:_temper_recipes' '*:key:_temper_keys'");
    else if (strcmp(command->name, "help") == 0)
        printf("            '1:command:(${commands%%%%:*})'");
    else if (usage->max_words != 0)
        printf("            '*:file:_files'");
    else
        printf("            ':'");
    printf(" && return\n        ;;\n");
}

static void put_zsh_words(const tp_usage *usage, const tp_command *command, const char *part)
{
    bool has_part = false;
    for (size_t k = 0; k < tp_n_command_parts; k++)
        has_part = has_part || strcmp(tp_command_parts[k].command, command->name) == 0;
    if (part || (!has_part && !usage->word))
        return;
    printf("    %s) compadd -- ", command->name);
    put_words(usage, command->name);
    printf(";;\n");
}

static void print_zsh(void)
{
    printf("%s", zsh_head);
    for (size_t i = 0; i < tp_n_commands; i++) {
        printf("        '%s:", tp_commands[i].name);
        put_quoted(tp_commands[i].summary, ":\\");
        printf("'\n");
    }
    printf("    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n"
           "        return\n    fi\n    shift words\n    ((CURRENT--))\n    part=$words[1]\n"
           "    case \"$words[1] ${words[2]-}\" in\n    ");
    put_bash_parts();
    printf(") ((CURRENT > 2)) && { part=\"$words[1] $words[2]\"; shift words; ((CURRENT--)); } ;;\n"
           "    esac\n    ((CURRENT > 1)) && [[ $words[CURRENT] != -* && $words[CURRENT-1] != -* "
           "]] && case $part in\n");
    tp_pages_walk(put_zsh_words);
    printf("    esac\n    case $part in\n");
    tp_pages_walk(put_zsh_case);
    printf("    esac\n}\n\nif [ \"$funcstack[1]\" = _temper ]; then\n    _temper \"$@\"\nelse\n"
           "    compdef _temper temper\nfi\n");
}

/* ---- fish ---- */

static const char fish_head[] =
    "# fish completion for temper; made by 'temper help --completion fish'.\n"
    "\n"
    "function __temper_at # COMMAND [PART]: is this what is being typed?\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -ge 2; and test \"$words[2]\" = $argv[1]; or return 1\n"
    "    if set -q argv[2]\n"
    "        test (count $words) -ge 3; and test \"$words[3]\" = $argv[2]\n"
    "    end\n"
    "end\n"
    "\n"
    "function __temper_list # WHAT: recipes, keys or commands\n"
    "    set -l words (commandline -opc)\n"
    "    $words[1] help --list $argv[1] 2>/dev/null\n"
    "end\n"
    "\n"
    "complete -c temper -f\n";

static void put_fish_condition(const tp_command *command, const char *part)
{
    printf("complete -c temper -n '__temper_at %s%s%s", command->name, part ? " " : "",
           part ? part : "");
    for (size_t k = 0; !part && k < tp_n_command_parts; k++)
        if (tp_command_parts[k].usage && strcmp(tp_command_parts[k].command, command->name) == 0)
            printf("; and not __temper_at %s %s", command->name, tp_command_parts[k].part);
    printf("'");
}

static void put_fish_text(const char *text)
{
    printf(" -d '");
    for (const char *p = text; *p; p++)
        printf(strchr("'\\", *p) ? "\\%c" : "%c", *p);
    printf("'\n");
}

static void put_fish_flag(const tp_flag *f)
{
    printf(" -l %s", f->name);
    if (f->letter)
        printf(" -s %c", f->letter);
    if (f->choices)
        printf(" -x -a '%s'", f->choices);
    else if (f->argument)
        printf(tp_takes_file(f) ? " -r -F" : " -x");
    put_fish_text(f->doc);
}

static void put_fish(const tp_usage *usage, const tp_command *command, const char *part)
{
    printf("\n");
    for (const tp_flag *f = usage->flags; f->name; f++) {
        put_fish_condition(command, part);
        put_fish_flag(f);
    }
    put_fish_condition(command, part);
    put_fish_flag(tp_cli_color_flag());
    put_fish_condition(command, part);
    if (takes_recipe(usage))
        printf(" -F -a '(__temper_list recipes; __temper_list keys)'\n");
    else if (strcmp(command->name, "help") == 0)
        printf(" -a '(__temper_list commands)'\n");
    else
        printf(usage->max_words ? " -F\n" : " -f\n");
    if (!part) {
        put_fish_condition(command, part);
        printf(" -a '");
        put_words(usage, command->name);
        printf("'\n");
    }
}

static void print_fish(void)
{
    printf("%scomplete -c temper -s h -l help -d 'its options'\n\n", fish_head);
    for (size_t i = 0; i < tp_n_commands; i++) {
        printf("complete -c temper -n __fish_use_subcommand -a %s", tp_commands[i].name);
        put_fish_text(tp_commands[i].summary);
    }
    tp_pages_walk(put_fish);
}

bool tp_print_completion(const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else if (strcmp(shell, "fish") == 0)
        print_fish();
    else
        return false;
    return true;
}
