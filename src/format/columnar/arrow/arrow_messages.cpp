// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/arrow_messages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kMagic = "ARROW1";
constexpr std::uint64_t kFrontBytes = 8;  // the magic with its padding
constexpr std::uint32_t kContinued = 0xffffffff;
constexpr std::uint64_t kMostMetadata = 256 << 20;  // limit per message: a schema of thousands of columns has megabytes

// Field numbers of the tables in Message.fbs and File.fbs.
namespace message {
enum : std::size_t { kVersion, kHeaderKind, kHeader, kBodyBytes };
enum Kind : std::uint8_t { kSchema = 1, kDictionary = 2, kBatch = 3 };
}  // namespace message
namespace dictionary {
enum : std::size_t { kId, kBatch, kIsDelta };
}
namespace batch {
enum : std::size_t { kRows };
}
namespace footer {
enum : std::size_t { kVersion, kSchema, kDictionaries, kBatches };
constexpr std::uint64_t kBlockBytes = 24;  // i64 offset, i32 bytes of metadata, i64 bytes of the body
}  // namespace footer

std::unexpected<Error> damaged(std::uint64_t offset, const std::string& how) {
  auto error = data_error(how + ": the file is damaged or truncated; copy or download it again", "format");
  error.error().where.offset = offset;
  return error;
}

Result<std::vector<std::byte>> read_all(const storage::Reader& reader, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<std::byte> read(bytes);
  FEEDLINE_TRY(const std::size_t got, reader.read_at(offset, read));
  if (got < bytes) return damaged(offset + got, "the file ends inside a message");
  return read;
}

class MessageReader {
 public:
  MessageReader(const storage::Reader& reader, std::uint64_t bytes) : reader_(reader), bytes_(bytes) {}

  // Reads the message at `offset`, or returns nullptr for the end marker. Messages must end before `end`.
  Result<std::shared_ptr<const ArrowMessage>> read(std::uint64_t offset, std::uint64_t end) {
    FEEDLINE_TRY(const std::uint64_t prefix, read_size(offset, end));
    if (size_ == 0) return std::shared_ptr<const ArrowMessage>();
    auto made = std::make_shared<ArrowMessage>();
    made->offset = offset;
    made->body = offset + prefix + size_;
    if (size_ > kMostMetadata || made->body > end)
      return damaged(offset,
                     "a message with " + std::to_string(size_) + " bytes of metadata does not fit into the file");
    FEEDLINE_TRY(made->metadata, take(offset + prefix, size_));
    FlatBuffer buffer(made->metadata);
    const auto body = FlatTable::root(buffer).number<std::int64_t>(message::kBodyBytes, 0);
    if (buffer.is_damaged() || body < 0)
      return damaged(offset, "the metadata of a message is damaged: an offset points outside it");
    made->body_bytes = static_cast<std::uint64_t>(body);
    if (made->body_bytes > end - made->body)
      return damaged(offset, "a message with a body of " + std::to_string(body) + " bytes does not fit into the file");
    return std::shared_ptr<const ArrowMessage>(std::move(made));
  }

 private:
  // Sets size_ to the size of the metadata, and returns the size of the prefix before it.
  Result<std::uint64_t> read_size(std::uint64_t offset, std::uint64_t end) {
    const auto number = [&](std::uint64_t at) -> Result<std::uint32_t> {
      if (end < at || end - at < sizeof(std::uint32_t)) return damaged(at, "the file has no end marker");
      FEEDLINE_TRY(const auto bytes, take(at, sizeof(std::uint32_t)));
      std::uint32_t value = 0;
      std::memcpy(&value, bytes.data(), sizeof value);
      return value;
    };
    FEEDLINE_TRY(std::uint32_t value, number(offset));
    const bool is_continued = value == kContinued;
    if (is_continued) {
      FEEDLINE_TRY(value, number(offset + sizeof value));
    }
    size_ = value;
    return is_continued ? 2 * sizeof value : sizeof value;
  }

  // Returns bytes from a window that is read ahead, so that most messages need only one read.
  Result<std::vector<std::byte>> take(std::uint64_t offset, std::uint64_t bytes) {
    if (offset < begin_ || offset + bytes > begin_ + held_) {
      window_.resize(
          std::max<std::uint64_t>(bytes, std::min(bytes_ - offset, std::uint64_t{reader_.worthwhile_bytes()})));
      FEEDLINE_TRY(held_, reader_.read_at(offset, window_));
      begin_ = offset;
      if (held_ < bytes) return damaged(offset + held_, "the file ends inside a message");
    }
    const auto first = window_.begin() + static_cast<std::ptrdiff_t>(offset - begin_);
    return std::vector<std::byte>(first, first + static_cast<std::ptrdiff_t>(bytes));
  }

