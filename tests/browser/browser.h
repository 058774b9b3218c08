/* browser.h - Chromium without a window, driven by its DevTools protocol over two pipes.
 *
 * Nothing is waited for by the clock: each call returns when the browser has answered. */
#ifndef TP_TESTS_BROWSER_BROWSER_H
#define TP_TESTS_BROWSER_BROWSER_H

#include "base/strings.h"

typedef struct browser browser;

/* NULL: there is none, or it does not start; `*ret_why` is the reason.  `folder` is for its files.
 */
browser *browser_open(const char *folder, int width, int height, const char **ret_why);
void browser_close(browser *b);

/* A page of its own, blank, which is spoken to from now on; the number of the page. */
int browser_new_page(browser *b);
void browser_turn_to(browser *b, int page);

/* Until the answer has begun: scripts run in the new page from then on. */
void browser_go(browser *b, const char *url);
/* The value of an expression of JavaScript as JSON text, of promises what they become; valid until
 * the next call.  Exceptions are "error". */
const char *browser_value(browser *b, const char *expression);
/* Ask until the expression is true. */
void browser_wait(browser *b, const char *expression);
void browser_key(browser *b, const char *key, const char *text); /* text NULL: no character */
/* What is seen, a WebP in base64. */
void browser_see(browser *b, tp_buf *out);
/* What went wrong in pages since the start: exceptions and errors of the console, "" for nothing.
 */
const char *browser_faults(const browser *b);

#endif
