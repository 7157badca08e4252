// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/record_scan.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "format/tfrecord/record_frame.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// Reads headers through windows of the file. Windows are small if records are large, to avoid reading unnecessary data,
// and larger if each contains many headers.
class HeaderReader {
 public:
  explicit HeaderReader(const storage::Reader& reader) : reader_(reader), window_bytes_(reader.worthwhile_bytes()) {}

  // Returns the header at `offset`, or fewer bytes at the end of the file. Requires: ascending offsets.
  Result<Bytes> at(std::uint64_t offset) {
    if (offset < begin_ || offset + kRecordHeaderBytes > begin_ + held_) FEEDLINE_CHECK_OK(read(offset));
    ++used_;
    return Bytes(window_)
        .first(held_)
        .subspan(offset - begin_)
        .first(std::min<std::uint64_t>(kRecordHeaderBytes, begin_ + held_ - offset));
  }

 private:
  Result<void> read(std::uint64_t offset) {
    constexpr std::size_t kLargest = 1 << 20;  // large enough for full throughput from any storage backend
    constexpr std::uint64_t kMany = 8;
    if (std::exchange(used_, 0) >= kMany)
      window_bytes_ = std::max(window_bytes_, std::min(2 * window_bytes_, kLargest));
    if (window_.size() < window_bytes_) window_.resize(window_bytes_);
    FEEDLINE_TRY(held_, reader_.read_at(offset, std::span(window_).first(window_bytes_)));
    begin_ = offset;
    return {};
  }

  const storage::Reader& reader_;
  std::size_t window_bytes_;
  std::vector<std::byte> window_;
  std::uint64_t begin_ = 0, held_ = 0, used_ = 0;
};

std::string record_at(std::size_t record, std::uint64_t offset) {
  return "record " + std::to_string(record) + ", at byte " + std::to_string(offset) + ",";
}

// Returns the problem with the header of the next record, or nullopt if the header is valid.
std::optional<Finding> wrong_header(Bytes header, std::size_t record, std::uint64_t offset, std::uint64_t bytes,
                                    const std::string& shard) {
  const std::uint64_t left = bytes - offset;
  if (header.size() < kRecordHeaderBytes)
    return Finding{.code = "cut_record",
                   .shard = shard,
                   .key = {},
                   .offset = offset,
                   .text = record_at(record, offset) +
                           " is truncated: the file ends within its header; copy or download " + "the file again"};
  const auto length = length_in_header(header);
  if (!length)
    return Finding{
        .code = "bad_length",
        .shard = shard,
        .key = {},
        .offset = offset,
        .text = record_at(record, offset) + " has a length with a wrong checksum: " +
                (record == 0 ? "this is not a TFRecord file, or it is damaged at its first byte"
                             : "the file is damaged, and later records cannot be found; copy or download it again")};
  if (left >= kRecordFrameBytes && *length <= left - kRecordFrameBytes) return {};
  return Finding{.code = "cut_record",
                 .shard = shard,
                 .key = {},
                 .offset = offset,
                 .text = record_at(record, offset) + " has " + std::to_string(*length) +
                         " bytes according to its header, but only " + std::to_string(left) +
                         " bytes follow: the file is truncated; copy or download it again"};
}

}  // namespace

Result<std::vector<std::uint64_t>> scan_records(const storage::Reader& reader, std::uint64_t bytes,
                                                const std::string& shard, Findings& findings) {
  HeaderReader headers(reader);
  std::vector<std::uint64_t> ends;
  for (std::uint64_t offset = 0; offset < bytes;) {
    FEEDLINE_TRY(const Bytes header, headers.at(offset));
    if (auto wrong = wrong_header(header, ends.size(), offset, bytes, shard)) {
      findings.add(std::move(*wrong));
      break;
    }
    ends.push_back(offset += *length_in_header(header) + kRecordFrameBytes);
  }
  return ends;
}

}  // namespace feedline::format
