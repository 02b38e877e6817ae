/* Shifts what a program takes for the time of day by SKEW_SECS seconds; clocks that only run on stay as they are. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    const char *skew = getenv("SKEW_SECS");
    if (!failed && clock == CLOCK_REALTIME && skew)
        now->tv_sec += atol(skew);
    return failed;
}
