/* Lets a program find names where NAMES_FILE says: lines of a name and an address. All others are looked up as ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    const char *path = getenv("NAMES_FILE");
    FILE *names = node && path ? fopen(path, "r") : NULL;
    char name[256], address[256];
    int failed = -1;
    while (names && failed == -1 && fscanf(names, "%255s %255s", name, address) == 2)
        if (!strcmp(name, node))
            failed = real(address, service, hints, found);
    if (names)
        fclose(names);
    return failed == -1 ? real(node, service, hints, found) : failed;
}
