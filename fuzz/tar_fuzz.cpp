// SPDX-License-Identifier: Apache-2.0

// Any bytes as a tar shard: no crash, no read out of bounds, no excessive memory. Members and index entries are inside
// the shard, and the index of a scan without errors does not change when it is written and read.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "format/index/memory_reader.h"
#include "format/tar/shard_scan.h"
#include "format/tar/tar_header.h"

using namespace feedline;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t bytes, std::size_t most);

// Corrects headers' checksums, without which most mutations would be rejected at the first header.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t bytes, std::size_t most, unsigned seed) {
  bytes = LLVMFuzzerMutate(data, bytes, most);
  constexpr unsigned kLeaveBroken = 8;  // one in this many mutations is not corrected
  if (seed % kLeaveBroken == 0) return bytes;
  for (std::size_t at = 0; at + format::kBlockBytes <= bytes; at += format::kBlockBytes) {
    std::uint8_t* block = data + at;
    if (std::memcmp(block + 257, "ustar", 5) != 0) continue;
    std::memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (std::size_t i = 0; i < format::kBlockBytes; ++i) sum += block[i];
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    std::memcpy(block + 148, digits, 7);
  }
  return bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const format::MemoryReader reader(std::string_view(reinterpret_cast<const char*>(data), bytes));
  const storage::ObjectStat stat = reader.stat().value();
  format::Findings findings;
  const auto scan = format::scan_shard(reader, stat, "fuzz.tar", findings);
  FEEDLINE_CHECK(scan.has_value());  // reading from memory cannot fail
  const format::ShardIndex& index = scan->index;
  for (std::uint64_t i = 0; i < index.members(); ++i) {
    const auto member = index.member(i);
    FEEDLINE_CHECK(member.offset <= bytes && member.bytes <= bytes - member.offset);
  }
  // no end marker, so not a dataset
  if (!findings.first_error()) FEEDLINE_CHECK(bytes >= 2 * format::kBlockBytes);

  const auto file = index.file_bytes();
  memory::ByteBuffer buffer;
  std::ranges::copy(file, buffer.resize(file.size()).begin());
  const auto again = format::ShardIndex::parse(std::move(buffer), file.size(), stat);
  FEEDLINE_CHECK(again && again->samples() == index.samples());
  for (std::uint64_t i = 0; i < index.samples(); ++i) FEEDLINE_CHECK(again->key(i) == index.key(i));
  return 0;
}
