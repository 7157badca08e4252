// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/checkpoints.h"

#include <algorithm>
#include <bit>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace feedline::decode {
namespace {

// Narrower images have one checkpoint per row: skipping the rest of a row costs little.
constexpr int kMostUndivided = 48;
constexpr int kSmallestStep = 16;
// Measured on photos: deltas of a position and three predictors.
constexpr std::size_t kUsualBytes = 6;
constexpr std::size_t kMostShare = 100;  // checkpoints take at most this part of the file
// In smaller files, decoding the rows of MCUs is faster than skipping them.
constexpr std::size_t kLeastFile = 8 << 10;

// A range of a large file consists of whole segments, so small segments make small ranges.
constexpr std::size_t kLargeFile = 256 << 10, kLeastSegment = 16 << 10, kSegmentOfSmall = 64 << 10;
constexpr std::size_t kMostSegments = 512;

constexpr std::size_t kKeyBefore = 1024, kKeyAfter = 256, kKeyEnd = 64;

constexpr int kMaxVarintBytes = 10;

std::uint64_t hash(std::span<const std::byte> bytes, std::uint64_t seed = 0) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// Returns the number of segments that contain the bytes up to a checkpoint, which may be in the middle of a byte.
std::size_t segments_to(const Checkpoint& checkpoint, std::size_t scan, std::size_t file) {
  return (scan + static_cast<std::size_t>(checkpoint.bit / 8)) / digested_bytes(file) + 1;
}

std::uint64_t digest_of(std::span<const std::byte> file, std::size_t segment) {
  const std::size_t size = digested_bytes(file.size()), first = std::min(segment * size, file.size());
  return digest_of_segment(file.subspan(first, std::min(size, file.size() - first)));
}

std::byte* put(std::byte* out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) *out++ = static_cast<std::byte>(value | 128);
  *out++ = static_cast<std::byte>(value);
  return out;
}

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t from_zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// After the first number that is missing or too long, all numbers are 0 and ok() is false.
class Numbers {
 public:
  explicit Numbers(std::span<const std::byte> bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
  std::uint64_t next() {
    std::uint64_t value = 0;
    for (int i = 0; i < kMaxVarintBytes && at_ != end_; ++i) {
      const auto byte = static_cast<std::uint64_t>(*at_++);
      value |= (byte & 127) << (7 * i);
      if (byte < 128) return value;
    }
    ok_ = false;
    at_ = end_;
    return 0;
  }
  bool ok() const { return ok_; }
  std::span<const std::byte> rest() const { return {at_, end_}; }

 private:
  const std::byte* at_;
  const std::byte* end_;
  bool ok_ = true;
};

// Returns the checksum of the stored form, computed over the bytes after the checksum field.
std::uint32_t checksum_of(std::span<const std::byte> stored) {
  return static_cast<std::uint32_t>(hash(stored.subspan(sizeof(std::uint32_t))));
}

// libjpeg's DC values are far smaller.
constexpr std::int64_t kMaxDc = 1 << 24;

bool read_known(Numbers& numbers, std::size_t count, std::size_t scan_bytes, Checkpoints& out) {
  const std::uint64_t bits = std::uint64_t{scan_bytes} * 8;
  out.known.resize(count);
  out.known[0] = {};
  for (std::size_t i = 1; i < count; ++i) {
    const Checkpoint& before = out.known[i - 1];
    Checkpoint& to = out.known[i];
    const std::uint64_t delta = numbers.next();
    to.bit = before.bit + delta;
    if (delta == 0 || delta >= bits || to.bit >= bits) return false;
    for (std::size_t c = 0; c < to.dc.size(); ++c) {
      const std::int64_t dc = before.dc[c] + from_zigzag(numbers.next());
      if (dc <= -kMaxDc || dc >= kMaxDc) return false;
      to.dc[c] = static_cast<std::int32_t>(dc);
    }
  }
  return numbers.ok();
}

bool read_digests(std::span<const std::byte> bytes, std::size_t count, Checkpoints& out) {
  if (bytes.size() != count * sizeof(std::uint64_t)) return false;
  out.digests.resize(count);
  std::memcpy(out.digests.data(), bytes.data(), bytes.size());
  return true;
}

}  // namespace

std::optional<CheckpointGrid> checkpoint_grid(int across, int down, std::size_t bytes) {
  CheckpointGrid grid{across, down, across <= kMostUndivided ? across : kSmallestStep};
  const auto fits = [&] { return grid.size() * kUsualBytes <= bytes / kMostShare; };
  while (grid.step < across && !fits()) grid.step = std::min(2 * grid.step, across);
  if (bytes < kLeastFile || !fits()) return std::nullopt;
  return grid;
}

