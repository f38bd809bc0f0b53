/* cli/ui/progress.c - the bar on stderr, and stopping when a signal asks. */
#include "ui/progress.h"
#include "ui/say.h"
#include "ui/text.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FIRST_AFTER 0.3         /* seconds: shorter work shows no bar */
#define REDRAW      0.1
#define TICK        0.5         /* between drawings while nothing is heard */
#define GRACE       0.25        /* for the work to stop when a signal asks */

static void progress_tick(void);
static volatile sig_atomic_t caught;
static sem_t asked;             /* to stop */
static pthread_mutex_t drawing = PTHREAD_MUTEX_INITIALIZER;
static progress *current;       /* the bar that may be drawn, or NULL; under `drawing` */

static void on_signal(int signal_number)
{
    caught = signal_number;
    sem_post(&asked);
}

static struct timespec seconds_from_now(double seconds)
{
    double then = now() + seconds;
    time_t whole = (time_t)then;
    return (struct timespec){ .tv_sec = whole, .tv_nsec = (long)((then - (double)whole) * 1e9) };
}

/* A call that is running, such as a compressor's, is not waited for. */
static void end_now(void)
{
    const struct timespec until = seconds_from_now(GRACE);
    sigset_t all;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    pthread_mutex_lock(&drawing);       /* nothing is drawn any more */
    tn_abandon_files();
    if (current && current->drawn)
        fputs("\r\033[K", stderr);
    sigfillset(&all);
    pthread_sigmask(SIG_UNBLOCK, &all, NULL);
    signals_pass_on();
}

/* The thread beside the work: draws while nothing is heard, and ends the program when a signal asks. */
static void *stand_by(void *unused)
{
    (void)unused;
    bool draws = isatty(STDERR_FILENO);
    for (;;) {
        const struct timespec until = seconds_from_now(TICK);
        int waited = draws ? sem_clockwait(&asked, CLOCK_MONOTONIC, &until) : sem_wait(&asked);
        if (waited == 0)
            end_now();
        progress_tick();
    }
    return NULL;
}

static void start_standing_by(void)
{
    sigset_t all, old;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);   /* signals are for the other threads */
    if (sem_init(&asked, 0, 0) == 0 && pthread_create(&thread, NULL, stand_by, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void signals_catch(void)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP };
    start_standing_by();
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
    if (p->shown) {
        pthread_mutex_lock(&drawing);
        current = p;
        pthread_mutex_unlock(&drawing);
    }
}

static int terminal_width(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* "0:07" */
static short_text minutes(double seconds)
{
    long s = seconds < 1e6 ? (long)seconds : 1000000;
    short_text text;
    snprintf(text.s, sizeof text.s, "%ld:%02ld", s / 60, s % 60);
    return text;
}

static void draw(progress *p, double time)
{
    static const char filled[] = "############################################################";
    double part = p->total > 0 ? (double)p->done / (double)p->total : 0, elapsed = time - p->began;
    double all = (double)(p->input ? p->input : p->total), bytes = part * all;
    char tail[200];
    int used = snprintf(tail, sizeof tail, " %3.0f%%  %s of %s  %s/s  %s", 100 * part,
                        human_size((uint64_t)bytes).s, human_size((uint64_t)all).s,
                        human_size((uint64_t)(bytes / elapsed)).s, minutes(elapsed).s);
    if (part > 0)
        used += snprintf(tail + used, sizeof tail - (size_t)used, "  %s left",
                         minutes(elapsed / part - elapsed + 0.99).s);
    int bar = terminal_width() - used - 4;
    bar = bar > 60 ? 60 : bar;
    fputs("\r", stderr);
    if (bar > 5) {
        int full = (int)(part * bar);
        fprintf(stderr, "[%.*s%*s]", full, filled, bar - full, "");
    }
    fprintf(stderr, "%s\033[K", tail);
    p->last = time;
    p->drawn = true;
}

static void progress_tick(void)
{
    double time = now();
    pthread_mutex_lock(&drawing);
    if (current && time - current->last >= TICK)
        draw(current, time);
    pthread_mutex_unlock(&drawing);
}

int progress_step(void *context, uint64_t done, uint64_t total)
{
    progress *p = context;
    if (p->shown) {
        double time = now();
        pthread_mutex_lock(&drawing);
        current = p;
        p->done = done;
        p->total = total;
        if (time - p->last >= REDRAW)
            draw(p, time);
        pthread_mutex_unlock(&drawing);
    }
    return signals_came();
}

void progress_end(progress *p)
{
    pthread_mutex_lock(&drawing);
    current = NULL;
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
    pthread_mutex_unlock(&drawing);
}

void progress_note(void *context, const char *path, const char *text)
{
    if (context)
        progress_end(context);
    say_now("%s: %s", escaped(path), text);
}
