// SPDX-License-Identifier: Apache-2.0
#include "format/pixels/pixel_layout.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "format/checksum.h"

namespace feedline::format {
namespace {

class ByteWriter {
 public:
  void add(std::uint64_t number) { add_bytes(std::as_bytes(std::span(&number, 1))); }
  void add(std::string_view text) {
    add(text.size());
    add_bytes(std::as_bytes(std::span(text)));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void add_bytes(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  std::vector<std::byte> bytes_;
};

// Reads the output of ByteWriter. After the first missing number or text, all reads fail.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    if (!has(sizeof value)) return 0;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint64_t length = number();
    if (!has(length)) return {};
    std::string value(reinterpret_cast<const char*>(bytes_.data()), length);
    bytes_ = bytes_.subspan(length);
    return value;
  }
  bool ok() const { return ok_; }

 private:
  bool has(std::uint64_t bytes) {
    ok_ = ok_ && bytes <= bytes_.size();
    return ok_;
  }
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

std::uint64_t pages(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

std::uint64_t checksum_of(const PixelHead& head) {
  return xxh3(std::as_bytes(std::span(&head, 1)).first(offsetof(PixelHead, head_checksum)));
}

// The kind of a field is stored as its number, plus this flag if samples may lack the field.
constexpr std::uint64_t kMayBeAbsent = 1 << 8;
static_assert(static_cast<int>(FieldKind::kImage) == 0 && static_cast<int>(FieldKind::kInteger) == 1 &&
              static_cast<int>(FieldKind::kArray) == 2 && static_cast<int>(FieldKind::kMask) == 3 &&
              static_cast<int>(FieldKind::kBytes) == 4 && static_cast<int>(FieldKind::kText) == 5 &&
              static_cast<int>(FieldKind::kJson) == 6 && static_cast<int>(FieldKind::kBoxes) == 7 &&
              static_cast<int>(FieldKind::kKeypoints) == 8 && static_cast<int>(FieldKind::kAudio) == 9 &&
              static_cast<int>(FieldKind::kVideo) == 10);

std::uint64_t stored_kind(const FieldDescription& field) {
  return static_cast<std::uint64_t>(field.kind) | (field.may_be_absent ? kMayBeAbsent : 0);
}

std::string word_of(const FieldDescription& field) {
  const std::string word(field.kind == FieldKind::kInteger ? "number" : name_of(field.kind));
  return field.may_be_absent ? word + " (optional)" : word;
}

std::string described(const std::vector<FieldDescription>& fields) {
  std::string text;
  for (const FieldDescription& field : fields)
    text += (text.empty() ? "" : ", ") + field.name + " (" + word_of(field) + ")";
  return text;
}

}  // namespace

std::uint32_t PixelContents::version() const {
  const auto is_as_ever = [](const FieldDescription& field) {
    return stored_kind(field) <= static_cast<std::uint64_t>(FieldKind::kInteger);
  };
  return std::ranges::all_of(fields, is_as_ever) ? kPixelsAndNumbers : kPixelVersion;
}

std::vector<std::byte> PixelContents::serialized() const {
  ByteWriter writer;
  writer.add(fingerprint);
  writer.add(samples);
  writer.add(preparation);
  writer.add(fields.size());
  for (const FieldDescription& field : fields) {
    writer.add(stored_kind(field));
    writer.add(field.name);
  }
  writer.add(classes.size());
  for (const std::string& name : classes) writer.add(name);
  writer.add(source);
  return writer.take();
}

Result<PixelContents> PixelContents::parse(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  PixelContents contents;
  contents.fingerprint = reader.number();
  contents.samples = reader.number();
  contents.preparation = reader.text();
  const std::uint64_t fields = reader.number();
  bool known = true;
  for (std::uint64_t i = 0; i < fields && reader.ok(); ++i) {
    const std::uint64_t stored = reader.number(), kind = stored & ~kMayBeAbsent;
    known = known && (kind <= static_cast<std::uint64_t>(FieldKind::kKeypoints) ||
                      kind == static_cast<std::uint64_t>(FieldKind::kVideo));
    contents.fields.push_back({.name = reader.text(), .kind = static_cast<FieldKind>(kind)});
    contents.fields.back().may_be_absent = (stored & kMayBeAbsent) != 0;
  }
  const std::uint64_t classes = reader.number();
  for (std::uint64_t i = 0; i < classes && reader.ok(); ++i) contents.classes.push_back(reader.text());
  contents.source = reader.text();
  if (!reader.ok() || !known) return data_error("damaged pixel file: the description is truncated", "format");
  return contents;
}

std::string PixelContents::difference(const PixelContents& other) const {
  if (preparation != other.preparation)
    return "the existing pixels are " + preparation + "; these would be " + other.preparation;
  if (samples != other.samples || fingerprint != other.fingerprint)
    return "the existing pixels are from another dataset, or its samples have changed: " + std::to_string(samples) +
           " samples of " + source + " exist, but " + std::to_string(other.samples) + " of " + other.source +
           " are needed";
  if (source != other.source) return "the existing pixels are from " + source + "; these would be from " + other.source;
  if (described(fields) != described(other.fields))
    return "the existing fields are " + described(fields) + "; these would be " + described(other.fields);
  return classes == other.classes ? std::string() : "the existing classes have different names";
}

std::string PixelContents::digest() const { return cache::hex_of(xxh3(serialized())); }

PixelHead make_head(const PixelContents& contents, std::span<const std::byte> serialized) {
  PixelHead head;
  head.version = contents.version();
  head.samples = contents.samples;
  head.contents_bytes = serialized.size();
  head.contents_checksum = xxh3(serialized);
  head.index_offset = kPageBytes + pages(serialized.size());
  head.data_offset = head.index_offset + pages(contents.samples * sizeof(std::uint64_t));
  head.head_checksum = checksum_of(head);
  head.end = head.data_offset;
  return head;
}

Result<void> check_head(const PixelHead& head, std::uint64_t file_bytes) {
  const auto damaged = [](const std::string& how) { return data_error("damaged pixel file: " + how, "format"); };
  if (head.magic != kPixelMagic) return data_error("not a pixel file", "format");
  if (head.version < kPixelsAndNumbers || head.version > kPixelVersion)
    return data_error("the pixel file has version " + std::to_string(head.version) + "; this Feedline reads versions " +
                          std::to_string(kPixelsAndNumbers) + " to " + std::to_string(kPixelVersion) +
                          ": create it again",
                      "format");
  if (head.head_checksum != checksum_of(head)) return damaged("the checksum of the header does not match");
  // The checksum covers the offsets. The following checks cover the rest of the file.
  if (file_bytes < head.data_offset)
    return damaged("the file is truncated: " + std::to_string(file_bytes) + " bytes, but the index ends at " +
                   std::to_string(head.data_offset));
  if (head.finished != 0 && file_bytes < head.end)
    return damaged("the file is truncated: " + std::to_string(file_bytes) + " bytes of " + std::to_string(head.end));
  return {};
}

}  // namespace feedline::format
