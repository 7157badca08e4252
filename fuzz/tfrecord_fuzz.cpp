// SPDX-License-Identifier: Apache-2.0

// Any bytes as a TFRecord file: no crash, no read out of bounds, no excessive memory. Records are contiguous up to the
// end of the scan, and the index does not change when it is written and read. Each record that is an Example can be
// surveyed, read with the fields from the survey, and exported as files.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "format/index/memory_reader.h"
#include "format/tfrecord/feature_files.h"
#include "format/tfrecord/feature_reader.h"
#include "format/tfrecord/foreign_index.h"
#include "format/tfrecord/record_frame.h"
#include "format/tfrecord/record_index.h"
#include "format/tfrecord/record_scan.h"

using namespace feedline;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t bytes, std::size_t most);

// Corrects lengths and checksums, without which most mutations would be rejected at the first record. A length that is
// too large becomes the rest of the file.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t bytes, std::size_t most, unsigned seed) {
  bytes = LLVMFuzzerMutate(data, bytes, most);
  constexpr unsigned kLeaveBroken = 8;  // one in this many mutations is not corrected
  if (seed % kLeaveBroken == 0) return bytes;
  for (std::size_t at = 0; bytes - at >= format::kRecordFrameBytes;) {
    const std::uint64_t left = bytes - at - format::kRecordFrameBytes;
    std::uint64_t length = 0;
    std::memcpy(&length, data + at, sizeof length);
    if (length > left) length = left;
    std::memcpy(data + at, &length, sizeof length);
    const auto sum = [](const std::uint8_t* from, std::size_t count) {
      return format::masked_crc(std::as_bytes(std::span(from, count)));
    };
    const std::uint32_t of_length = sum(data + at, sizeof length);
    std::memcpy(data + at + sizeof length, &of_length, sizeof of_length);
    const std::uint8_t* content = data + at + format::kRecordHeaderBytes;
    const std::uint32_t of_data = sum(content, length);
    std::memcpy(data + at + format::kRecordHeaderBytes + length, &of_data, sizeof of_data);
    at += length + format::kRecordFrameBytes;
  }
  return bytes;
}

namespace {

using Bytes = std::span<const std::byte>;

void check_index(const std::vector<std::uint64_t>& ends) {
  const storage::ObjectStat stat{ends.empty() ? 0 : ends.back(), 1};
  const auto index = format::RecordIndex::build(ends, stat);
  const auto file = index.file_bytes();
  memory::ByteBuffer buffer;
  std::ranges::copy(file, buffer.resize(file.size()).begin());
  const auto again = format::RecordIndex::parse(std::move(buffer), file.size(), stat);
  FEEDLINE_CHECK(again && std::ranges::equal(again->ends(), ends));
}

void check_record(Bytes data) {
  format::FeatureSurvey survey;
  if (!survey.add(data)) return;
  std::vector<std::string> specs;
  for (const auto& [name, seen] : survey.features())
    if (name.find_first_of(":;=") == name.npos) specs.push_back(name);
  if (specs.empty()) return;
  (void)format::choose_features({}, survey);
  (void)format::files_of(data, {});
  const auto fields = format::choose_features(specs, survey);
  if (!fields) return;
  (void)format::files_of(data, *fields);
  memory::Record record;
  const auto read = format::FeatureReader(*fields).read(data, record);
  if (!read) return;
  for (std::size_t i = 0; i < fields->size(); ++i) {
    const Bytes bytes = record.fields[i].bytes;
    // a byte string is inside the record; numbers are at most 8 times their stored size, and a header
    FEEDLINE_CHECK(bytes.size() <= 8 * data.size() + 128);
    std::uint8_t sum = 0;
    for (const std::byte byte : bytes)
      sum ^= std::to_integer<std::uint8_t>(byte);  // reads every byte, for the sanitizers
    static volatile std::uint8_t sink;
    sink = sum;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  const format::MemoryReader reader(text);
  format::Findings findings;
  const auto ends = format::scan_records(reader, bytes, "fuzz.tfrecord", findings);
  FEEDLINE_CHECK(ends.has_value());  // reading from memory cannot fail
  FEEDLINE_CHECK(findings.first_error() != nullptr || (ends->empty() ? bytes == 0 : ends->back() == bytes));
  check_index(*ends);
  std::uint64_t begin = 0;
  for (const std::uint64_t end : *ends) {
    const Bytes record = std::as_bytes(std::span(data, bytes)).subspan(begin, end - begin);
    FEEDLINE_CHECK(record.size() >= format::kRecordFrameBytes);
    begin = end;
    if (format::has_good_data(record)) check_record(format::data_in(record));
  }
  // the same bytes as another program's index of a matching shard
  if (const auto foreign = format::parse_foreign_index(text, 4096)) FEEDLINE_CHECK(format::ends_fit(*foreign, 4096));
  return 0;
}
