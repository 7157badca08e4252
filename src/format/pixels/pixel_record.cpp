// SPDX-License-Identifier: Apache-2.0
#include "format/pixels/pixel_record.h"

#include <cstring>

#include "base/check.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

struct PixelField {
  std::uint64_t value = 0;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 0;
  std::uint32_t zero = 0;
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

// Does the head's key lie inside, behind as many fields as it says?
bool is_framed(std::span<const std::byte> record) {
  if (record.size() < sizeof(PixelRecordHead)) return false;
  const auto head = at<PixelRecordHead>(record, 0);
  return head.bytes == record.size() && key_offset(head.fields) + head.key_bytes <= record.size();
}

// The pixels of an image field, or an empty view where they do not lie inside the record.
memory::PixelView pixels_of(std::span<const std::byte> record, const PixelField& field) {
  const bool sound = (field.channels == 1 || field.channels == 3) && field.width > 0 && field.height > 0 &&
                     field.width <= memory::PixelBuffer::kMaxPixels / field.height;
  if (!sound) return {};
  const std::uint64_t stride = std::uint64_t{field.width} * field.channels;
  const std::uint64_t needed = stride * field.height + kSlackBytes;
  if (needed > record.size() || field.value > record.size() - needed) return {};
  return {reinterpret_cast<const std::uint8_t*>(record.data() + field.value), static_cast<int>(field.width),
          static_cast<int>(field.height), static_cast<int>(field.channels), static_cast<std::size_t>(stride)};
}

}  // namespace

void PixelRecordBuilder::grow(std::uint64_t bytes) {
  bytes_ = bytes;
  if (record_.size() < bytes) record_.resize(bytes);
}

void PixelRecordBuilder::begin(std::uint64_t sample, std::string_view key, std::size_t fields) {
  sample_ = sample;
  next_field_ = 0;
  grow(key_offset(fields) + key.size());
  put(record_, 0,
      PixelRecordHead{.key_bytes = static_cast<std::uint32_t>(key.size()),
                      .fields = static_cast<std::uint32_t>(fields)});
  std::memcpy(record_.data() + key_offset(fields), key.data(), key.size());
}

void PixelRecordBuilder::add_integer(std::int64_t value) {
  put(record_, key_offset(next_field_++), PixelField{.value = static_cast<std::uint64_t>(value)});
}

std::span<std::byte> PixelRecordBuilder::add_image(int width, int height, int channels) {
  FEEDLINE_CHECK(width > 0 && height > 0);
  const std::uint64_t from = bytes_, offset = aligned(bytes_);
  const std::uint64_t size = std::uint64_t(width) * std::uint64_t(height) * std::uint64_t(channels);
  grow(offset + size);
  std::memset(record_.data() + from, 0, offset - from);
  put(record_, key_offset(next_field_++),
      PixelField{offset, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height),
                 static_cast<std::uint32_t>(channels)});
  return {record_.data() + offset, size};
}

std::span<const std::byte> PixelRecordBuilder::finish() {
  const std::uint64_t from = bytes_;
  grow(aligned(bytes_ + kSlackBytes));
  std::memset(record_.data() + from, 0, bytes_ - from);
  auto head = at<PixelRecordHead>(record_, 0);
  FEEDLINE_CHECK(next_field_ == head.fields);
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
    return data_error("damaged pixel record: its fields are not what its file says", "format");
  };
  if (!is_framed(record) || at<PixelRecordHead>(record, 0).fields != fields.size()) return damaged();
  out.fields.resize(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto field = at<PixelField>(record, key_offset(i));
    out.fields[i] = {};
    if (fields[i].kind == FieldKind::kInteger) {
      out.fields[i].value = static_cast<std::int64_t>(field.value);
      continue;
    }
    out.fields[i].pixels = pixels_of(record, field);
    if (out.fields[i].pixels.data == nullptr) return damaged();
  }
  return {};
}

std::string_view key_of(std::span<const std::byte> record) {
  if (!is_framed(record)) return {};
  const auto head = at<PixelRecordHead>(record, 0);
  return {reinterpret_cast<const char*>(record.data() + key_offset(head.fields)), head.key_bytes};
}

}  // namespace feedline::format