  const storage::Reader& reader_;
  const std::uint64_t bytes_;
  std::uint64_t size_ = 0, begin_ = 0, held_ = 0;
  std::vector<std::byte> window_;
};

message::Kind kind_of(const ArrowMessage& one) {
  FlatBuffer buffer(one.metadata);
  return static_cast<message::Kind>(FlatTable::root(buffer).number<std::uint8_t>(message::kHeaderKind, 0));
}

// Collects the batches and dictionaries from the messages, in order.
class MessageList {
 public:
  explicit MessageList(ArrowSchema schema) { made_.schema = std::move(schema); }

  Result<void> add(const std::shared_ptr<const ArrowMessage>& one) {
    FlatBuffer buffer(one->metadata);
    const FlatTable header = FlatTable::root(buffer).table(message::kHeader);
    if (kind_of(*one) == message::kDictionary) {
      if (header.number<std::uint8_t>(dictionary::kIsDelta, 0) != 0)
        return config_error("the file has a delta dictionary, which this version does not support");
      auto all = std::make_shared<Dictionaries>(dictionaries_ ? *dictionaries_ : Dictionaries());
      (*all)[header.number<std::int64_t>(dictionary::kId, 0)] = one;
      dictionaries_ = std::move(all);
      return {};
    }
    const auto rows = header.number<std::int64_t>(batch::kRows, 0);
    constexpr std::int64_t kMostRows = std::int64_t{1} << 40;
    if (kind_of(*one) != message::kBatch || buffer.is_damaged() || rows < 0 || rows > kMostRows)
      return damaged(one->offset, "a message is not a record batch");
    made_.batches.push_back({one, static_cast<std::uint64_t>(rows), dictionaries_});
    return {};
  }
  ArrowMessages take() { return std::move(made_); }

 private:
  using Dictionaries = std::map<std::int64_t, std::shared_ptr<const ArrowMessage>>;
  ArrowMessages made_;
  std::shared_ptr<const Dictionaries> dictionaries_;
};

Result<ArrowMessages> read_stream(const storage::Reader& reader, ByteRange part) {
  const std::uint64_t end = part.offset + part.bytes;
  MessageReader messages(reader, end);
  FEEDLINE_TRY(const auto first, messages.read(part.offset, end));
  if (!first || kind_of(*first) != message::kSchema) return damaged(part.offset, "the first message is not a schema");
  FlatBuffer buffer(first->metadata);
  FEEDLINE_TRY(ArrowSchema schema, read_arrow_schema(FlatTable::root(buffer).table(message::kHeader), buffer));
  MessageList list(std::move(schema));
  for (std::uint64_t offset = first->body + first->body_bytes;;) {
    FEEDLINE_TRY(const auto next, messages.read(offset, end));
    if (!next) return list.take();
    FEEDLINE_CHECK_OK(list.add(next));
    offset = next->body + next->body_bytes;
  }
}

// Reads the metadata of all messages that the footer of the file in [begin, end) lists.
std::vector<ByteRange> blocks_in(const FlatTable& root, std::uint64_t begin, std::uint64_t end) {
  constexpr std::size_t kBytesAt = sizeof(std::int64_t);
  std::vector<ByteRange> ranges;
  for (const std::size_t kind : {footer::kDictionaries, footer::kBatches}) {
    const FlatVector blocks = root.vector(kind, footer::kBlockBytes);
    for (std::uint64_t i = 0; i < blocks.size; ++i) {
      const auto offset = blocks.load<std::int64_t>(i);
      const auto bytes = blocks.load<std::int32_t>(i, kBytesAt);
      if (offset < 0 || bytes < 0 || std::cmp_greater(offset, end - begin)) continue;
      ranges.push_back({begin + static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(bytes)});
    }
  }
  return ranges;
}

