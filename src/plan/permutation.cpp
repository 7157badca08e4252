// SPDX-License-Identifier: Apache-2.0
#include "plan/permutation.h"

#include <bit>

#include "base/check.h"
#include "base/random.h"

namespace feedline::plan {

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

}  // namespace feedline::plan
