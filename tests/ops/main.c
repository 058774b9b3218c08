/* main.c - test_ops: asks one question of bench.h; see its head. */
#include "ops/bench.h"

#include <string.h>

enum { SKIPPED = 77 }; /* SKIP_RETURN_CODE of the tests */

static int usage(void)
{
    fprintf(stderr, "usage: test_ops --gradients [--op OP]\n"
                    "       test_ops --backend NAME [--isa LEVEL] [--op OP]\n"
                    "       test_ops --detection\n"
                    "       test_ops --perf NAME [--op OP]\n"
                    "       test_ops --support\n");
    return 2;
}

static int check(tp_arena *arena, const char *name, const char *level, const char *only)
{
    const tp_backend *backend = tp_backend_find(name);
    tp_isa isa = TP_ISA_PORTABLE;
    if (!backend || (level && !tp_isa_parse(level, &isa)))
        return usage();
    if (level && isa > tp_cpu_detect()) {
        printf("skipped: this machine has no %s\n", level);
        return SKIPPED;
    }
    if (level && tp_cpu_force_isa(isa, NULL) != TP_OK)
        return usage();
    int n_checked = 0;
    int n_failures = check_backend(arena, backend, only, &n_checked);
    printf("%s at %s: %d checks, %d failures\n", name, tp_isa_name(tp_cpu_isa()), n_checked,
           n_failures);
    return n_failures > 0 || n_checked == 0;
}

int main(int argc, char **argv)
{
    const char *question = argc > 1 ? argv[1] : "", *subject = NULL, *level = NULL, *only = NULL;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--op") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--isa") == 0 && i + 1 < argc)
            level = argv[++i];
        else if (!subject)
            subject = argv[i];
        else
            return usage();
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    tp_arena arena;
    tp_error err;
    if (tp_arena_init(&arena, (size_t)16 << 30, &err) != TP_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    if (strcmp(question, "--gradients") == 0)
        return check_gradients(&arena, only) > 0;
    if (strcmp(question, "--backend") == 0 && subject)
        return check(&arena, subject, level, only);
    if (strcmp(question, "--detection") == 0)
        return check_detection(&arena, &faulty_backend) > 0;
    if (strcmp(question, "--perf") == 0 && subject && tp_backend_find(subject)) {
        measure_backend(&arena, tp_backend_find(subject), only);
        return 0;
    }
    if (strcmp(question, "--support") == 0) {
        print_support();
        return 0;
    }
    return usage();
}
