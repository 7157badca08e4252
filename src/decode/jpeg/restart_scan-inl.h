// SPDX-License-Identifier: Apache-2.0

// The search for restart markers, compiled once per target.
//
// In entropy-coded data, a byte 0xFF is either followed by a stuffed 0 or a fill byte 0xFF, or it begins a marker.
// Examining each pair of adjacent bytes therefore finds every marker, whatever the data between them.

#if defined(FEEDLINE_DECODE_RESTART_SCAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_DECODE_RESTART_SCAN_INL_H_
#undef FEEDLINE_DECODE_RESTART_SCAN_INL_H_
#else
#define FEEDLINE_DECODE_RESTART_SCAN_INL_H_
#endif

#include <cstring>

#include "decode/jpeg/restart_scan.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace feedline::decode::baseline::HWY_NAMESPACE {

inline const std::uint8_t* pass_restarts(const std::uint8_t* from, const std::uint8_t* end, int number, int count) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<std::uint8_t, 64> d;
  const auto prefix = hn::Set(d, 0xFF), stuffed = hn::Zero(d);
  constexpr auto kLanes = static_cast<std::ptrdiff_t>(hn::MaxLanes(hn::CappedTag<std::uint8_t, 64>()));
  for (; end - from > kLanes; from += kLanes) {
    const auto next = hn::LoadU(d, from + 1);
    const auto no_marker = hn::Or(hn::Eq(next, stuffed), hn::Eq(next, prefix));
    const auto marker = hn::AndNot(no_marker, hn::Eq(hn::LoadU(d, from), prefix));
    std::uint64_t bits = 0;
    std::uint8_t stored[8] = {};
    hn::StoreMaskBits(d, marker, stored);
    std::memcpy(&bits, stored, sizeof bits);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint8_t* const at = from + __builtin_ctzll(bits);
      if (at[1] != kFirstRestart + number) return nullptr;
      if (--count == 0) return at + 2;
      number = (number + 1) % kRestartNumbers;
    }
  }
  return pass_restarts_bytewise(from, end, number, count);
}

}  // namespace feedline::decode::baseline::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
