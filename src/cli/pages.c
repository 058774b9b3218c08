/* pages.c - the commands one after the other, and all of them as JSON. */
#include "cli/pages.h"

#include <string.h>

/* ---- from one to the next ---- */

void tp_pages_walk(tp_pages_see see)
{
    for (size_t i = 0; i < tp_n_commands; i++) {
        see(tp_commands[i].usage, &tp_commands[i], NULL);
        for (size_t k = 0; k < tp_n_command_parts; k++)
            if (tp_command_parts[k].usage &&
                strcmp(tp_command_parts[k].command, tp_commands[i].name) == 0)
                see(tp_command_parts[k].usage, &tp_commands[i], tp_command_parts[k].part);
    }
}

bool tp_takes_file(const tp_flag *flag)
{
    static const char *const kinds[] = {"FILE", "FOLDER", "DIR", "PATH", "OUT", "BINARY"};
    for (size_t i = 0; flag->argument && i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(flag->argument, kinds[i]))
            return true;
    return false;
}

/* ---- JSON ---- */

static void put_string(const char *text)
{
    putchar('"');
    for (const char *p = text; *p; p++)
        if (*p == '\n')
            printf("\\n");
        else
            printf(*p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    putchar('"');
}

static void put_member(const char *name, const char *value)
{
    printf("\"%s\": ", name);
    if (value)
        put_string(value);
    else
        printf("null");
}

static void put_flag(const tp_flag *f, bool is_first)
{
    char letter[2] = {f->letter, 0};
    printf("%s\n      {", is_first ? "" : ",");
    put_member("name", f->name);
    printf(", ");
    put_member("letter", f->letter ? letter : NULL);
    printf(", ");
    put_member("argument", f->argument);
    printf(", ");
    put_member("choices", f->choices);
    printf(", ");
    put_member("summary", f->doc);
    putchar('}');
}

static bool is_first_object;

static void put_command(const tp_usage *usage, const tp_command *command, const char *part)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", command->name, part ? " " : "", part ? part : "");
    printf("%s  {\n    ", is_first_object ? "[\n" : ",\n");
    is_first_object = false;
    put_member("command", name);
    printf(",\n    ");
    put_member("arguments", part ? usage->arguments : command->arguments);
    printf(",\n    ");
    put_member("summary", part ? usage->summary : command->summary);
    printf(",\n    \"options\": [");
    for (const tp_flag *f = usage->flags; f->name; f++)
        put_flag(f, f == usage->flags);
    put_flag(tp_cli_color_flag(), !usage->flags->name);
    printf("\n    ]\n  }");
}

void tp_print_commands_json(void)
{
    is_first_object = true;
    tp_pages_walk(put_command);
    printf("\n]\n");
}
