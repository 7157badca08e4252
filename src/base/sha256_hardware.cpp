// SPDX-License-Identifier: Apache-2.0
// SHA-256 with x86-64's instructions, which do two rounds on four words at a time.
#include "base/sha256.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include "base/sha256_rounds.h"

namespace feedline::base {
namespace {

using State = std::array<std::uint32_t, 8>;

// Computes w[i .. i + 3] from w[i - 16 .. i - 13] and the twelve words after them.
__attribute__((target("sha,sse4.1,ssse3"))) __m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3) {
  const __m128i seven_back = _mm_alignr_epi8(w3, w2, 4);
  return _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), seven_back), w3);
}

__attribute__((target("sha,sse4.1,ssse3"))) void add_by_hardware(State& state, const std::byte* blocks,
                                                                 std::size_t count) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  // the instructions need the words in the order a b e f and c d g h, the first one in the highest lane
  const __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data()));
  const __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data() + 4));
  const __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (std::size_t block = 0; block < count; ++block) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    const auto* const from = reinterpret_cast<const __m128i*>(blocks + 64 * block);
    __m128i words[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) words[i] = _mm_shuffle_epi8(_mm_loadu_si128(from + i), big_endian);
#pragma GCC unroll 16  // so that the words stay in registers
    for (int i = 0; i < 16; ++i) {
      if (i >= 4) words[i % 4] = next_words(words[i % 4], words[(i + 1) % 4], words[(i + 2) % 4], words[(i + 3) % 4]);
      const auto* const rounds = reinterpret_cast<const __m128i*>(kSha256Rounds.data() + 4 * i);
      const __m128i added = _mm_add_epi32(words[i % 4], _mm_load_si128(rounds));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

// gcc 12's __builtin_cpu_supports() does not support this feature.
bool has_instructions() {
  constexpr unsigned kSha = 1u << 29;  // leaf 7, ebx
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kSha) != 0 && __builtin_cpu_supports("sse4.1") &&
         __builtin_cpu_supports("ssse3");
}

}  // namespace

AddSha256Blocks sha256_hardware() { return has_instructions() ? add_by_hardware : nullptr; }

}  // namespace feedline::base

#else

namespace feedline::base {
AddSha256Blocks sha256_hardware() { return nullptr; }
}  // namespace feedline::base

#endif
