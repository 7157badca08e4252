// SPDX-License-Identifier: Apache-2.0
#pragma once

// Provides the entropy-coded bytes of a scan up to the next marker, without the zeros stuffed after 0xFF, in pieces
// that fit in the cache.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace feedline::decode::baseline {

// A baseline block has at most 64 symbols of 16 code bits and 15 value bits each, and the supported layouts have at
// most 6 blocks per MCU. At least this many bytes follow `limit`, so decoding an MCU needs no bounds check.
inline constexpr std::size_t kMaxMcuBytes = 6 * 64 * 31 / 8;

// The next bits of the stream, most significant first. The bits below the `count` valid ones are also from the stream,
// or zero.
struct BitBuffer {
  std::uint64_t bits = 0;
  unsigned count = 0;                  // at most 63
  const std::uint8_t* next = nullptr;  // the first byte without valid bits
  const std::uint8_t* limit = nullptr;
};

class BaselineInput {
 public:
  // scan: the data after the scan's header; it must stay valid until the last call.
  void start(std::span<const std::byte> scan, BitBuffer& buffer);

  // Call this function when buffer.next has passed buffer.limit. Returns false if more bits were consumed than the data
  // has before the next marker.
  [[nodiscard]] bool refill(BitBuffer& buffer);

  // Returns whether all consumed bits were present in the data.
  bool is_within(const BitBuffer& buffer) const;

  // Returns whether a marker directly follows the consumed bits.
  [[nodiscard]] bool at_marker(BitBuffer& buffer);
  // Returns the data that has not been read, which begins with the marker if at_marker() returned true.
  std::span<const std::uint8_t> ahead() const { return {from_, end_}; }
  // Returns whether restart marker `number` (0 ... 7) directly follows the consumed bits.
  [[nodiscard]] bool at_restart(int number, BitBuffer& buffer);
  // Skips the marker. Returns false if the marker is missing.
  [[nodiscard]] bool restart(int number, BitBuffer& buffer);
  // Returns the data after the restart marker. Requires: at_restart() returned true, and no other function was called
  // since.
  std::span<const std::uint8_t> behind_restart() const { return {from_ + 2, end_}; }

  // Call before start(): position() will return offsets in this data. Empty: it will not be called.
  void track_positions(std::span<const std::byte> data) {
    origin_ = reinterpret_cast<const std::uint8_t*>(data.data());
  }
  // The offset of the next bit, including stuffed zeros.
  std::uint64_t position(const BitBuffer& buffer);

  // Returns whether the unread data contains an end-of-image marker. (The data read so far contains no marker.)
  bool end_marker_ahead() const;

 private:
  // A few pieces and the tables fit in an L1 cache of 32 KiB.
  static constexpr std::size_t kPiece = 8 << 10;
  // next may be one word past the last byte when an MCU begins, runs one word ahead, and loads a word there
  static constexpr std::size_t kSlack = kMaxMcuBytes + 3 * sizeof(std::uint64_t);
  // Bytes before `next` that a BitBuffer may hold.
  static constexpr std::size_t kLead = sizeof(std::uint64_t);

  void unstuff();
  std::uint8_t* first() { return buffer_.data() + kLead; }
  const std::uint8_t* first() const { return buffer_.data() + kLead; }
  const std::uint8_t* next_byte(const BitBuffer& buffer) const { return buffer.next - (buffer.count + 7) / 8; }
  void count_to(const std::uint8_t* byte);

  const std::uint8_t* from_ = nullptr;  // the first byte that is not in buffer_
  const std::uint8_t* end_ = nullptr;
  bool at_marker_ = false;                 // from_ is a marker or end_
  std::size_t filled_ = 0;                 // bytes from first() on
  const std::uint8_t* origin_ = nullptr;   // of positions; null: they are not tracked
  const std::uint8_t* counted_ = nullptr;  // the byte in buffer_ whose offset is `offset_`
  std::uint64_t offset_ = 0;
  std::array<std::uint8_t, kLead + kPiece + kSlack> buffer_;
};

}  // namespace feedline::decode::baseline
