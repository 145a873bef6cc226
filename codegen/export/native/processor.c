/* Detection of the processor features that a library requires. missing_feature returns the first
 * one of a list that this processor lacks, or null. A feature without a test below counts as missing. */

#if defined(__x86_64__)
#include <cpuid.h>

static int has_state(uint32_t wanted) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & wanted) == wanted;
}

static const char *missing_feature(const char *const *needed_features) {
  uint32_t a, b, c, d, b7 = 0, c7 = 0, d7 = 0, a71 = 0, c81 = 0;
  __cpuid(1, a, b, c, d);
  uint32_t c1 = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    b7 = b;
    c7 = c;
    d7 = d;
    if (a >= 1) {
      __cpuid_count(7, 1, a, b, c, d);
      a71 = a;
    }
  }
  if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) c81 = c;
  (void)d7;
  int avx = (c1 >> 27 & 1) && has_state(6), wide = avx && has_state(0xe6);
  for (int k = 0; needed_features[k]; k++) {
    const char *f = needed_features[k];
    int known = 0, have = 0;
#define FEATURE(word, bit)                                            \
  if (equal_text(f, #word)) {                                               \
    known = 1;                                                        \
    have = bit;                                                       \
  }
    FEATURE(sse3, c1 & 1)
    FEATURE(ssse3, c1 >> 9 & 1)
    FEATURE(sse4.1, c1 >> 19 & 1)
    FEATURE(sse4.2, c1 >> 20 & 1)
    FEATURE(popcnt, c1 >> 23 & 1)
    FEATURE(avx2, avx && (b7 >> 5 & 1))
    FEATURE(bmi2, b7 >> 8 & 1)
    FEATURE(fma, avx && (c1 >> 12 & 1))
    FEATURE(f16c, avx && (c1 >> 29 & 1))
    FEATURE(movbe, c1 >> 22 & 1)
    FEATURE(lzcnt, c81 >> 5 & 1)
    FEATURE(avx512f, wide && (b7 >> 16 & 1))
    FEATURE(avx512dq, wide && (b7 >> 17 & 1))
    FEATURE(avx512cd, wide && (b7 >> 28 & 1))
    FEATURE(avx512bw, wide && (b7 >> 30 & 1))
    FEATURE(avx512vl, wide && (b7 >> 31 & 1))
    FEATURE(avx512vnni, wide && (c7 >> 11 & 1))
    FEATURE(avx512bf16, wide && (a71 >> 5 & 1))
#undef FEATURE
    if (!known || !have) return f;
  }
  return 0;
}
#elif defined(__aarch64__)
/* Linux emulates reads of these registers, and shows the features that programs may use. */
#define ID(register)                                        \
  ({                                                        \
    uint64_t word;                                          \
    __asm__("mrs %0, " register : "=r"(word));              \
    word;                                                   \
  })
#define FIELD(word, bit) ((int)((word) >> (bit) & 15))

static const char *missing_feature(const char *const *needed_features) {
  if (!needed_features[0]) return 0;
  uint64_t isar0 = ID("s3_0_c0_c6_0"), isar1 = ID("s3_0_c0_c6_1"), pfr0 = ID("s3_0_c0_c4_0");
  int has_sve = FIELD(pfr0, 32) != 0;
  uint64_t zfr0 = has_sve ? ID("s3_0_c0_c4_4") : 0;
  for (int k = 0; needed_features[k]; k++) {
    const char *f = needed_features[k];
    int known = 0, have = 0;
#define FEATURE(word, bit)                                            \
  if (equal_text(f, #word)) {                                               \
    known = 1;                                                        \
    have = bit;                                                       \
  }
    FEATURE(bf16, FIELD(isar1, 44))
    FEATURE(dotprod, FIELD(isar0, 44))
    FEATURE(fullfp16, FIELD(pfr0, 16) == 1)
    FEATURE(i8mm, FIELD(isar1, 52))
    FEATURE(lse, FIELD(isar0, 20) > 1)
    FEATURE(sve, has_sve)
    FEATURE(sve2, has_sve && FIELD(zfr0, 0))
#undef FEATURE
    if (!known || !have) return f;
  }
  return 0;
}
#elif defined(__riscv)
static long system_call(long number, long a, long b, long c, long d, long e) {
  register long a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b;
  register long a2 __asm__("a2") = c, a3 __asm__("a3") = d, a4 __asm__("a4") = e;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4) : "memory");
  return a0;
}

/* The features of all cores, as the bits of key 4 of riscv_hwprobe (Linux 6.4 and later). If the
 * system call fails, the auxiliary vector reports single-letter extensions only, such as v. */
static uint64_t present_features(void) {
  struct {
    int64_t key;
    uint64_t value;
  } probe = {4, 0};
  if (!system_call(258, (long)&probe, 1, 0, 0, 0)) return probe.key == 4 ? probe.value : 0;
  uint64_t pair[2] = {1, 0}, letters = 0;
  long file = system_call(56, -100, (long)"/proc/self/auxv", 0, 0, 0);
  if (file < 0) return 0;
  while (pair[0] && system_call(63, file, (long)pair, sizeof pair, 0, 0) == sizeof pair)
    if (pair[0] == 16) letters = pair[1];
  system_call(57, file, 0, 0, 0, 0);
  return (letters >> ('v' - 'a') & 1) << 2;
}

static const char *missing_feature(const char *const *needed_features) {
  if (!needed_features[0]) return 0;
  uint64_t present = present_features();
  for (int k = 0; needed_features[k]; k++) {
    const char *f = needed_features[k];
    int known = 0, have = 0;
#define FEATURE(word, bit)                                            \
  if (equal_text(f, #word)) {                                               \
    known = 1;                                                        \
    have = bit;                                                       \
  }
    FEATURE(v, present >> 2 & 1)
    FEATURE(zba, present >> 3 & 1)
    FEATURE(zbb, present >> 4 & 1)
    FEATURE(zbs, present >> 5 & 1)
    FEATURE(zfh, present >> 27 & 1)
    FEATURE(zvfh, present >> 30 & 1)
#undef FEATURE
    if (!known || !have) return f;
  }
  return 0;
}
#else
static const char *missing_feature(const char *const *needed_features) {
  (void)needed_features;
  return 0;
}
#endif
