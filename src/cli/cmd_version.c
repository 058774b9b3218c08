/* cmd_version.c - `temper version`: which program this is, and what it runs on. */
#include "cli/commands.h"
#include "temper/program.h"

static const tp_flag flags[] = {{.name = "json", .doc = "as JSON", .type = TP_FLAG_BOOL}, {0}};

static int execute(const void *given, char **words, int n)
{
    const bool *json = given;
    (void)words, (void)n;
    const char *isa = tp_cpu_best_isa();
    printf(*json ? "{\n  \"version\": \"%s\",\n  \"compiler\": \"%s\",\n  \"cpu\": \"%s\",\n"
                   "  \"isa\": \"%s\"\n}\n"
                 : "temper %s, compiler %s\nthis machine: %s, %s\n",
           TEMPER_VERSION, __VERSION__, tp_cpu_model(), isa);
    return 0;
}

const tp_usage tp_usage_version = {.command = "version",
                                   .arguments = "",
                                   .summary = "Version, compiler and instruction sets.",
                                   .flags = flags,
                                   .size = sizeof(bool),
                                   .run = execute};
