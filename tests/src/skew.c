/* Shifts what a program takes for the time of day by as many seconds as the file SKEW_FILE holds at that moment: eight bytes, a number
   as this machine writes it. Clocks that only run on stay as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *skew_secs;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SKEW_FILE");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0)
        return;
    void *shared = mmap(NULL, sizeof *skew_secs, PROT_READ, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED)
        skew_secs = shared;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME && skew_secs)
        now->tv_sec += *skew_secs;
    return failed;
}
