// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checkpoints in a baseline JPEG: positions in its entropy-coded data, each with the decoder state that is needed to
// start there. Checkpoints are recorded while the image is decoded, and allow later decoding of a region to skip the
// data before it.
//
// A checkpoint is only valid if the bytes before it are unchanged, because they determine the DC predictors. An entry
// therefore has a digest of each segment of the file up to its last checkpoint, and is_unchanged() compares the
// digests: hashing a byte takes 1/50 of the time of decoding it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace feedline::decode {

// Checkpoint positions in data order: every `step` MCUs in each row of MCUs, starting at the row's first MCU.
struct CheckpointGrid {
  int across = 0, down = 0;  // MCUs of the image
  int step = 0;              // at most `across`

  int per_row() const { return (across + step - 1) / step; }
  std::size_t size() const { return static_cast<std::size_t>(per_row()) * static_cast<std::size_t>(down); }
  // Returns the MCU at position `i`.
  int mcu(std::size_t i) const {
    const int at = static_cast<int>(i);
    return at / per_row() * across + at % per_row() * step;
  }
  // Returns the last position that is at or before an MCU.
  std::size_t last_before(int mcu) const {
    return static_cast<std::size_t>(mcu / across) * static_cast<std::size_t>(per_row()) +
           static_cast<std::size_t>(mcu % across / step);
  }
  friend bool operator==(const CheckpointGrid&, const CheckpointGrid&) = default;
};

struct Checkpoint {
  std::uint64_t bit = 0;             // offset in the scan's data, including stuffed zeros
  std::array<std::int32_t, 3> dc{};  // the components' predictors
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

// The checkpoints of one image. The checkpoints at positions 0, 1, ... are known without a gap; position 0 is the
// scan's start.
struct Checkpoints {
  CheckpointGrid grid;
  std::vector<Checkpoint> known;       // empty: nothing is known
  std::vector<std::uint64_t> digests;  // of the file's segments up to the last known checkpoint

  void clear() { known.clear(), digests.clear(); }
};

// Returns the grid for an image in a file of `bytes` bytes: dense enough for crops, with checkpoints that take at most
// 1 % of the file's size. Returns nullopt if checkpoints would not save time for this image.
std::optional<CheckpointGrid> checkpoint_grid(int across, int down, std::size_t bytes);

// Looking up checkpoints is worthwhile only if decoding a region skips more than this number of MCUs.
inline constexpr int kLeastSkippedMcus = 96;

// Identifies an image by its file size and some of its bytes. scan: offset of the scan's data in the file.
std::uint64_t checkpoint_key(std::span<const std::byte> file, std::size_t scan);

// The digests are of segments of this size, counted from the file's start; the last one may be shorter.
std::size_t digested_bytes(std::size_t file_bytes);
std::uint64_t digest_of_segment(std::span<const std::byte> segment);

// Returns whether the file's bytes before checkpoint `last` are the same as when the checkpoints were recorded.
// Requires: `last` is known.
bool is_unchanged(const Checkpoints& checkpoints, std::size_t last, std::span<const std::byte> file, std::size_t scan);
// Adds the missing digests; if all checkpoints are known, of all segments of the file.
void add_digests(Checkpoints& checkpoints, std::span<const std::byte> file, std::size_t scan);

// Writes the stored form: deltas with a checksum, about 6 bytes per checkpoint.
void write_checkpoints(const Checkpoints& checkpoints, std::span<const std::byte> file, std::vector<std::byte>& out);
// Returns false, without any known checkpoints, if the stored form is damaged or belongs to another image. Reads
// nothing outside `stored`, whatever it contains. grid: the image's grid; its step is not used.
bool read_checkpoints(std::span<const std::byte> stored, const CheckpointGrid& grid, std::size_t file_bytes,
                      std::size_t scan, Checkpoints& out);

}  // namespace feedline::decode
