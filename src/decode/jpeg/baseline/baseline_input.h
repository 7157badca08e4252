// SPDX-License-Identifier: Apache-2.0
#pragma once

// The entropy-coded bytes of a scan as a plain string of bits: without the zeros stuffed behind 0xFF, up to the next
// marker, in pieces that stay in the cache.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace feedline::decode::baseline {

// A baseline block has at most 64 symbols of 16 bits of code and 15 of value; an MCU here at most 6 blocks. Behind
// `limit` lie at least that many bytes, so that decoding an MCU needs no look at the end.
inline constexpr std::size_t kMaxMcuBytes = 6 * 64 * 31 / 8;

// The next bits, highest first. Below the `count` valid ones stand bits of the stream too, or zeros.
struct BitBuffer {
  std::uint64_t bits = 0;
  unsigned count = 0;                  // at most 63
  const std::uint8_t* next = nullptr;  // the first byte of which no bit is valid
  const std::uint8_t* limit = nullptr;
};

class BaselineInput {
 public:
  // `scan`: what follows the scan's header. Stays where it is until the last call.
  void start(std::span<const std::byte> scan, BitBuffer& buffer);

  // Call when buffer.next has passed buffer.limit. False: everything up to the next marker is used up, and more.
  [[nodiscard]] bool refill(BitBuffer& buffer);

  // Have all bits that were taken been there?
  bool is_within(const BitBuffer& buffer) const;

  // Does a marker stand right behind the last bits taken?
  [[nodiscard]] bool at_marker(BitBuffer& buffer);
  // What was not looked at yet: from that marker on, where at_marker() was true.
  std::span<const std::uint8_t> ahead() const { return {from_, end_}; }
  // Does restart marker `number` (0 ... 7) stand right behind the last bits taken?
  [[nodiscard]] bool at_restart(int number, BitBuffer& buffer);
  // Steps over it. False unless it stands there.
  [[nodiscard]] bool restart(int number, BitBuffer& buffer);
  // What follows the restart marker. Requires: at_restart() was true, and nothing came after it.
  std::span<const std::uint8_t> behind_restart() const { return {from_ + 2, end_}; }

  // Does an end-of-image marker stand in what was not looked at yet? (In what was, there is no marker at all.)
  bool end_marker_ahead() const;

 private:
  // A few pieces and the tables have room in a first-level cache of 32 KiB.
  static constexpr std::size_t kPiece = 8 << 10;
  // next may stand one word behind the last byte when an MCU begins, runs a word ahead, and a word is read there
  static constexpr std::size_t kSlack = kMaxMcuBytes + 3 * sizeof(std::uint64_t);

  void unstuff();

  const std::uint8_t* from_ = nullptr;  // the first byte that is not in buffer_
  const std::uint8_t* end_ = nullptr;
  bool at_marker_ = false;  // from_ is a marker or end_
  std::size_t filled_ = 0;
  std::array<std::uint8_t, kPiece + kSlack> buffer_;
};

}  // namespace feedline::decode::baseline
