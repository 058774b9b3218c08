/* http_kept.c - a few answers by their addresses. */
#include "instrument/serve/http_kept.h"

#include <stdlib.h>
#include <string.h>

static const double immutable_s = 60, moment_s = 0.5, cost_times = 10;

static bool is_good(const tp_http_kept *a, uint64_t n_news, double now_s)
{
    double age = now_s - a->made_s;
    if (age < cost_times * a->cost_s)
        return true;
    return a->is_immutable ? age < immutable_s : age < moment_s && a->n_news == n_news;
}

void *tp_http_kept_find(const tp_http_keeper *k, const char *key, uint64_t n_news, double now_s)
{
    for (int i = 0; i < TP_HTTP_KEPT; i++)
        if (k->places[i].key && strcmp(k->places[i].key, key) == 0)
            return is_good(&k->places[i], n_news, now_s) ? k->places[i].answer : NULL;
    return NULL;
}

static void drop(const tp_http_keeper *k, tp_http_kept *a)
{
    if (a->key)
        k->release(a->answer);
    free(a->key);
    *a = (tp_http_kept){0};
}

void tp_http_kept_add(tp_http_keeper *k, const tp_http_kept *fresh)
{
    tp_http_kept *place = &k->places[0];
    for (int i = 0; i < TP_HTTP_KEPT; i++) {
        tp_http_kept *a = &k->places[i];
        if (a->key && strcmp(a->key, fresh->key) == 0) {
            place = a;
            break;
        }
        if (place->key && (!a->key || a->made_s < place->made_s))
            place = a;
    }
    drop(k, place);
    *place = *fresh;
}

void tp_http_kept_release(tp_http_keeper *k)
{
    for (int i = 0; i < TP_HTTP_KEPT; i++)
        drop(k, &k->places[i]);
}
