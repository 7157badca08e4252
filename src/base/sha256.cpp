// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <algorithm>
#include <bit>

#include "base/sha256_rounds.h"

namespace feedline::base {
namespace {

constexpr std::size_t kBlock = 64;

using State = std::array<std::uint32_t, 8>;

void add_block(State& state, const std::byte* block) {
  std::array<std::uint32_t, 64> words;
  for (std::size_t i = 0; i < 16; ++i) {
    words[i] = 0;
    for (std::size_t byte = 0; byte < 4; ++byte)
      words[i] = words[i] << 8 | std::to_integer<std::uint32_t>(block[4 * i + byte]);
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
                                kSha256Rounds[i] + words[i];
    const std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const State added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += added[i];
}

AddSha256Blocks best_steps() {
  const AddSha256Blocks hardware = sha256_hardware();
  return hardware != nullptr ? hardware : add_sha256_blocks_portably;
}

void add_blocks(State& state, const std::byte* blocks, std::size_t count) {
  static const AddSha256Blocks kSteps = best_steps();
  kSteps(state, blocks, count);
}

}  // namespace

void add_sha256_blocks_portably(State& state, const std::byte* blocks, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) add_block(state, blocks + i * kBlock);
}

void RunningSha256::add(std::span<const std::byte> bytes) {
  const std::size_t held = bytes_ % kBlock;
  bytes_ += bytes.size();
  if (held > 0) {
    const auto some = bytes.first(std::min(bytes.size(), kBlock - held));
    std::ranges::copy(some, rest_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(some.size());
    if (held + some.size() < kBlock) return;
    add_blocks(state_, rest_.data(), 1);
  }
  add_blocks(state_, bytes.data(), bytes.size() / kBlock);
  std::ranges::copy(bytes.subspan(bytes.size() / kBlock * kBlock), rest_.begin());
}

Sha256 RunningSha256::digest() const {
  std::array<std::byte, 2 * kBlock> end{};
  const std::size_t held = bytes_ % kBlock;
  std::ranges::copy(std::span(rest_).first(held), end.begin());
  end[held] = std::byte{0x80};
  const std::size_t blocks = held + 9 <= kBlock ? 1 : 2;  // with the padding bit and 8 bytes for the length
  for (std::size_t i = 0; i < 8; ++i) end[blocks * kBlock - 1 - i] = std::byte(bytes_ * 8 >> (8 * i) & 0xff);
  State state = state_;
  add_blocks(state, end.data(), blocks);
  Sha256 digest;
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

Sha256 sha256(std::string_view bytes) {
  RunningSha256 running;
  running.add(std::as_bytes(std::span(bytes)));
  return running.digest();
}

Sha256 hmac_sha256(std::string_view key, std::string_view bytes) {
  std::string padded(key);
  if (key.size() > kBlock) padded = std::string(bytes_of(sha256(key)));
  padded.resize(kBlock, '\0');
  std::string inner = padded, outer = padded;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  const Sha256 first = sha256(inner.append(bytes));
  return sha256(outer.append(bytes_of(first)));
}

std::string_view bytes_of(const Sha256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string hex_of(const Sha256& digest) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace feedline::base
