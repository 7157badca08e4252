// SPDX-License-Identifier: Apache-2.0
#include "format/field_kind.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "format/sources/image_names.h"

namespace feedline::format {
namespace {

struct Named {
  std::string_view name;
  FieldKind kind;
};

constexpr Named kKinds[] = {
    {"image", FieldKind::kImage}, {"value", FieldKind::kInteger}, {"array", FieldKind::kArray},
    {"mask", FieldKind::kMask},   {"bytes", FieldKind::kBytes},   {"text", FieldKind::kText},
    {"json", FieldKind::kJson},   {"boxes", FieldKind::kBoxes},   {"keypoints", FieldKind::kKeypoints},
    {"audio", FieldKind::kAudio}, {"video", FieldKind::kVideo},   {"volume", FieldKind::kVolume}};

// The extensions of all kinds except images. The extensions of integers are the ones that WebDataset decodes.
constexpr Named kExtensions[] = {
    {"cls", FieldKind::kInteger}, {"cls2", FieldKind::kInteger}, {"index", FieldKind::kInteger},
    {"inx", FieldKind::kInteger}, {"id", FieldKind::kInteger},   {"npy", FieldKind::kArray},
    {"json", FieldKind::kJson},   {"jsn", FieldKind::kJson},     {"txt", FieldKind::kText},
    {"text", FieldKind::kText},   {"caption", FieldKind::kText}, {"transcript", FieldKind::kText}};

}  // namespace

std::string_view name_of(FieldKind kind) { return std::ranges::find(kKinds, kind, &Named::kind)->name; }

std::optional<FieldKind> field_kind_of(std::string_view name) {
  const auto named = std::ranges::find(kKinds, name, &Named::name);
  if (named == std::end(kKinds)) return {};
  return named->kind;
}

FieldKind usual_kind(std::string_view name, std::string_view extension) {
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  if (is_any_image_name("." + std::string(last))) {
    const bool is_of_labels = name.starts_with("mask") || name.starts_with("seg");
    return is_of_labels ? FieldKind::kMask : FieldKind::kImage;
  }
  if (is_audio_name("." + std::string(last))) return FieldKind::kAudio;
  if (is_video_name("." + std::string(last))) return FieldKind::kVideo;
  const auto known = std::ranges::find(kExtensions, last, &Named::name);
  return known == std::end(kExtensions) ? FieldKind::kBytes : known->kind;
}

bool may_be_empty(FieldKind kind) {
  return kind == FieldKind::kBytes || kind == FieldKind::kText || kind == FieldKind::kVideo;
}

Result<std::optional<FieldKind>> take_kind(std::string_view& spec) {
  const std::size_t colon = spec.rfind(':');
  if (colon == std::string_view::npos) return std::optional<FieldKind>();
  const auto kind = field_kind_of(spec.substr(colon + 1));
  if (!kind)
    return config_error("fields: unknown kind '" + std::string(spec.substr(colon + 1)) + "' in '" + std::string(spec) +
                        "'; use image, mask, value, array, bytes, text, json, boxes, keypoints, audio or video");
  spec.remove_suffix(spec.size() - colon);
  return kind;
}

std::optional<std::int64_t> parse_integer(std::span<const std::byte> text) {
  std::string_view digits(reinterpret_cast<const char*>(text.data()), text.size());
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!digits.empty() && is_space(digits.front())) digits.remove_prefix(1);
  while (!digits.empty() && is_space(digits.back())) digits.remove_suffix(1);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return value;
}

std::string not_an_integer(std::span<const std::byte> text) {
  constexpr std::size_t kShown = 40;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string shown;
  for (const std::byte byte : text.first(std::min(text.size(), kShown))) {
    const auto code = std::to_integer<unsigned char>(byte);
    if (code >= ' ' && code < 0x7f)
      shown.push_back(static_cast<char>(code));
    else  // not text, or a part of a character
      shown.append("\\x").append({kHex[code >> 4U], kHex[code & 15U]});
  }
  return "'" + shown + (text.size() > kShown ? "...'" : "'") +
         " is not an integer of 64 bits: write the number of the class there, or read the field as text with ':text' "
         "in "
         "fields=";
}

}  // namespace feedline::format
