/* Counted references to versions of weights, of which one is current. Uses no library.
 *
 * One word holds the slot of the current version in its low bits, and above it the number of
 * references that were taken since the version became current. So one addition reads the slot and
 * takes a reference. A version that is replaced gets the number of references taken; it is free when
 * as many have been returned. */

enum { VERSION_BITS = 6, VERSION_LIMIT = 63 }; /* slot 63 is that of a closed model */

/* The first member of a version. */
typedef struct {
  int64_t balance; /* returned references; after the replacement, minus those that are taken */
  int64_t slot;
} tw_counted;

typedef struct {
  uint64_t word;
  int64_t busy; /* whether a thread replaces the version */
  tw_counted *slots[VERSION_LIMIT + 1];
  const void *weights[VERSION_LIMIT + 1]; /* the bytes that each version reads */
} tw_versions;

/* Set that no version is current. */
static void begin_versions(tw_versions *v) {
  v->word = VERSION_LIMIT;
  v->busy = 0;
  for (int32_t k = 0; k <= VERSION_LIMIT; k++) {
    v->slots[k] = 0;
    v->weights[k] = 0;
  }
}

/* Take a reference to the current version. */
static tw_counted *take_version(tw_versions *v) {
  uint64_t word = __atomic_fetch_add(&v->word, UINT64_C(1) << VERSION_BITS, __ATOMIC_ACQUIRE);
  return __atomic_load_n(&v->slots[word & VERSION_LIMIT], __ATOMIC_ACQUIRE);
}

/* Return a reference. If the result is 1, no reference is left, and the caller frees the version. */
static int return_version(tw_counted *version) {
  return !__atomic_add_fetch(&version->balance, 1, __ATOMIC_ACQ_REL);
}

/* Return a free slot, or -1 if all are in use. Only the thread that replaces the version calls it. */
static int64_t free_slot(tw_versions *v) {
  for (int64_t k = 0; k < VERSION_LIMIT; k++)
    if (!__atomic_load_n(&v->slots[k], __ATOMIC_ACQUIRE)) return k;
  return -1;
}

/* Release a slot, after the memory of its version was freed. */
static void clear_slot(tw_versions *v, int64_t slot) {
  __atomic_store_n(&v->weights[slot], 0, __ATOMIC_RELEASE);
  __atomic_store_n(&v->slots[slot], 0, __ATOMIC_RELEASE);
}

/* Make a version current, or none if it is null and the slot is VERSION_LIMIT. Return the previous
 * version if no reference to it is left, so that the caller frees it. */
static tw_counted *replace_version(tw_versions *v, tw_counted *version, int64_t slot,
                                   const void *weights) {
  if (version) {
    version->balance = 0;
    version->slot = slot;
  }
  __atomic_store_n(&v->weights[slot], weights, __ATOMIC_RELEASE);
  __atomic_store_n(&v->slots[slot], version, __ATOMIC_RELEASE);
  uint64_t word = __atomic_exchange_n(&v->word, (uint64_t)slot, __ATOMIC_ACQ_REL);
  int64_t taken = (int64_t)(word >> VERSION_BITS);
  tw_counted *old = __atomic_load_n(&v->slots[word & VERSION_LIMIT], __ATOMIC_ACQUIRE);
  return old && !__atomic_sub_fetch(&old->balance, taken, __ATOMIC_ACQ_REL) ? old : 0;
}

/* Return whether a version, current or not, reads weights at an address. */
static int reads_weights(tw_versions *v, const void *weights) {
  for (int64_t k = 0; k < VERSION_LIMIT; k++)
    if (__atomic_load_n(&v->weights[k], __ATOMIC_ACQUIRE) == weights) return weights != 0;
  return 0;
}
