/* The program that this is preloaded into has a clock that runs a hundred times as fast, and waits accordingly. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
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

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    long long slow = (time->tv_sec * SECOND + time->tv_nsec) / FACTOR + 1;
    struct timespec wait = {slow / SECOND, slow % SECOND};
    return syscall(SYS_clock_nanosleep, clock, flags, &wait, left);
}

/* It waits so for a connection. */
int poll(struct pollfd *list, nfds_t count, int timeout) {
    static int (*real)(struct pollfd *, nfds_t, int);
    if (!real) real = dlsym(RTLD_NEXT, "poll");
    return real(list, count, timeout > 0 ? timeout / FACTOR + 1 : timeout);
}

/* A limit of 0 would be none. */
int setsockopt(int socket, int level, int name, const void *value, socklen_t size) {
    static int (*real)(int, int, int, const void *, socklen_t);
    if (!real) real = dlsym(RTLD_NEXT, "setsockopt");
    if (level != SOL_SOCKET || name != SO_RCVTIMEO) return real(socket, level, name, value, size);
    struct timeval limit = *(const struct timeval *)value;
    long long slow = (limit.tv_sec * 1000000LL + limit.tv_usec) / FACTOR + 1;
    limit.tv_sec = slow / 1000000;
    limit.tv_usec = slow % 1000000;
    return real(socket, level, name, &limit, size);
}
