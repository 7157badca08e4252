// SPDX-License-Identifier: Apache-2.0
#pragma once

// The entropy-coded bytes of a scan as a plain bit string: without the zeros stuffed after 0xFF, up to the next marker,
// in pieces that fit the cache.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace feedline::decode::baseline {

// A baseline block has at most 64 symbols of 16 code bits and 15 value bits; an MCU here has at most 6 blocks. At least
// that many bytes follow `limit`, so decoding an MCU needs no bounds check.
inline constexpr std::size_t kMaxMcuBytes = 6 * 64 * 31 / 8;

// The next bits, most significant first. The bits below the `count` valid ones are also from the stream, or zero.
struct BitBuffer {
  std::uint64_t bits = 0;
  unsigned count = 0;                  // at most 63
  const std::uint8_t* next = nullptr;  // the first byte without valid bits
  const std::uint8_t* limit = nullptr;
};

class BaselineInput {
 public:
  // `scan`: the data after the scan's header. Must stay valid until the last call.
  void start(std::span<const std::byte> scan, BitBuffer& buffer);

  // Call when buffer.next has passed buffer.limit. Returns false if more bits were consumed than precede the next
  // marker.
  [[nodiscard]] bool refill(BitBuffer& buffer);

  // Returns whether all consumed bits were present in the data.
  bool is_within(const BitBuffer& buffer) const;

  // Returns whether a marker directly follows the consumed bits.
  [[nodiscard]] bool at_marker(BitBuffer& buffer);
  // The unread data, starting with the marker if at_marker() was true.
  std::span<const std::uint8_t> ahead() const { return {from_, end_}; }
  // Returns whether restart marker `number` (0 ... 7) directly follows the consumed bits.
  [[nodiscard]] bool at_restart(int number, BitBuffer& buffer);
  // Skips the marker. Returns false if it is missing.
  [[nodiscard]] bool restart(int number, BitBuffer& buffer);
  // The data after the restart marker. Requires: at_restart() was true, and no other call followed.
  std::span<const std::uint8_t> behind_restart() const { return {from_ + 2, end_}; }

  // Returns whether the unread data contains an end-of-image marker. (The data read so far contains no marker.)
  bool end_marker_ahead() const;

 private:
  // A few pieces and the tables fit in an L1 cache of 32 KiB.
  static constexpr std::size_t kPiece = 8 << 10;
  // next may be one word past the last byte when an MCU begins, runs one word ahead, and loads a word there
  static constexpr std::size_t kSlack = kMaxMcuBytes + 3 * sizeof(std::uint64_t);

  void unstuff();

  const std::uint8_t* from_ = nullptr;  // the first byte that is not in buffer_
  const std::uint8_t* end_ = nullptr;
  bool at_marker_ = false;  // from_ is a marker or end_
  std::size_t filled_ = 0;
  std::array<std::uint8_t, kPiece + kSlack> buffer_;
};

}  // namespace feedline::decode::baseline
