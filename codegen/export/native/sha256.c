/* SHA-256 of the weights (FIPS 180-4), with processor instructions if available. */

static const uint32_t sha_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

enum { SHA_PART = 1024 };

static uint32_t sha_rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void sha_blocks_plain(uint32_t *state, const unsigned char *data, int64_t blocks) {
  for (; blocks > 0; blocks--, data += 64) {
    uint32_t w[16], s[8];
    for (int k = 0; k < 8; k++) s[k] = state[k];
    for (int k = 0; k < 16; k++)
      w[k] = (uint32_t)data[4 * k] << 24 | (uint32_t)data[4 * k + 1] << 16 |
             (uint32_t)data[4 * k + 2] << 8 | data[4 * k + 3];
#pragma clang loop unroll_count(16)
    for (int k = 0; k < 64; k++) {
      uint32_t a = s[-k & 7], b = s[(1 - k) & 7], c = s[(2 - k) & 7];
      uint32_t e = s[(4 - k) & 7], f = s[(5 - k) & 7], g = s[(6 - k) & 7];
      uint32_t *d = &s[(3 - k) & 7], *h = &s[(7 - k) & 7];
      if (k >= 16) {
        uint32_t x = w[(k + 1) & 15], y = w[(k + 14) & 15];
        w[k & 15] += (sha_rotate(x, 7) ^ sha_rotate(x, 18) ^ x >> 3) + w[(k + 9) & 15] +
                     (sha_rotate(y, 17) ^ sha_rotate(y, 19) ^ y >> 10);
      }
      *h += (sha_rotate(e, 6) ^ sha_rotate(e, 11) ^ sha_rotate(e, 25)) + ((e & f) ^ (~e & g)) +
            sha_constants[k] + w[k & 15];
      *d += *h;
      *h += (sha_rotate(a, 2) ^ sha_rotate(a, 13) ^ sha_rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    }
    for (int k = 0; k < 8; k++) state[k] += s[k];
  }
}

#if defined(__x86_64__)
#include <immintrin.h>

static int sha_is_native(void) {
  uint32_t a, b, c, d;
  __cpuid(1, a, b, c, d);
  int wide = (c >> 9 & 1) && (c >> 19 & 1); /* SSSE3 and SSE4.1 */
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1) && wide;
}

/* The instructions require the state in two registers: a, b, e, f and c, d, g, h. */
__attribute__((target("sha,sse4.1,ssse3"))) static void sha_blocks_native(
    uint32_t *state, const unsigned char *data, int64_t blocks) {
  const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
  __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
  for (; blocks > 0; blocks--, data += 64) {
    __m128i w[4], first = abef, second = cdgh;
    for (int k = 0; k < 4; k++)
      w[k] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(data + 16 * k)), order);
#pragma clang loop unroll(full)
    for (int k = 0; k < 16; k++) {
      __m128i x = _mm_add_epi32(w[k & 3], _mm_loadu_si128((const __m128i *)(sha_constants + 4 * k)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, x);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(x, 0x0e));
      __m128i last = w[(k + 3) & 3];
      x = _mm_sha256msg1_epu32(w[k & 3], w[(k + 1) & 3]);
      x = _mm_add_epi32(x, _mm_alignr_epi8(last, w[(k + 2) & 3], 4));
      w[k & 3] = _mm_sha256msg2_epu32(x, last);
    }
    abef = _mm_add_epi32(abef, first);
    cdgh = _mm_add_epi32(cdgh, second);
  }
  low = _mm_shuffle_epi32(abef, 0x1b);
  high = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
  _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}
#elif defined(__aarch64__)
#include <arm_neon.h>

static int sha_is_native(void) { return FIELD(ID("s3_0_c0_c6_0"), 12) != 0; }

__attribute__((target("sha2"))) static void sha_blocks_native(
    uint32_t *state, const unsigned char *data, int64_t blocks) {
  uint32x4_t low = vld1q_u32(state), high = vld1q_u32(state + 4);
  for (; blocks > 0; blocks--, data += 64) {
    uint32x4_t w[4], first = low, second = high;
    for (int k = 0; k < 4; k++)
      w[k] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * k)));
#pragma clang loop unroll(full)
    for (int k = 0; k < 16; k++) {
      uint32x4_t x = vaddq_u32(w[k & 3], vld1q_u32(sha_constants + 4 * k)), before = low;
      low = vsha256hq_u32(low, high, x);
      high = vsha256h2q_u32(high, before, x);
      x = vsha256su0q_u32(w[k & 3], w[(k + 1) & 3]);
      w[k & 3] = vsha256su1q_u32(x, w[(k + 2) & 3], w[(k + 3) & 3]);
    }
    low = vaddq_u32(low, first);
    high = vaddq_u32(high, second);
  }
  vst1q_u32(state, low);
  vst1q_u32(state + 4, high);
}
#else
static int sha_is_native(void) { return 0; }
#define sha_blocks_native sha_blocks_plain
#endif

/* The sha256 of data that is added in parts. */
typedef struct {
  uint32_t state[8];
  unsigned char rest[64];
  int64_t bytes;
} sha_digest;

static void sha_begin(sha_digest *d) {
  static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (int k = 0; k < 8; k++) d->state[k] = initial[k];
  d->bytes = 0;
}

/* In parts, because WebAssembly engines use optimized code only from the next call on. */
static void sha_blocks(sha_digest *d, const unsigned char *data, int64_t blocks) {
  void (*run)(uint32_t *, const unsigned char *, int64_t) =
      sha_is_native() ? sha_blocks_native : sha_blocks_plain;
  for (int64_t k = 0; k < blocks; k += SHA_PART)
    run(d->state, data + 64 * k, blocks - k < SHA_PART ? blocks - k : SHA_PART);
}

static void sha_add(sha_digest *d, const unsigned char *data, int64_t bytes) {
  int64_t used = d->bytes % 64;
  d->bytes += bytes;
  if (used) {
    for (; bytes && used < 64; bytes--) d->rest[used++] = *data++;
    if (used < 64) return;
    sha_blocks(d, d->rest, 1);
  }
  sha_blocks(d, data, bytes / 64);
  for (int64_t k = 0; k < bytes % 64; k++) d->rest[k] = data[bytes / 64 * 64 + k];
}

/* Complete the sha256 of the added data: 32 bytes. */
static void sha_end(sha_digest *d, unsigned char *digest) {
  unsigned char tail[128];
  int64_t rest = d->bytes % 64, end = rest < 56 ? 64 : 128;
  for (int64_t k = 0; k < end; k++) tail[k] = k < rest ? d->rest[k] : 0;
  tail[rest] = 0x80;
  for (int k = 0; k < 8; k++) tail[end - 1 - k] = (unsigned char)((uint64_t)d->bytes * 8 >> 8 * k);
  sha_blocks(d, tail, end / 64);
  for (int k = 0; k < 32; k++) digest[k] = (unsigned char)(d->state[k / 4] >> (24 - k % 4 * 8));
}

/* Return whether the sha256 of the added data is the expected one. */
static int sha_matches(sha_digest *d, const unsigned char *expected) {
  unsigned char digest[32], differing = 0;
  sha_end(d, digest);
  for (int k = 0; k < 32; k++) differing |= digest[k] ^ expected[k];
  return !differing;
}

/* Return whether the sha256 of the data is the expected one. */
static int has_digest(const unsigned char *data, int64_t bytes, const unsigned char *expected) {
  sha_digest d;
  sha_begin(&d);
  sha_add(&d, data, bytes);
  return sha_matches(&d, expected);
}
