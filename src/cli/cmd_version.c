/* cmd_version.c - `temper version`: which program this is, and what it runs on. */
#include "cli/cli.h"
#include "temper/program.h"

static const tp_flag flags[] = {{.name = "json", .doc = "as JSON", .type = TP_FLAG_BOOL}, {0}};

int tp_cmd_version(int argc, char **argv)
{
    bool json = false;
    char *words[argc + 1];
    const tp_usage usage = {.command = "version",
                            .arguments = "",
                            .summary = "Version, compiler and instruction sets.",
                            .flags = flags};
    int n = tp_cli_parse(&usage, argc, argv, &json, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    const char *isa = tp_cpu_best_isa();
    printf(json ? "{\n  \"version\": \"%s\",\n  \"compiler\": \"%s\",\n  \"cpu\": \"%s\",\n"
                  "  \"isa\": \"%s\"\n}\n"
                : "temper %s (compiler %s; this machine: %s, %s)\n",
           TEMPER_VERSION, __VERSION__, tp_cpu_model(), isa);
    return 0;
}
