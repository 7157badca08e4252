// SPDX-License-Identifier: Apache-2.0

// Any bytes as stored checkpoints of a JPEG, and as a file of them. No read out of bounds; accepted checkpoints are
// inside the image and are written as they were read. Half of the inputs get correct checksums, without which every
// mutation would be rejected.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "cache/checksum.h"
#include "cache/entry_store.h"
#include "decode/jpeg/checkpoints.h"

using namespace feedline;

namespace {

constexpr std::size_t kImageBytes = 40'000, kScan = 600;
constexpr cache::FrameKind kKind{0x74'70'6b'63'64'65'65'66, 2};
constexpr std::size_t kHead = 48;

void check_entry(std::vector<std::byte> stored, bool has_sum) {
  if (has_sum && stored.size() >= 4) {
    const std::uint64_t sum = cache::xxh3(std::span(stored).subspan(4));
    std::memcpy(stored.data(), &sum, 4);
  }
  const std::vector<std::byte> image(kImageBytes);
  const decode::CheckpointGrid grid{32, 24, 32};
  decode::Checkpoints checkpoints;
  if (!decode::read_checkpoints(stored, grid, kImageBytes, kScan, checkpoints)) {
    FEEDLINE_CHECK(checkpoints.known.empty());
    return;
  }
  FEEDLINE_CHECK(checkpoints.known.size() <= checkpoints.grid.size() && checkpoints.known.front().bit == 0);
  for (std::size_t i = 0; i < checkpoints.known.size(); ++i) {
    FEEDLINE_CHECK(checkpoints.known[i].bit / 8 < kImageBytes - kScan);
    FEEDLINE_CHECK(checkpoints.grid.mcu(i) < grid.across * grid.down);
    (void)decode::is_unchanged(checkpoints, i, image, kScan);
  }
  std::vector<std::byte> again;
  decode::write_checkpoints(checkpoints, image, again);
  decode::Checkpoints same;
  FEEDLINE_CHECK(decode::read_checkpoints(again, grid, kImageBytes, kScan, same));
  FEEDLINE_CHECK(same.known == checkpoints.known && same.digests == checkpoints.digests &&
                 same.grid == checkpoints.grid);
}

void check_file(std::vector<std::byte> file, bool has_sums) {
  if (has_sums && file.size() >= kHead) {
    std::uint64_t count = 0;
    std::memcpy(file.data(), &kKind, sizeof kKind);
    std::memcpy(&count, file.data() + 16, sizeof count);
    count %= (file.size() - kHead) / 16 + 1;
    const std::uint64_t bytes = file.size() - kHead - 16 * count;
    const std::uint64_t table = cache::xxh3(std::span(file).subspan(kHead, 16 * count));
    std::memcpy(file.data() + 16, &count, 8);
    std::memcpy(file.data() + 24, &bytes, 8);
    std::memcpy(file.data() + 32, &table, 8);
    const std::uint64_t sum = cache::xxh3(std::span(file).first(40));
    std::memcpy(file.data() + 40, &sum, 8);
  }
  const auto entries = cache::EntryFile::of_bytes(file, kKind);
  FEEDLINE_CHECK(!has_sums || file.size() < kHead || entries->lack() == cache::EntryFile::Lack::kNone);
  std::uint64_t sum = 0;  // reads all of them
  for (std::size_t i = 0; i < entries->size(); ++i) {
    for (const std::byte byte : entries->entry(i)) sum += static_cast<std::uint64_t>(byte);
    (void)entries->find(entries->key(i));
  }
  FEEDLINE_CHECK(sum < ~std::uint64_t{0});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  // an allocation of exactly this size, so that the address sanitizer detects reads beyond it
  std::vector<std::byte> rest(bytes - 1);
  std::ranges::copy(std::as_bytes(std::span(data + 1, bytes - 1)), rest.begin());
  if ((data[0] & 1) == 0)
    check_entry(std::move(rest), (data[0] & 2) != 0);
  else
    check_file(std::move(rest), (data[0] & 2) != 0);
  return 0;
}
