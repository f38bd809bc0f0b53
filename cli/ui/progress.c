/* cli/ui/progress.c - the bar on stderr, and stopping when a signal asks. */
#include "ui/progress.h"
#include "ui/say.h"
#include "ui/text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FIRST_AFTER 0.3         /* seconds: shorter work shows no bar */
#define REDRAW      0.1

static volatile sig_atomic_t caught;

static void on_signal(int signal_number) { caught = signal_number; }

void signals_catch(void)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        struct sigaction old, new = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
        sigemptyset(&new.sa_mask);
        if (sigaction(stops[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)     /* respects nohup */
            sigaction(stops[i], &new, NULL);
    }
}

bool signals_came(void) { return caught != 0; }

void signals_pass_on(void)
{
    if (!caught)
        return;
    signal(caught, SIG_DFL);
    raise(caught);
}

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(progress *p, bool quiet)
{
    *p = (progress){ .shown = !quiet && isatty(STDERR_FILENO), .began = now() };
    p->last = p->began + FIRST_AFTER - REDRAW;
}

static int terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static void draw(const progress *p, uint64_t done, uint64_t total, double time)
{
    double part = total > 0 ? (double)done / (double)total : 1;
    double elapsed = time - p->began, seconds = part > 0 ? elapsed / part - elapsed : 0;
    long left = seconds < 1e6 ? (long)(seconds + 0.99) : 1000000;
    char tail[120];
    int used = snprintf(tail, sizeof tail, " %3.0f%%  %s/s  %ld:%02ld left", 100 * part,
                        human_size((uint64_t)((double)done / elapsed)).s, left / 60, left % 60);
    int bar = terminal_width() - used - 4;
    bar = bar > 60 ? 60 : bar;
    fputs("\r", stderr);
    if (bar > 5) {
        static const char filled[] = "############################################################";
        int full = (int)(part * bar);
        fprintf(stderr, "[%.*s%*s]", full, filled, bar - full, "");
    }
    fprintf(stderr, "%s\033[K", tail);
}

int progress_step(void *context, uint64_t done, uint64_t total)
{
    progress *p = context;
    if (p->shown) {
        double time = now();
        if (time - p->last >= REDRAW) {
            draw(p, done, total, time);
            p->last = time;
            p->drawn = true;
        }
    }
    return signals_came();
}

void progress_end(progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

void progress_note(void *context, const char *path, const char *text)
{
    if (context)
        progress_end(context);
    say("%s: %s", escaped(path), text);
}
