// SPDX-License-Identifier: Apache-2.0
#include "format/pixels/pixel_record.h"

#include <cstring>
#include <optional>

#include "base/check.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

struct PixelField {
  std::uint64_t value = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 0;
  std::uint32_t absent = 0;
};

constexpr std::uint64_t kSlackBytes = memory::PixelBuffer::kRowSlack;
constexpr std::size_t kChecksumFrom = offsetof(PixelRecordHead, key_bytes);

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

std::uint64_t key_offset(std::size_t fields) { return sizeof(PixelRecordHead) + fields * sizeof(PixelField); }

template <typename T>
T at(std::span<const std::byte> bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
void put(std::vector<std::byte>& bytes, std::uint64_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// Returns whether the key is inside the record, after the fields.
bool is_framed(std::span<const std::byte> record) {
  if (record.size() < sizeof(PixelRecordHead)) return false;
  const auto head = at<PixelRecordHead>(record, 0);
  return head.bytes == record.size() && key_offset(head.fields) + head.key_bytes <= record.size();
}

// Returns the pixels of an image or the labels of a mask, or an empty view if they are not inside the record.
memory::PixelView pixels_of(std::span<const std::byte> record, const PixelField& field, FieldKind kind) {
  const std::uint32_t several = kind == FieldKind::kMask ? 2 : 3;
  const bool sound = (field.channels == 1 || field.channels == several) && field.width > 0 && field.height > 0 &&
                     field.width <= memory::PixelBuffer::kMaxPixels / field.height;
  if (!sound) return {};
  const std::uint64_t stride = std::uint64_t{field.width} * field.channels;
  const std::uint64_t needed = stride * field.height + kSlackBytes;
  if (needed > record.size() || field.value > record.size() - needed) return {};
  return {reinterpret_cast<const std::uint8_t*>(record.data() + field.value), static_cast<int>(field.width),
          static_cast<int>(field.height), static_cast<int>(field.channels), static_cast<std::size_t>(stride)};
}

// Returns nullopt if the bytes are not inside the record.
std::optional<std::span<const std::byte>> bytes_of(std::span<const std::byte> record, const PixelField& field) {
  const std::uint64_t bytes = field.width | std::uint64_t{field.height} << 32;
  if (bytes > record.size() || field.value > record.size() - bytes) return {};
  return record.subspan(field.value, bytes);
}

// Decodes a field's entry in a record. Returns false if the entry's layout is invalid.
bool take_field(std::span<const std::byte> record, const PixelField& field, const FieldDescription& description,
                memory::Record::Field& out) {
  out = {};
  out.absent = field.absent == 1;
  if (out.absent) return description.may_be_absent;
  switch (description.kind) {
    case FieldKind::kInteger:
      out.value = static_cast<std::int64_t>(field.value);
      return true;
    case FieldKind::kImage:
    case FieldKind::kMask:
      out.pixels = pixels_of(record, field, description.kind);
      return out.pixels.data != nullptr;
    default: {
      const auto bytes = bytes_of(record, field);
      if (bytes) out.bytes = *bytes;
      return bytes.has_value();
    }
  }
}

}  // namespace

void PixelRecordBuilder::grow(std::uint64_t bytes) {
  bytes_ = bytes;
  if (record_.size() < bytes) record_.resize(bytes);
}

void PixelRecordBuilder::begin(std::uint64_t sample, std::string_view key, std::size_t fields) {
  sample_ = sample;
  field_ = added_ = 0;
  grow(key_offset(fields) + key.size());
  put(record_, 0,
      PixelRecordHead{.key_bytes = static_cast<std::uint32_t>(key.size()),
                      .fields = static_cast<std::uint32_t>(fields)});
  std::memcpy(record_.data() + key_offset(fields), key.data(), key.size());
}

template <typename Field>
void PixelRecordBuilder::put_field(const Field& field) {
  put(record_, key_offset(field_++), field);
  ++added_;
}

void PixelRecordBuilder::add_absent() { put_field(PixelField{.absent = 1}); }

void PixelRecordBuilder::add_integer(std::int64_t value) {
  put_field(PixelField{.value = static_cast<std::uint64_t>(value)});
}

void PixelRecordBuilder::add_bytes(std::span<const std::byte> bytes) {
  const std::uint64_t offset = bytes_;
  grow(offset + bytes.size());
  if (!bytes.empty()) std::memcpy(record_.data() + offset, bytes.data(), bytes.size());
  put_field(PixelField{.value = offset,
                       .width = static_cast<std::uint32_t>(bytes.size()),
                       .height = static_cast<std::uint32_t>(std::uint64_t{bytes.size()} >> 32)});
}

std::span<std::byte> PixelRecordBuilder::add_image(int width, int height, int channels) {
  FEEDLINE_CHECK(width > 0 && height > 0);
  const std::uint64_t from = bytes_, offset = aligned(bytes_);
  const std::uint64_t size = std::uint64_t(width) * std::uint64_t(height) * std::uint64_t(channels);
  grow(offset + size);
  std::memset(record_.data() + from, 0, offset - from);
  put_field(PixelField{offset, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height),
                       static_cast<std::uint32_t>(channels)});
  return {record_.data() + offset, size};
}

std::span<const std::byte> PixelRecordBuilder::finish() {
  const std::uint64_t from = bytes_;
  grow(aligned(bytes_ + kSlackBytes));
  std::memset(record_.data() + from, 0, bytes_ - from);
  auto head = at<PixelRecordHead>(record_, 0);
  FEEDLINE_CHECK(added_ == head.fields);
  const std::span<const std::byte> whole(record_.data(), bytes_);
  head.bytes = bytes_;
  head.checksum = xxh3(whole.subspan(kChecksumFrom), sample_);
  put(record_, 0, head);
  return whole;
}

bool is_intact(std::span<const std::byte> record, std::uint64_t sample) {
  return at<PixelRecordHead>(record, 0).checksum == xxh3(record.subspan(kChecksumFrom), sample);
}

Result<void> read_record(std::span<const std::byte> record, std::span<const FieldDescription> fields,
                         memory::Record& out) {
  const auto damaged = [] {
    return data_error("damaged pixel record: the fields do not match those of the file", "format");
  };
  if (!is_framed(record) || at<PixelRecordHead>(record, 0).fields != fields.size()) return damaged();
  out.fields.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (!take_field(record, at<PixelField>(record, key_offset(i)), fields[i], out.fields[i])) return damaged();
  return {};
}

std::string_view key_of(std::span<const std::byte> record) {
  if (!is_framed(record)) return {};
  const auto head = at<PixelRecordHead>(record, 0);
  return {reinterpret_cast<const char*>(record.data() + key_offset(head.fields)), head.key_bytes};
}

}  // namespace feedline::format
