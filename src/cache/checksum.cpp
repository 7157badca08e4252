// SPDX-License-Identifier: Apache-2.0
#include "cache/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace feedline::cache {

std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

struct Xxh3::State {
  XXH3_state_t xxh;
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }
Xxh3::~Xxh3() = default;
void Xxh3::add(std::span<const std::byte> bytes) { XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size()); }
std::uint64_t Xxh3::value() const { return XXH3_64bits_digest(&state_->xxh); }

std::string hex_of(std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(number >> shift) & 15];
  return text;
}

std::string digest_of(std::string_view identity) { return hex_of(xxh3(std::as_bytes(std::span(identity)))); }

}  // namespace feedline::cache
