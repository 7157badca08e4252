// SPDX-License-Identifier: Apache-2.0

// Any bytes as a cache's entry for a copy, and as a table of numbers and sections. No read out of bounds; an accepted
// entry is written with the same size and contents.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "cache/checksum.h"
#include "cache/frame.h"
#include "cache/node/entry.h"

using namespace feedline;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t bytes, std::size_t most);

// Corrects the checksum at the end, without which every mutation would be rejected.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t bytes, std::size_t most, unsigned seed) {
  bytes = LLVMFuzzerMutate(data, bytes, most);
  constexpr unsigned kLeaveBroken = 8;  // one in this many mutations is not corrected
  constexpr std::size_t kSumBytes = 8;
  if (seed % kLeaveBroken == 0 || bytes < kSumBytes) return bytes;
  const std::uint64_t sum = cache::xxh3(std::as_bytes(std::span(data, bytes - kSumBytes)));
  std::memcpy(data + bytes - kSumBytes, &sum, kSumBytes);
  return bytes;
}

namespace {

// Reads it like a table, with the section sizes that it contains.
void check_table(std::span<const std::byte> file) {
  cache::FrameKind kind;
  if (file.size() >= sizeof kind) std::memcpy(&kind, file.data(), sizeof kind);
  FEEDLINE_CHECK(!cache::is_foreign(file, kind));
  constexpr std::size_t kNumbers = 3;
  cache::FrameReader reader(file, kind, kNumbers);
  const auto first = reader.take<std::uint64_t>(reader.count(0));
  const auto second = reader.take<char>(reader.count(1));
  const auto third = reader.take<std::uint32_t>(reader.count(2));
  FEEDLINE_CHECK(first.size_bytes() + second.size_bytes() + third.size_bytes() <= file.size());
  std::uint64_t sum = 0;  // reads all of them
  for (const std::uint64_t value : first) sum += value;
  for (const char value : second) sum += static_cast<unsigned char>(value);
  for (const std::uint32_t value : third) sum += value;
  FEEDLINE_CHECK(sum != 1 || file.size() > sizeof kind);
}

void check_entry(std::span<const std::byte> file) {
  const auto entry = cache::read_entry(file);
  if (!entry) return;
  FEEDLINE_CHECK(cache::is_undamaged(file));
  memory::ByteBuffer buffer;
  const auto again = cache::write_entry(*entry, buffer);
  // the name's padding is written as zeros
  FEEDLINE_CHECK(again.size() == file.size());
  const auto read = cache::read_entry(again);
  FEEDLINE_CHECK(read && read->object == entry->object && read->version == entry->version);
  FEEDLINE_CHECK(read->checksum == entry->checksum && read->made_ns == entry->made_ns);
  FEEDLINE_CHECK(cache::entry_name(entry->object, entry->version).size() == 32);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  // an allocation of exactly this size, so that the address sanitizer detects reads beyond it
  std::vector<std::byte> file(bytes);
  std::ranges::copy(std::as_bytes(std::span(data, bytes)), file.begin());
  check_table(file);
  check_entry(file);
  return 0;
}
