// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/coco_details.h"

namespace feedline::format {
namespace {

void add_head(DetailKind kind, std::uint64_t bytes, std::vector<std::byte>& out) {
  out.push_back(static_cast<std::byte>(kind));
  OutlineWriter(out).add(bytes);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void take_part(std::byte kind, std::span<const std::byte> part, CocoDetails& details) {
  switch (static_cast<DetailKind>(kind)) {
    case DetailKind::kPolygons:
      details.outline = {OutlineKind::kPolygons, part};
      break;
    case DetailKind::kRuns:
      details.outline = {OutlineKind::kRuns, part};
      break;
    case DetailKind::kKeypoints:
      details.keypoints = part;
      break;
    case DetailKind::kCaption:
      details.caption = text_of(part);
      break;
    case DetailKind::kWrong: {
      if (part.empty()) return;
      const auto value = std::to_integer<std::size_t>(part.front());
      if (value <= kMostCocoValue) details.wrong[value] = text_of(part.subspan(1));
      break;
    }
  }
}

}  // namespace

void add_detail(DetailKind kind, std::span<const std::byte> bytes, std::vector<std::byte>& out) {
  add_head(kind, bytes.size(), out);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void add_wrong(CocoValue value, std::string_view why, std::vector<std::byte>& out) {
  add_head(DetailKind::kWrong, why.size() + 1, out);
  out.push_back(static_cast<std::byte>(value));
  const auto bytes = std::as_bytes(std::span(why));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

CocoDetails details_of(std::span<const std::byte> bytes) {
  CocoDetails details;
  while (bytes.size() >= 2) {
    const std::byte kind = bytes[0];
    std::uint64_t length = 0;
    std::size_t at = 1;
    for (unsigned shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(bytes[at++]);
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (length > bytes.size() - at) break;
    take_part(kind, bytes.subspan(at, length), details);
    bytes = bytes.subspan(at + length);
  }
  return details;
}

}  // namespace feedline::format
