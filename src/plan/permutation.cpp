// SPDX-License-Identifier: Apache-2.0
#include "plan/permutation.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/random.h"

namespace feedline::plan {
namespace {

constexpr std::size_t kSome = 64;  // positions at a time

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size) {
  FEEDLINE_CHECK(size > 0);
  half_bits_ = static_cast<unsigned>(std::bit_width(size - 1) + 1) / 2;
  if (half_bits_ == 0) half_bits_ = 1;
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
  for (std::uint64_t& round_key : round_keys_) {
    key += 0x9E3779B97F4A7C15u;  // splitmix64's step, its finalizer below
    round_key = base::mix64(key);
  }
}

std::uint64_t Permutation::once(std::uint64_t value) const {
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & half_mask_;
  for (const std::uint64_t round_key : round_keys_) {
    const std::uint64_t next = left ^ (base::mix64(right ^ round_key) & half_mask_);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::operator()(std::uint64_t position) const {
  FEEDLINE_CHECK(position < size_);
  do position = once(position);
  while (position >= size_);
  return position;
}

void Permutation::fill(std::uint64_t first, std::span<std::uint64_t> values) const {
  FEEDLINE_CHECK(first <= size_ && values.size() <= size_ - first);
  for (std::size_t done = 0; done < values.size(); done += kSome)
    fill_some(first + done, values.subspan(done, std::min(kSome, values.size() - done)));
}

// Computes all values together, and repeats the computation for values outside the range.
void Permutation::fill_some(std::uint64_t first, std::span<std::uint64_t> values) const {
  constexpr std::size_t kLanes = 8;
  std::array<std::uint64_t, kSome + kLanes> walking;  // after the last: lanes used as padding
  std::array<std::uint8_t, kSome> places;
  std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) {
    walking[i] = first + i;
    places[i] = static_cast<std::uint8_t>(i);
  }
  while (count > 0) {
    for (std::size_t i = count; i % kLanes != 0; ++i) walking[i] = 0;
    for (std::size_t block = 0; block < count; block += kLanes) {
      std::array<std::uint64_t, kLanes> left, right;
      for (std::size_t i = 0; i < kLanes; ++i) {
        left[i] = walking[block + i] >> half_bits_;
        right[i] = walking[block + i] & half_mask_;
      }
      for (const std::uint64_t round_key : round_keys_) {
        for (std::size_t i = 0; i < kLanes; ++i) {
          const std::uint64_t next = left[i] ^ (base::mix64(right[i] ^ round_key) & half_mask_);
          left[i] = right[i];
          right[i] = next;
        }
      }
      for (std::size_t i = 0; i < kLanes; ++i) walking[block + i] = (left[i] << half_bits_) | right[i];
    }
    std::size_t outside = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (walking[i] < size_) {
        values[places[i]] = walking[i];
      } else {
        places[outside] = places[i];
        walking[outside++] = walking[i];
      }
    }
    count = outside;
  }
}

}  // namespace feedline::plan
