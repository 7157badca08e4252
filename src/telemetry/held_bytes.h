// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a loader holds ahead, by everyone who holds a part of it: the sum, and the most that it ever was. Both change
// together, so that no look finds more than the most.

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace feedline::telemetry {

// Any thread. Outlives its parts.
class HeldBytes {
 public:
  struct Look {
    std::uint64_t now = 0;
    std::uint64_t peak = 0;  // never below `now`, nor below that of an earlier look
  };
  Look look() const {
    const std::uint64_t now = now_.load();
    return {now, raised(now)};  // whoever has just added may not have told the peak yet
  }

 private:
  friend class HeldPart;
  void add(std::uint64_t bytes) { raised(now_.fetch_add(bytes) + bytes); }
  // The peak, which is at least `now` from here on.
  std::uint64_t raised(std::uint64_t now) const {
    std::uint64_t peak = peak_.load();
    while (peak < now && !peak_.compare_exchange_weak(peak, now)) {
    }
    return std::max(peak, now);
  }
  void subtract(std::uint64_t bytes) { now_.fetch_sub(bytes); }

  std::atomic<std::uint64_t> now_{0};
  mutable std::atomic<std::uint64_t> peak_{0};  // a look may be the first to know of it
};

// One holder's part, a number that is counted into the sum too. One thread at a time: its holder's lock.
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
  HeldPart& operator-=(std::uint64_t bytes) {  // Requires: no more than there is
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
