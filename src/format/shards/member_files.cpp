// SPDX-License-Identifier: Apache-2.0
#include "format/shards/member_files.h"

#include <algorithm>

#include "decode/audio/audio_reader.h"
#include "decode/image_formats.h"

namespace feedline::format {

std::string plain_name(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-') c = '_';
  }
  return text.empty() ? "_" : text;
}

std::string_view extension_of(FieldKind kind, std::span<const std::byte> value) {
  constexpr std::byte kFirstOfNpy{0x93};
  switch (kind) {
    case FieldKind::kInteger:
      return "cls";
    case FieldKind::kText:
      return "txt";
    case FieldKind::kJson:
      return "json";
    case FieldKind::kImage:
    case FieldKind::kMask:
      return decode::extension_to_store(value);
    case FieldKind::kAudio:
      return decode::audio_extension_to_store(value);
    case FieldKind::kArray:
    case FieldKind::kBoxes:
    case FieldKind::kKeypoints:
      return value.empty() || value.front() == kFirstOfNpy ? "npy" : "json";
    default:
      return "bin";
  }
}

void MemberFiles::add_value(std::string_view field, FieldKind kind, std::vector<std::byte> value) {
  const std::string end(extension_of(kind, value));
  const bool has_short_name = kind == FieldKind::kImage || kind == FieldKind::kInteger;
  add(plain_name(field) + "." + end, has_short_name ? end : "", std::move(value));
}

void MemberFiles::add(std::string extension, std::string_view short_name, std::vector<std::byte> bytes) {
  const auto is_taken = [&](std::string_view name) {
    return std::ranges::find(files_, name, &SampleFiles::File::extension) != files_.end();
  };
  if (!short_name.empty() && !is_taken(short_name)) extension = short_name;
  while (is_taken(extension)) extension.insert(0, "_");
  files_.push_back({std::move(extension), std::move(bytes)});
}

}  // namespace feedline::format
