// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/voc/voc_annotation.h"

#include <array>
#include <optional>
#include <utility>

#include "text/numbers.h"
#include "text/xml_reader.h"

namespace feedline::format {
namespace {

using text::parse_real;

constexpr std::array<std::string_view, 4> kCorners{"xmin", "ymin", "xmax", "ymax"};
// The depths of three kinds of elements in the XML tree: annotation/object, annotation/object/name, and
// annotation/object/bndbox/xmin.
constexpr std::size_t kObjectDepth = 2, kValueDepth = 3, kCornerDepth = 4;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

class Reading {
 public:
  Result<VocAnnotation> read(std::string_view xml) {
    FEEDLINE_CHECK_OK(text::read_xml(xml, [this](const text::XmlElement& element) { return take(element); }));
    if (!wrong_.empty()) return data_error(wrong_, "format");
    return std::move(annotation_);
  }

 private:
  // The functions below return false on an error.
  bool fail(const std::string& what, std::uint64_t offset) {
    wrong_ =
        "object " + std::to_string(annotation_.objects.size()) + " " + what + ", at byte " + std::to_string(offset);
    return false;
  }

  bool take(const text::XmlElement& element) {
    const auto path = element.path;
    if (path[0] != "annotation") {
      wrong_ = "the XML's root element is '" + path[0] + "', not 'annotation'";
      return false;
    }
    if (path.size() == kValueDepth && path[1] == "size") return take_side(path[2], trimmed(element.text));
    if (path.size() < kObjectDepth || path[1] != "object") return true;
    if (path.size() == kObjectDepth) return end_object(element.offset);
    const std::string_view text = trimmed(element.text);
    if (text.empty()) return true;  // as if missing
    if (path.size() == kCornerDepth && path[2] == "bndbox") return take_corner(path[3], text, element.offset);
    return path.size() == kValueDepth ? take_value(path[2], text, element.offset) : true;
  }

  // An invalid size is ignored, since boxes do not need it.
  bool take_side(std::string_view name, std::string_view text) {
    const auto side = parse_real(text);
    const int pixels = side && *side > 0 && *side < 1e9 ? static_cast<int>(*side) : 0;
    if (name == "width") annotation_.size.width = pixels;
    if (name == "height") annotation_.size.height = pixels;
    return true;
  }

  bool take_corner(std::string_view name, std::string_view text, std::uint64_t offset) {
    for (std::size_t i = 0; i < kCorners.size(); ++i)
      if (name == kCorners[i]) {
        corners_[i] = parse_real(text);
        if (!corners_[i])
          return fail("has a corner that is not a number, '" + std::string(text.substr(0, 40)) + "'", offset);
      }
    return true;
  }

  bool take_value(std::string_view name, std::string_view text, std::uint64_t offset) {
    if (name == "name") name_ = text;
    if (name == "pose") object_.pose = text;
    if (name == "difficult") return take_flag(text, object_.difficult, offset);
    if (name == "truncated") return take_flag(text, object_.truncated, offset);
    return true;
  }

  bool take_flag(std::string_view text, std::int64_t& flag, std::uint64_t offset) {
    const auto number = parse_real(text);
    if (!number || *number != static_cast<double>(static_cast<std::int32_t>(*number)))
      return fail("has a flag that is not an integer, '" + std::string(text.substr(0, 40)) + "'", offset);
    flag = static_cast<std::int64_t>(*number);
    return true;
  }

  bool end_object(std::uint64_t offset) {
    if (name_.empty()) return fail("has no name", offset);
    for (std::size_t i = 0; i < kCorners.size(); ++i) {
      if (!corners_[i]) return fail("has a bndbox whose " + std::string(kCorners[i]) + " is missing", offset);
      object_.box[i] = static_cast<float>(*corners_[i]);
    }
    annotation_.names.push_back(std::exchange(name_, {}));
    annotation_.objects.push_back(std::exchange(object_, new_object()));
    corners_ = {};
    return true;
  }

  static ImageObject new_object() { return {.pose = "Unspecified"}; }
  ImageObject object_ = new_object();  // the one being read
  std::string name_, wrong_;
  std::array<std::optional<double>, 4> corners_;
  VocAnnotation annotation_;
};

}  // namespace

Result<VocAnnotation> read_voc_annotation(std::string_view xml) { return Reading().read(xml); }

}  // namespace feedline::format
