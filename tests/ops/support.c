/* support.c - which kernels each op has, as a Markdown table. */
#include "ops/bench.h"

static void print_kernels(const tp_backend *backend, tp_op op, tp_isa isa)
{
    const char *separator = " ";
    for (size_t k = 0; k < count_kernels(backend); k++) {
        const tp_kernel *kernel = backend->kernels[k];
        if (kernel->op != op || kernel->isa != isa)
            continue;
        printf("%s`%s`", separator, kernel->name);
        separator = ", ";
    }
    printf(" |");
}

void print_support(void)
{
    printf("| op | ref |");
    for (tp_isa isa = TP_ISA_PORTABLE; isa < TP_ISA_COUNT; isa++)
        printf(" cpu, %s |", tp_isa_name(isa));
    printf("\n| --- | --- |");
    for (tp_isa isa = TP_ISA_PORTABLE; isa < TP_ISA_COUNT; isa++)
        printf(" --- |");
    printf("\n");
    for (int op = 0; op < TP_OP_COUNT; op++) {
        if (tp_ops[op]->traits & (TP_OP_SOURCE | TP_OP_VIEW))
            continue;
        printf("| `%s` |", tp_ops[op]->name);
        print_kernels(&tp_backend_ref, (tp_op)op, TP_ISA_PORTABLE);
        for (tp_isa isa = TP_ISA_PORTABLE; isa < TP_ISA_COUNT; isa++)
            print_kernels(&tp_backend_cpu, (tp_op)op, isa);
        printf("\n");
    }
}
