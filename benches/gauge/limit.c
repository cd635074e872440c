/* The same as src/spawn.rs in C, to see that the yardstick is as short as it can be.
 *
 *     limit MILLISECONDS BYTES PROGRAM [ARGUMENT]...
 *
 * prints {"times":[nanoseconds],"lasted":nanoseconds}. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char *environment[] = {"PATH=/usr/bin:/bin", NULL};

static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void must(int holds, const char *what) {
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static void once(char **words, char *text, ssize_t length, char *said) {
    int in[2], out[2], err[2], status;
    pid_t child;
    posix_spawn_file_actions_t places;
    must(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC) && !pipe2(err, O_CLOEXEC), "pipe");
    posix_spawn_file_actions_init(&places);
    posix_spawn_file_actions_adddup2(&places, in[0], 0);
    posix_spawn_file_actions_adddup2(&places, out[1], 1);
    posix_spawn_file_actions_adddup2(&places, err[1], 2);
    must(!posix_spawn(&child, words[0], &places, NULL, words, environment), "spawn");
    posix_spawn_file_actions_destroy(&places);
    close(in[0]), close(out[1]), close(err[1]);
    must(write(in[1], text, length) == length, "write");
    close(in[1]);
    ssize_t have = 0, more;
    while ((more = read(out[0], said + have, length + 1 - have)) > 0) have += more;
    close(out[0]), close(err[0]);
    must(waitpid(child, &status, 0) == child && status == 0 && have == length, "end");
}

int main(int count, char **words) {
    must(count > 3, "arguments");
    long long lasting = atoll(words[1]) * 1000000LL;
    ssize_t length = atol(words[2]), done = 0, room = 1 << 16;
    char *text = malloc(length + 1), *said = malloc(length + 1);
    long long *times = malloc(room * sizeof *times), begin = now();
    for (ssize_t at = 0; at < length; at++) text[at] = 'a' + at % 26;
    while (now() - begin < lasting) {
        long long started = now();
        once(words + 3, text, length, said);
        if (done == room) times = realloc(times, (room *= 2) * sizeof *times);
        times[done++] = now() - started;
    }
    long long lasted = now() - begin;
    printf("{\"times\":[");
    for (ssize_t at = 0; at < done; at++) printf("%s%lld", at ? "," : "", times[at]);
    printf("],\"lasted\":%lld}\n", lasted);
    return 0;
}
