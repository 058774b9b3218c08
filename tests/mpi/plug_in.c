/* plug_in.c - PLUG_IN: the transport over MPI, of one process with itself: more messages on their way at once than any run of few
 * ranks has, as when a rank tells hundreds of others that it failed. */
#include <dlfcn.h>
#include <stdio.h>

#include "engine/comm/transport.h"

enum { MANY = 700, TAG = 5 };

static int fail(const char *what, int i)
{
    fprintf(stderr, "%s %d failed\n", what, i);
    return 1;
}

int main(int argc, char **argv)
{
    static int sent[MANY], received[MANY], requests[2 * MANY];
    int rank, size;
    char why[200] = "";
    tp_transport_fn *table = NULL;
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (library)
        *(void **)&table = dlsym(library, TP_TRANSPORT_SYMBOL);
    if (!table)
        return fail("loading", 0);
    tp_transport *t = table();
    if (t->open(t->context, &rank, &size, why, sizeof why) != 0 || rank != 0 || size != 1)
        return fail(why, 0);
    for (int i = 0; i < MANY; i++) {
        sent[i] = i + 1;
        requests[i] = t->receive(t->context, &received[i], sizeof received[i], 0, TAG);
        requests[MANY + i] = t->send(t->context, &sent[i], sizeof sent[i], 0, TAG);
        if (requests[i] < 0 || requests[MANY + i] < 0)
            return fail("request", i);
    }
    for (int i = 0; i < 2 * MANY; i++) {
        int done = 0;
        while (!done)
            done = t->test(t->context, requests[i]);
        if (done < 0)
            return fail("message", i);
    }
    for (int i = 0; i < MANY; i++)
        if (received[i] != i + 1)
            return fail("the content of message", i);
    t->close(t->context);
    return 0;
}
