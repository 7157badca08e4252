// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/arrow_buffers.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "format/columnar/arrow/lz4_frame.h"
#include "format/compression/compression.h"

namespace feedline::format {
namespace {

// Field numbers of the tables in Message.fbs.
namespace batch {
enum : std::size_t { kRows, kNodes, kBuffers, kCompression, kVariadic };
constexpr std::uint64_t kNodeBytes = 16, kBufferBytes = 16, kCountBytes = 8;
}  // namespace batch

std::unexpected<Error> damaged(const ArrowMessage& message, const std::string& how) {
  auto error = data_error("a batch " + how + ": the file is damaged; copy or download it again", "format");
  error.error().where.offset = message.offset;
  return error;
}

// Assigns nodes and buffers to fields, in storage order.
class Dealer {
 public:
  Dealer(const ArrowMessage& message, const FlatTable& table)
      : message_(message),
        nodes_(table.vector(batch::kNodes, batch::kNodeBytes)),
        buffers_(table.vector(batch::kBuffers, batch::kBufferBytes)),
        variadic_(table.vector(batch::kVariadic, batch::kCountBytes)) {}

  Result<ArrowArray> take(const ArrowField& field) {
    ArrowArray array;
    array.field = &field;
    if (next_node_ >= nodes_.size) return damaged(message_, "has fewer arrays than the schema");
    const auto length = nodes_.load<std::int64_t>(next_node_), nulls = nodes_.load<std::int64_t>(next_node_, 8);
    ++next_node_;
    if (length < 0 || nulls < 0 || nulls > length || length > kMostLength)
      return damaged(message_, "has an array of " + std::to_string(length) + " values, " + std::to_string(nulls) +
                                   " of them null");
    array.length = static_cast<std::uint64_t>(length);
    array.nulls = static_cast<std::uint64_t>(nulls);
    FEEDLINE_TRY(const std::uint64_t count, buffers_of(field));
    for (std::uint64_t i = 0; i < count; ++i) {
      FEEDLINE_TRY(array.buffers.emplace_back(), take_buffer());
    }
    if (field.dictionary) return array;  // its values are in the dictionary
    for (const ArrowField& child : field.children) {
      FEEDLINE_TRY(array.children.emplace_back(), take(child));
    }
    return array;
  }
  bool is_done() const { return next_node_ == nodes_.size && next_buffer_ == buffers_.size; }

 private:
  static constexpr std::int64_t kMostLength = std::int64_t{1} << 40;

  Result<std::uint64_t> buffers_of(const ArrowField& field) {
    if (field.dictionary) return 2;
    switch (field.layout) {
      case ArrowLayout::kNothing:
      case ArrowLayout::kRunEnds:
        return 0;
      case ArrowLayout::kFixedList:
      case ArrowLayout::kStruct:
      case ArrowLayout::kSparseUnion:
        return 1;
      case ArrowLayout::kFixed:
      case ArrowLayout::kList:
      case ArrowLayout::kLargeList:
      case ArrowLayout::kDenseUnion:
        return 2;
      case ArrowLayout::kBinary:
      case ArrowLayout::kLargeBinary:
      case ArrowLayout::kListView:
      case ArrowLayout::kLargeListView:
        return 3;
      case ArrowLayout::kBinaryView: {
        if (next_variadic_ >= variadic_.size) return damaged(message_, "lacks the number of buffers of a column");
        const auto more = variadic_.load<std::int64_t>(next_variadic_++);
        if (more < 0 || static_cast<std::uint64_t>(more) > buffers_.size)
          return damaged(message_, "has a column of " + std::to_string(more) + " buffers");
        return 2 + static_cast<std::uint64_t>(more);
      }
    }
    return 0;
  }

