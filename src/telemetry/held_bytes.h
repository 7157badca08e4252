// SPDX-License-Identifier: Apache-2.0
#pragma once

// The number of bytes that a loader holds in prefetched data, summed over all holders, and its maximum. The sum and the
// maximum are read consistently, so a reader never receives a sum above the maximum.

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace feedline::telemetry {

// Any thread. A HeldBytes must outlive its parts.
class HeldBytes {
 public:
  struct Look {
    std::uint64_t now = 0;
    std::uint64_t peak = 0;  // never below `now` or an earlier peak
  };
  Look look() const {
    const std::uint64_t now = now_.load();
    return {now, raised(now)};  // a thread that just added may not have updated the peak yet
  }

 private:
  friend class HeldPart;
  void add(std::uint64_t bytes) { raised(now_.fetch_add(bytes) + bytes); }
  // Raises the maximum to at least `now`, and returns the maximum.
  std::uint64_t raised(std::uint64_t now) const {
    std::uint64_t peak = peak_.load();
    while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
    }
    return std::max(peak, now);
  }
  void subtract(std::uint64_t bytes) { now_.fetch_sub(bytes); }

  std::atomic<std::uint64_t> now_{0};
  mutable std::atomic<std::uint64_t> peak_{0};  // readers may update it
};

// The part of one holder, which is included in the sum. Used by one thread at a time: guarded by its holder's lock.
class HeldPart {
 public:
  explicit HeldPart(HeldBytes& whole) : whole_(whole) {}
  ~HeldPart() { whole_.subtract(bytes_); }
  HeldPart(const HeldPart&) = delete;
  HeldPart& operator=(const HeldPart&) = delete;

  operator std::uint64_t() const { return bytes_; }  // NOLINT: it is used as the number that it is
  HeldPart& operator+=(std::uint64_t bytes) {
    bytes_ += bytes;
    whole_.add(bytes);
    return *this;
  }
  HeldPart& operator-=(std::uint64_t bytes) {  // Requires: bytes <= the current value
    bytes_ -= bytes;
    whole_.subtract(bytes);
    return *this;
  }
  void set(std::uint64_t bytes) {
    if (bytes > bytes_)
      *this += bytes - bytes_;
    else
      *this -= bytes_ - bytes;
  }

 private:
  HeldBytes& whole_;
  std::uint64_t bytes_ = 0;
};

}  // namespace feedline::telemetry
