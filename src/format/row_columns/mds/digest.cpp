// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/mds/digest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/sha256.h"
#include "cache/xx_digest.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// The common part of MD5 (RFC 1321) and SHA-1 (FIPS 180-4): blocks of 64 bytes, padded with a one bit, zeros and the
// length.
template <typename Rounds>
class BlockDigest final : public RunningDigest {
 public:
  void add(Bytes bytes) override {
    length_ += bytes.size();
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), block_.size() - filled_);
      std::memcpy(block_.data() + filled_, bytes.data(), count);
      bytes = bytes.subspan(count);
      filled_ += count;
      if (filled_ < block_.size()) return;
      rounds_.add(block_);
      filled_ = 0;
    }
  }
  std::string hex() override {
    constexpr std::size_t kLengthBytes = 8;
    const std::uint64_t bits = length_ * 8;
    constexpr std::array<std::byte, 64> kPadding{std::byte{0x80}};
    const std::size_t used = filled_ + 1;
    const std::size_t to_length = block_.size() - kLengthBytes;
    add(Bytes(kPadding).first(1 + (used <= to_length ? to_length - used : to_length + block_.size() - used)));
    std::array<std::byte, kLengthBytes> length;
    for (std::size_t i = 0; i < kLengthBytes; ++i)
      length[Rounds::kBigEndian ? kLengthBytes - 1 - i : i] = static_cast<std::byte>(bits >> (8 * i));
    add(length);
    std::string text;
    for (const std::uint32_t word : rounds_.state)
      for (unsigned i = 0; i < 4; ++i) {
        const auto byte = static_cast<std::uint8_t>(word >> (8 * (Rounds::kBigEndian ? 3 - i : i)));
        constexpr std::string_view kDigits = "0123456789abcdef";
        text += kDigits[byte >> 4U];
        text += kDigits[byte & 15U];
      }
    return text;
  }

 private:
  Rounds rounds_;
  std::array<std::byte, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;
};

using Block = std::array<std::byte, 64>;

std::uint32_t word_at(const Block& block, std::size_t word, bool big_endian) {
  std::uint32_t value;
  std::memcpy(&value, block.data() + 4 * word, sizeof value);
  return big_endian ? std::byteswap(value) : value;
}

struct Md5Rounds {
  static constexpr bool kBigEndian = false;
  std::array<std::uint32_t, 4> state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

  // MD5's constants: the integer parts of 2^32 * |sin(i + 1)|.
  static const std::array<std::uint32_t, 64>& sines() {
    static const auto kSines = [] {
      std::array<std::uint32_t, 64> table{};
      for (std::size_t i = 0; i < table.size(); ++i)
        table[i] =
            static_cast<std::uint32_t>(std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
      return table;
    }();
    return kSines;
  }

  void add(const Block& block) {
    constexpr std::array<std::array<int, 4>, 4> kTurns{
        {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};
    auto [a, b, c, d] = state;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t round = i / 16;
      const std::uint32_t mixed = round == 0   ? (b & c) | (~b & d)
                                  : round == 1 ? (d & b) | (~d & c)
                                  : round == 2 ? b ^ c ^ d
                                               : c ^ (b | ~d);
      const std::size_t word = round == 0   ? i
                               : round == 1 ? (5 * i + 1) % 16
                               : round == 2 ? (3 * i + 5) % 16
                                            : (7 * i) % 16;
      const std::uint32_t sum = a + mixed + sines()[i] + word_at(block, word, false);
      a = std::exchange(d, std::exchange(c, std::exchange(b, b + std::rotl(sum, kTurns[round][i % 4]))));
    }
    state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
  }
};

struct Sha1Rounds {
  static constexpr bool kBigEndian = true;
  std::array<std::uint32_t, 5> state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

  void add(const Block& block) {
    std::array<std::uint32_t, 80> words;
    for (std::size_t i = 0; i < 16; ++i) words[i] = word_at(block, i, true);
    for (std::size_t i = 16; i < 80; ++i)
      words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    auto [a, b, c, d, e] = state;
    for (std::size_t i = 0; i < 80; ++i) {
      const std::size_t round = i / 20;
      constexpr std::array<std::uint32_t, 4> kRounds{0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
      const std::uint32_t mixed = round == 0   ? (b & c) | (~b & d)
                                  : round == 2 ? (b & c) | (b & d) | (c & d)
                                               : b ^ c ^ d;
      const std::uint32_t next = std::rotl(a, 5) + mixed + e + kRounds[round] + words[i];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d, state[4] + e};
  }
};

class Sha256Digest final : public RunningDigest {
 public:
  void add(Bytes bytes) override { running_.add(bytes); }
  std::string hex() override { return base::hex_of(running_.digest()); }

 private:
  base::RunningSha256 running_;
};

class XxHash final : public RunningDigest {
 public:
  explicit XxHash(cache::XxKind kind) : digest_(kind) {}
  void add(Bytes bytes) override { digest_.add(bytes); }
  std::string hex() override { return digest_.hex(); }

 private:
  cache::XxDigest digest_;
};

}  // namespace

std::unique_ptr<RunningDigest> make_digest(std::string_view algorithm) {
  if (algorithm == "md5") return std::make_unique<BlockDigest<Md5Rounds>>();
  if (algorithm == "sha1") return std::make_unique<BlockDigest<Sha1Rounds>>();
  if (algorithm == "sha256") return std::make_unique<Sha256Digest>();
  if (algorithm == "xxh32") return std::make_unique<XxHash>(cache::XxKind::kXxh32);
  if (algorithm == "xxh64") return std::make_unique<XxHash>(cache::XxKind::kXxh64);
  if (algorithm == "xxh3_64") return std::make_unique<XxHash>(cache::XxKind::kXxh3Of64);
  if (algorithm == "xxh3_128" || algorithm == "xxh128") return std::make_unique<XxHash>(cache::XxKind::kXxh3Of128);
  return nullptr;
}

}  // namespace feedline::format