  Result<ArrowBuffer> take_buffer() {
    if (next_buffer_ >= buffers_.size) return damaged(message_, "has fewer buffers than the schema");
    const auto offset = buffers_.load<std::int64_t>(next_buffer_), bytes = buffers_.load<std::int64_t>(next_buffer_, 8);
    ++next_buffer_;
    const auto begin = static_cast<std::uint64_t>(offset), size = static_cast<std::uint64_t>(bytes);
    if (offset < 0 || bytes < 0 || begin > message_.body_bytes || size > message_.body_bytes - begin)
      return damaged(message_, "has a buffer outside its body");
    return ArrowBuffer{message_.body + begin, size};
  }

  const ArrowMessage& message_;
  const FlatVector nodes_, buffers_, variadic_;
  std::uint64_t next_node_ = 0, next_buffer_ = 0, next_variadic_ = 0;
};

Result<std::vector<std::byte>> read_plain(const storage::Reader& reader, const ArrowBuffer& buffer) {
  std::vector<std::byte> bytes(buffer.bytes);
  FEEDLINE_TRY(const std::size_t got, reader.read_at(buffer.offset, bytes));
  if (got < bytes.size())
    return storage_error("the file ends at byte " + std::to_string(buffer.offset + got) + ": it has been truncated", 0);
  return bytes;
}

// The maximum plausible ratio of uncompressed to compressed size, which is larger than LZ4 and zstd can reach.
constexpr std::uint64_t kMostOfAByte = 1 << 16;
constexpr std::uint64_t kMostPlain = std::uint64_t{1} << 31;

std::unexpected<Error> damaged_buffer(const ArrowBuffer& buffer, const std::string& how) {
  auto error = data_error("a compressed buffer is damaged: " + how, "format");
  error.error().where.offset = buffer.offset;
  return error;
}

}  // namespace

Result<ArrowBody> read_arrow_body(const ArrowMessage& message, std::span<const ArrowField> fields) {
  FlatBuffer buffer(message.metadata);
  const FlatTable table = record_batch_in(buffer);
  ArrowBody body;
  if (const FlatTable compression = table.table(batch::kCompression); compression.is_there()) {
    const auto codec = compression.number<std::int8_t>(0, 0), method = compression.number<std::int8_t>(1, 0);
    if (codec < 0 || codec > 1 || method != 0)
      return config_error("a batch has a compression that this version does not support");
    body.codec = codec == 0 ? ArrowCodec::kLz4 : ArrowCodec::kZstd;
  }
  Dealer dealer(message, table);
  for (const ArrowField& field : fields) {
    FEEDLINE_TRY(body.arrays.emplace_back(), dealer.take(field));
  }
  if (buffer.is_damaged()) return damaged(message, "has metadata that extends beyond its declared size");
  if (!dealer.is_done()) return damaged(message, "has more arrays or buffers than the schema");
  return body;
}

// A buffer of a compressed batch begins with its uncompressed size as int64, or -1 if it is stored uncompressed.
Result<std::vector<std::byte>> read_arrow_buffer(const storage::Reader& reader, const ArrowBuffer& buffer,
                                                 ArrowCodec codec) {
  FEEDLINE_TRY(auto stored, read_plain(reader, buffer));
  if (codec == ArrowCodec::kNone || stored.empty()) return stored;
  std::int64_t plain = 0;
  if (stored.size() < sizeof plain) return damaged_buffer(buffer, "the buffer is too short for its header");
  std::memcpy(&plain, stored.data(), sizeof plain);
  const std::span<const std::byte> in = std::span(stored).subspan(sizeof plain);
  if (plain == -1) return std::vector<std::byte>(in.begin(), in.end());
  const auto size = static_cast<std::uint64_t>(plain);
  if (plain < 0 || size > kMostPlain || size > (in.size() + 1) * kMostOfAByte)
    return damaged_buffer(buffer, std::to_string(plain) + " bytes is not a plausible size");
  std::vector<std::byte> out(size);
  auto done = codec == ArrowCodec::kZstd ? decompress_exactly(Compression::kZstd, in, out) : unpack_lz4_frame(in, out);
  if (!done) return damaged_buffer(buffer, done.error().what);
  return out;
}

}  // namespace feedline::format
