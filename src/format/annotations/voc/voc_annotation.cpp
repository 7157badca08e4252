// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/voc/voc_annotation.h"

#include <array>
#include <optional>
#include <utility>

#include "format/annotations/voc/xml_encoding.h"
#include "format/annotations/voc/xml_reader.h"
#include "text/numbers.h"

namespace feedline::format {
namespace {

using text::parse_real;

using Event = XmlReader::Event;

constexpr std::array<std::string_view, 4> kCorners{"xmin", "ymin", "xmax", "ymax"};
// Depth of an object, its values and its corners: annotation, object, name; annotation, object, bndbox, xmin.
constexpr std::size_t kObjectDepth = 2, kValueDepth = 3, kCornerDepth = 4;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

class Reading {
 public:
  explicit Reading(std::string_view xml) : xml_(xml) {}

  Result<VocAnnotation> read() {
    while (true) {
      switch (xml_.next()) {
        case Event::kBegin:
          if (!begin()) return wrong();
          break;
        case Event::kText:
          if (!take()) return wrong();
          break;
        case Event::kEnd:
          if (!end()) return wrong();
          break;
        case Event::kDone:
          return std::move(annotation_);
        case Event::kError:
          wrong_ = xml_.error();
          return wrong();
      }
    }
  }

 private:
  bool fail(const std::string& what) {
    wrong_ = "object " + std::to_string(annotation_.objects.size()) + " " + what + ", at byte " +
             std::to_string(xml_.offset());
    return false;
  }
  std::unexpected<Error> wrong() const { return data_error(wrong_, "format"); }

  bool begin() {
    const std::size_t depth = xml_.depth();
    path_.resize(depth - 1);
    path_.emplace_back(xml_.name());
    if (depth == 1 && xml_.name() != "annotation") {
      wrong_ = "the XML's root element is '" + std::string(xml_.name()) + "', not 'annotation'";
      return false;
    }
    if (depth == kObjectDepth && xml_.name() == "object") {
      object_ = {};
      object_.pose = "Unspecified";
      name_.clear();
      corners_ = {};
    }
    return true;
  }

  bool is_of_object() const { return path_.size() >= kValueDepth && path_[1] == "object"; }

  // A size that is not a number is ignored: boxes do not need it.
  void take_side(std::string_view text) {
    const auto side = parse_real(text);
    const int pixels = side && *side > 0 && *side < 1e9 ? static_cast<int>(*side) : 0;
    if (path_[2] == "width") annotation_.size.width = pixels;
    if (path_[2] == "height") annotation_.size.height = pixels;
  }

  bool take() {
    const bool is_size = path_.size() == kValueDepth && path_[1] == "size" && xml_.depth() == path_.size();
    if (is_size) take_side(trimmed(xml_.content()));
    if (!is_of_object() || xml_.depth() != path_.size()) return true;
    const std::string_view text = trimmed(xml_.content());
    if (path_.size() == kCornerDepth && path_[2] == "bndbox") {
      for (std::size_t i = 0; i < kCorners.size(); ++i)
        if (path_[3] == kCorners[i]) {
          corners_[i] = parse_real(text);
          if (!corners_[i]) return fail("has a corner that is not a number, '" + std::string(text.substr(0, 40)) + "'");
        }
      return true;
    }
    if (path_.size() != kValueDepth) return true;
    if (path_[2] == "name") name_ = text;
    if (path_[2] == "pose") object_.pose = text;
    if (path_[2] == "difficult") return take_flag(text, object_.difficult);
    if (path_[2] == "truncated") return take_flag(text, object_.truncated);
    return true;
  }

  bool take_flag(std::string_view text, std::int64_t& flag) {
    const auto number = parse_real(text);
    if (!number || *number != static_cast<double>(static_cast<std::int32_t>(*number)))
      return fail("has a flag that is not an integer, '" + std::string(text.substr(0, 40)) + "'");
    flag = static_cast<std::int64_t>(*number);
    return true;
  }

  bool end() {
    if (xml_.depth() != kObjectDepth - 1 || xml_.name() != "object") return true;
    if (name_.empty()) return fail("has no name");
    for (std::size_t i = 0; i < kCorners.size(); ++i) {
      if (!corners_[i]) return fail("has no " + std::string(kCorners[i]) + " in a bndbox");
      object_.box[i] = static_cast<float>(*corners_[i]);
    }
    annotation_.names.push_back(name_);
    annotation_.objects.push_back(std::move(object_));
    return true;
  }

  XmlReader xml_;
  std::vector<std::string> path_;  // names of the open elements
  ImageObject object_;
  std::string name_, wrong_;
  std::array<std::optional<double>, 4> corners_;
  VocAnnotation annotation_;
};

}  // namespace

Result<VocAnnotation> read_voc_annotation(std::string_view xml) {
  FEEDLINE_TRY(const std::string text, utf8_of_xml(xml));
  return Reading(text).read();
}

}  // namespace feedline::format
