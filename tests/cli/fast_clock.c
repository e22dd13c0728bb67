/* The program that this is preloaded into has a clock that runs a hundred times as fast, and waits accordingly. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#define FACTOR 100
#define SECOND 1000000000LL

static long long began;

static int real_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    return real(clock, time);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = real_gettime(clock, time);
    if (clock != CLOCK_MONOTONIC) return result;
    long long now = time->tv_sec * SECOND + time->tv_nsec;
    if (!began) began = now;
    long long fast = began + (now - began) * FACTOR;
    time->tv_sec = fast / SECOND;
    time->tv_nsec = fast % SECOND;
    return result;
}

/* The standard library of Rust waits until a time of this clock. */
long syscall(long number, ...) {
    static long (*real)(long, ...);
    if (!real) real = dlsym(RTLD_NEXT, "syscall");
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    struct timespec until;
    if (number == SYS_futex && (b & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && d) {
        until = *(struct timespec *)d;
        long long fast = until.tv_sec * SECOND + until.tv_nsec;
        long long slow = began + (fast - began) / FACTOR + 1;
        until.tv_sec = slow / SECOND;
        until.tv_nsec = slow % SECOND;
        d = (long)&until;
    }
    return real(number, a, b, c, d, e, f);
}