std::uint64_t checkpoint_key(std::span<const std::byte> file, std::size_t scan) {
  const std::size_t first = scan - std::min(scan, kKeyBefore), end = std::min(scan + kKeyAfter, file.size());
  const std::uint64_t start = hash(file.subspan(first, end - first), file.size());
  return hash(file.last(std::min(kKeyEnd, file.size())), start);
}

std::size_t digested_bytes(std::size_t file_bytes) {
  if (file_bytes < kLargeFile) return kSegmentOfSmall;
  return std::bit_ceil(std::max(kLeastSegment, (file_bytes + kMostSegments - 1) / kMostSegments));
}

std::uint64_t digest_of_segment(std::span<const std::byte> segment) { return hash(segment); }

bool is_unchanged(const Checkpoints& checkpoints, std::size_t last, std::span<const std::byte> file, std::size_t scan) {
  const std::size_t segments = segments_to(checkpoints.known[last], scan, file.size());
  if (segments > checkpoints.digests.size()) return false;
  for (std::size_t i = 0; i < segments; ++i)
    if (digest_of(file, i) != checkpoints.digests[i]) return false;
  return true;
}

void add_digests(Checkpoints& checkpoints, std::span<const std::byte> file, std::size_t scan) {
  const bool is_complete = checkpoints.known.size() == checkpoints.grid.size();
  const std::size_t segments = is_complete ? (file.size() - 1) / digested_bytes(file.size()) + 1
                                           : segments_to(checkpoints.known.back(), scan, file.size());
  while (checkpoints.digests.size() < segments)
    checkpoints.digests.push_back(digest_of(file, checkpoints.digests.size()));
}

//      0  4     the low half of the XXH3-64 of the rest
//      4  ...   varints: the file's size, MCUs across and down, step, checkpoints, digests
//         ...   for each checkpoint after the first: varints of the differences of its bit and predictors (zigzag)
//         8 x n digests, little-endian
void write_checkpoints(const Checkpoints& checkpoints, std::span<const std::byte> file, std::vector<std::byte>& out) {
  const auto digests = std::as_bytes(std::span(checkpoints.digests));
  out.resize(sizeof(std::uint32_t) + (6 + 4 * checkpoints.known.size()) * kMaxVarintBytes + digests.size());
  std::byte* at = out.data() + sizeof(std::uint32_t);
  const CheckpointGrid& grid = checkpoints.grid;
  at = put(at, file.size());
  for (const int number : {grid.across, grid.down, grid.step}) at = put(at, static_cast<std::uint64_t>(number));
  at = put(at, checkpoints.known.size());
  at = put(at, checkpoints.digests.size());
  for (std::size_t i = 1; i < checkpoints.known.size(); ++i) {
    const Checkpoint &before = checkpoints.known[i - 1], &next = checkpoints.known[i];
    at = put(at, next.bit - before.bit);
    for (std::size_t c = 0; c < next.dc.size(); ++c) at = put(at, zigzag(std::int64_t{next.dc[c]} - before.dc[c]));
  }
  at = std::ranges::copy(digests, at).out;
  out.resize(static_cast<std::size_t>(at - out.data()));
  const std::uint32_t sum = checksum_of(out);
  std::memcpy(out.data(), &sum, sizeof sum);
}

bool read_checkpoints(std::span<const std::byte> stored, const CheckpointGrid& grid, std::size_t file_bytes,
                      std::size_t scan, Checkpoints& out) {
  out.clear();
  std::uint32_t sum = 0;
  if (stored.size() < sizeof sum) return false;
  std::memcpy(&sum, stored.data(), sizeof sum);
  if (sum != checksum_of(stored)) return false;
  Numbers numbers(stored.subspan(sizeof sum));
  const std::uint64_t bytes = numbers.next(), across = numbers.next(), down = numbers.next(), step = numbers.next();
  const std::uint64_t known = numbers.next(), digests = numbers.next();
  out.grid = {grid.across, grid.down, static_cast<int>(std::min<std::uint64_t>(step, across))};
  const bool fits = bytes == file_bytes && across == static_cast<std::uint64_t>(grid.across) &&
                    down == static_cast<std::uint64_t>(grid.down) && step > 0 && step <= across && known > 0 &&
                    known <= out.grid.size() && known <= stored.size() && digests <= kMostSegments;
  if (fits && read_known(numbers, static_cast<std::size_t>(known), file_bytes - scan, out) &&
      read_digests(numbers.rest(), static_cast<std::size_t>(digests), out))
    return true;
  out.clear();
  return false;
}

}  // namespace feedline::decode
