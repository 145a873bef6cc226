/* Threads take and return references to versions while another thread replaces them. The version is
 * read while it is held, and overwritten when it is freed; the thread sanitizer checks the order. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "versions.c"

enum { READERS = 4, REPLACEMENTS = 3000, WORDS = 16 };

typedef struct {
  tw_counted counted;
  int64_t words[WORDS];
} version;

static tw_versions versions;
static int64_t wrong, made, freed, done;

static void drop(version *v) {
  int64_t slot = v->counted.slot;
  memset(v->words, 0xff, sizeof v->words);
  free(v);
  clear_slot(&versions, slot);
  __atomic_add_fetch(&freed, 1, __ATOMIC_RELAXED);
}

static void *reader(void *argument) {
  (void)argument;
  while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
    version *v = (version *)take_version(&versions);
    for (int k = 0; k < WORDS; k++)
      if (v->words[k] != v->words[0] || v->words[k] < 0)
        __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
    if (return_version(&v->counted)) drop(v);
  }
  return 0;
}

static int replace(int64_t number) {
  int64_t slot = free_slot(&versions);
  if (slot < 0) return 0;
  version *v = malloc(sizeof *v);
  for (int k = 0; k < WORDS; k++) v->words[k] = number;
  made++;
  version *old = (version *)replace_version(&versions, &v->counted, slot, v);
  if (old) drop(old);
  return 1;
}

int main(void) {
  pthread_t threads[READERS];
  begin_versions(&versions);
  replace(0);
  for (int k = 0; k < READERS; k++) pthread_create(&threads[k], 0, reader, 0);
  for (int64_t k = 1; k < REPLACEMENTS; k++)
    if (!replace(k)) k--;
  __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
  for (int k = 0; k < READERS; k++) pthread_join(threads[k], 0);
  version *held[VERSION_LIMIT];
  for (int k = 0; k < VERSION_LIMIT - 1; k++) { /* all slots are in use */
    held[k] = (version *)take_version(&versions);
    replace(k);
  }
  int full = !replace(0);
  int reads = reads_weights(&versions, held[0]) && !reads_weights(&versions, &full);
  for (int k = 0; k < VERSION_LIMIT - 1; k++)
    if (return_version(&held[k]->counted)) drop(held[k]);
  version *last = (version *)replace_version(&versions, 0, VERSION_LIMIT, 0);
  if (last) drop(last);
  printf("%d wrong, %d left, %s, %s\n", (int)wrong, (int)(made - freed), full ? "full" : "not full",
         reads ? "in use" : "not in use");
  return 0;
}
