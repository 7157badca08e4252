// SPDX-License-Identifier: Apache-2.0
#include "format/tokens/megatron_index.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace feedline::format {
namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kHeadBytes = 9 + 8 + 1 + 8 + 8;
constexpr std::uint64_t kSequenceBytes = 4 + 8;  // without its mode
constexpr std::uint64_t kDocumentBytes = 8;

// The dtypes by Megatron's codes. Codes 6 and 7 are float64 and float32.
std::optional<DType> dtype_of(std::uint8_t code) {
  constexpr std::array<DType, 5> kFirst{DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64};
  if (code >= 1 && code <= kFirst.size()) return kFirst[code - 1];
  return code == 8 ? std::optional(DType::kUint16) : std::nullopt;
}

std::unexpected<Error> located(Error error, const std::string& path) {
  error.where.shard = path;
  error.where.stage = "format";
  return std::unexpected(std::move(error));
}

}  // namespace

bool begins_as_megatron_index(std::span<const std::byte> front) {
  return front.size() >= kMagic.size() && std::memcmp(front.data(), kMagic.data(), kMagic.size()) == 0;
}

std::unexpected<Error> MegatronIndex::damaged(const std::string& what) const {
  return located(data_error(what, "format").error(), path_);
}

Result<MegatronIndex> MegatronIndex::open(const std::string& path, const storage::Storage& storage) {
  MegatronIndex index;
  index.path_ = path;
  FEEDLINE_TRY(auto reader, storage.open(path, storage::Access::kMap));
  index.reader_ = std::move(reader);
  FEEDLINE_TRY(const storage::ObjectStat stat, index.reader_->stat());
  FEEDLINE_TRY(const auto mapped, index.reader_->view(0, stat.bytes));
  if (mapped) {
    index.bytes_ = *mapped;
  } else {
    std::vector<std::byte> memory(stat.bytes);
    FEEDLINE_TRY(const std::size_t got, index.reader_->read_at(0, memory));
    memory.resize(got);
    index.memory_ = std::make_shared<const std::vector<std::byte>>(std::move(memory));
    index.bytes_ = *index.memory_;
  }
  FEEDLINE_CHECK_OK(index.read_header());
  FEEDLINE_CHECK_OK(index.check_sequences());
  FEEDLINE_CHECK_OK(index.check_documents());
  return index;
}

Result<void> MegatronIndex::read_header() {
  if (!begins_as_megatron_index(bytes_))
    return damaged("the file is not a Megatron index: it does not begin with MMIDIDX");
  if (bytes_.size() < kHeadBytes)
    return damaged("truncated index: " + std::to_string(bytes_.size()) + " bytes are less than its header of " +
                   std::to_string(kHeadBytes));
  const std::byte* const head = bytes_.data() + kMagic.size();
  if (const auto version = number_at<std::uint64_t>(head, 0); version != kVersion)
    return damaged("the index has version " + std::to_string(version) + ", but only version 1 is supported");
  const auto code = number_at<std::uint8_t>(head + 8, 0);
  const auto dtype = dtype_of(code);
  if (code == 6 || code == 7)
    return located(config_error("the values are " + std::string(code == 6 ? "float64" : "float32") +
                                ", but tokens must be integers")
                       .error(),
                   path_);
  if (!dtype) return damaged("the index has the dtype code " + std::to_string(code) + "; codes are 1 to 8");
  dtype_ = *dtype;
  token_bytes_ = size_of(*dtype);
  sequences_ = number_at<std::uint64_t>(head + 9, 0);
  const auto entries = number_at<std::uint64_t>(head + 17, 0);  // one more than documents
  const std::uint64_t room = bytes_.size() - kHeadBytes;
  const bool fits = sequences_ <= room / kSequenceBytes && entries <= room / kDocumentBytes;
  const std::uint64_t plain = fits ? sequences_ * kSequenceBytes + entries * kDocumentBytes : 0;
  if (!fits || (room != plain && room != plain + sequences_))
    return damaged("the index has " + std::to_string(bytes_.size()) + " bytes, which do not match its header: " +
                   std::to_string(sequences_) + " sequences and " + std::to_string(entries) + " document entries");
  if (entries == 0) return damaged("the index has no document entries");
  documents_ = entries - 1;
  lengths_ = bytes_.data() + kHeadBytes;
  offsets_ = lengths_ + 4 * sequences_;
  documents_begin_ = offsets_ + 8 * sequences_;
  if (room == plain + sequences_ && sequences_ > 0) modes_ = documents_begin_ + 8 * entries;
  return {};
}

// Checks lengths and offsets in one pass, so that no later access needs a check.
Result<void> MegatronIndex::check_sequences() {
  constexpr std::uint64_t kMostTokens = std::numeric_limits<std::int64_t>::max() / 16;
  for (std::uint64_t i = 0; i < sequences_; ++i) {
    const auto length = number_at<std::int32_t>(lengths_, i);
    const auto offset = number_at<std::int64_t>(offsets_, i);
    const std::uint64_t first = static_cast<std::uint64_t>(offset) / token_bytes_;
    if (length < 0) return damaged("sequence " + std::to_string(i) + " has the length " + std::to_string(length));
    if (offset < 0 || static_cast<std::uint64_t>(offset) % token_bytes_ != 0 || first > kMostTokens)
      return damaged("sequence " + std::to_string(i) + " has the byte offset " + std::to_string(offset) +
                     ", which is not a multiple of " + std::to_string(token_bytes_) + ", the size of a token");
    tokens_ = std::max(tokens_, first + static_cast<std::uint64_t>(length));
    longest_ = std::max(longest_, static_cast<std::uint64_t>(length));
    empty_ += length == 0;
  }
  return {};
}

Result<void> MegatronIndex::check_documents() const {
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i <= documents_; ++i) {
    const std::uint64_t first = first_sequence(i);
    if (first < last || first > sequences_ || (i == 0 && first != 0))
      return damaged("document entry " + std::to_string(i) + " is " + std::to_string(first) +
                     "; entries must ascend from 0 to " + std::to_string(sequences_) + ", the number of sequences");
    last = first;
  }
  if (last != sequences_)
    return damaged("the last document ends at sequence " + std::to_string(last) + " of " + std::to_string(sequences_));
  return {};
}

Result<void> MegatronIndex::check_documents_contiguous() const {
  for (std::uint64_t document = 0; document < documents_; ++document)
    for (std::uint64_t i = first_sequence(document) + 1; i < first_sequence(document + 1); ++i)
      if (first_token(i) != first_token(i - 1) + length(i - 1))
        return damaged("the sequences of document " + std::to_string(document) +
                       " are not stored one after the other; open the file without documents=True");
  return {};
}

}  // namespace feedline::format