Result<ArrowMessages> read_file(const storage::Reader& reader, ByteRange part) {
  constexpr std::uint64_t kEndBytes = 4 + kMagic.size();
  const auto [begin, bytes] = part;
  if (bytes < kFrontBytes + kEndBytes) return damaged(begin, "the file is too short");
  const std::uint64_t end_at = begin + bytes - kEndBytes;
  FEEDLINE_TRY(const auto end, read_all(reader, end_at, kEndBytes));
  if (std::memcmp(end.data() + 4, kMagic.data(), kMagic.size()) != 0)
    return damaged(end_at, "the file does not end with \"ARROW1\"");
  std::uint32_t footer_bytes = 0;
  std::memcpy(&footer_bytes, end.data(), sizeof footer_bytes);
  if (footer_bytes > kMostMetadata || footer_bytes > bytes - kFrontBytes - kEndBytes)
    return damaged(end_at, "a footer of " + std::to_string(footer_bytes) + " bytes does not fit into the file");
  const std::uint64_t footer_at = end_at - footer_bytes;
  FEEDLINE_TRY(const auto footer, read_all(reader, footer_at, footer_bytes));
  FlatBuffer buffer(footer);
  const FlatTable root = FlatTable::root(buffer);
  FEEDLINE_TRY(ArrowSchema schema, read_arrow_schema(root.table(footer::kSchema), buffer));
  bring_together(reader, [&] { return blocks_in(root, begin, footer_at); });
  MessageList list(std::move(schema));
  MessageReader messages(reader, begin + bytes);
  for (const std::size_t kind : {footer::kDictionaries, footer::kBatches}) {
    const FlatVector blocks = root.vector(kind, footer::kBlockBytes);
    for (std::uint64_t i = 0; i < blocks.size; ++i) {
      const auto offset = blocks.load<std::int64_t>(i);
      if (offset < 0 || static_cast<std::uint64_t>(offset) > footer_at - begin)
        return damaged(footer_at, "the footer has a message outside the file");
      const std::uint64_t at = begin + static_cast<std::uint64_t>(offset);
      FEEDLINE_TRY(const auto one, messages.read(at, footer_at));
      if (!one) return damaged(at, "a message has no metadata");
      FEEDLINE_CHECK_OK(list.add(one));
    }
  }
  if (buffer.is_damaged()) return damaged(footer_at, "the footer is damaged: an offset points outside it");
  return list.take();
}

}  // namespace

bool begins_as_arrow_file(Bytes bytes) {
  return bytes.size() >= kFrontBytes && std::memcmp(bytes.data(), "ARROW1\0\0", kFrontBytes) == 0;
}

bool begins_as_arrow_stream(Bytes bytes) {
  constexpr std::uint32_t kSmallest = 32;  // a schema without fields
  std::uint32_t numbers[2] = {};
  if (bytes.size() < sizeof numbers) return false;
  std::memcpy(numbers, bytes.data(), sizeof numbers);
  return numbers[0] == kContinued && numbers[1] >= kSmallest && numbers[1] % 8 == 0 && numbers[1] <= kMostMetadata;
}

Result<ArrowMessages> read_arrow_messages(const storage::Reader& reader, ByteRange part) {
  std::array<std::byte, kFrontBytes> front;
  FEEDLINE_TRY(const std::size_t got, reader.read_at(part.offset, front));
  if (begins_as_arrow_file(Bytes(front).first(got))) return read_file(reader, part);
  return read_stream(reader, part);
}

Result<ArrowSchema> read_schema_message(Bytes bytes) {
  std::uint32_t first = 0;
  if (bytes.size() >= sizeof first) std::memcpy(&first, bytes.data(), sizeof first);
  const std::size_t prefix = (first == kContinued ? 2 : 1) * sizeof first;
  if (bytes.size() < prefix) return data_error("the Arrow schema in the footer is truncated", "format");
  FlatBuffer buffer(bytes.subspan(prefix));
  const FlatTable root = FlatTable::root(buffer);
  if (root.number<std::uint8_t>(message::kHeaderKind, 0) != message::kSchema)
    return data_error("the Arrow schema in the footer is damaged", "format");
  return read_arrow_schema(root.table(message::kHeader), buffer);
}

FlatTable record_batch_in(FlatBuffer& metadata) {
  const FlatTable root = FlatTable::root(metadata);
  const FlatTable header = root.table(message::kHeader);
  const bool is_dictionary = root.number<std::uint8_t>(message::kHeaderKind, 0) == message::kDictionary;
  return is_dictionary ? header.table(dictionary::kBatch) : header;
}

}  // namespace feedline::format
