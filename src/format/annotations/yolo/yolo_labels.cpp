// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/yolo/yolo_labels.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "text/numbers.h"

namespace feedline::format {
namespace {

using text::parse_real;

constexpr std::size_t kNumbersOfBox = 4;
constexpr float kOutside = 0.01F;  // tolerance for rounding by other tools

class Lines {
 public:
  Lines(const YoloLines& lines, const ImageSize& image)
      : lines_(lines), width_(static_cast<float>(image.width)), height_(static_cast<float>(image.height)) {
    objects_.width = image.width;
    objects_.height = image.height;
    objects_.points = lines.points;
  }

  Result<ImageObjects> read(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      ++number_;
      if (!split(text.substr(at, end - at))) return wrong("a value that is not a number");
      at = end + 1;
      if (!numbers_.empty()) FEEDLINE_CHECK_OK(take());
    }
    return std::move(objects_);
  }

 private:
  std::unexpected<Error> wrong(const std::string& what) const {
    return data_error("line " + std::to_string(number_) + " of the labels: " + what, "format");
  }

  bool split(std::string_view line) {
    constexpr std::string_view kSpace = " \t\r";
    numbers_.clear();
    while (true) {
      const std::size_t begin = line.find_first_not_of(kSpace);
      if (begin == line.npos) return true;
      const std::size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
      const auto number = parse_real(line.substr(begin, end - begin));
      if (!number) return false;
      numbers_.push_back(*number);
      line.remove_prefix(end);
    }
  }

  Result<void> take() {
    ImageObject object;
    const double label = numbers_.front();
    const std::span<const double> shares = std::span(numbers_).subspan(1);
    if (label < 0 || label != std::floor(label) || label > 1e9)
      return wrong("a class that is not an integer of at least 0");
    if (lines_.classes > 0 && label >= static_cast<double>(lines_.classes))
      return wrong("class " + std::to_string(static_cast<std::int64_t>(label)) +
                   " is out of range: the number of classes is " + std::to_string(lines_.classes));
    object.label = static_cast<std::int64_t>(label);
    if (lines_.points > 0 && shares.size() == kNumbersOfBox + lines_.points * lines_.dimensions)
      take_points(shares.subspan(kNumbersOfBox), object);
    else if (lines_.points > 0 || (shares.size() != kNumbersOfBox && (shares.size() < 6 || shares.size() % 2 == 1)))
      return wrong(
          std::to_string(numbers_.size()) + " numbers instead of " +
          (lines_.points > 0 ? "a class, a box and keypoints" : "a class and a box, or a class and a polygon"));
    const bool is_polygon = lines_.points == 0 && shares.size() != kNumbersOfBox;
    const auto inside = is_polygon ? shares : shares.first(kNumbersOfBox);
    for (const double share : inside)
      if (share < -kOutside || share > 1 + kOutside)
        return wrong("the value " + std::to_string(share) +
                     " is out of range: coordinates are fractions of the image's size, from 0 to 1");
    if (is_polygon)
      take_polygon(shares, object);
    else
      take_box(shares, object);
    objects_.objects.push_back(std::move(object));
    return {};
  }

  // Computes in single precision and in the same order as Ultralytics' loader.
  void take_box(std::span<const double> shares, ImageObject& object) const {
    const auto x = static_cast<float>(shares[0]), y = static_cast<float>(shares[1]);
    const auto w = static_cast<float>(shares[2]), h = static_cast<float>(shares[3]);
    object.box = {width_ * (x - w / 2), height_ * (y - h / 2), width_ * (x + w / 2), height_ * (y + h / 2)};
  }

  void take_polygon(std::span<const double> shares, ImageObject& object) const {
    object.box = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const std::size_t axis = i % 2;
      const double side = axis == 0 ? width_ : height_;
      object.polygon.push_back(shares[i] * side);
      const auto pixel = static_cast<float>(shares[i] * side);
      object.box[axis] = std::min(object.box[axis], pixel);
      object.box[axis + 2] = std::max(object.box[axis + 2], pixel);
    }
  }

  void take_points(std::span<const double> numbers, ImageObject& object) const {
    for (std::size_t i = 0; i < lines_.points; ++i) {
      const auto point = numbers.subspan(i * lines_.dimensions, lines_.dimensions);
      object.keypoints.push_back(static_cast<float>(point[0] * width_));
      object.keypoints.push_back(static_cast<float>(point[1] * height_));
      const bool is_there = point[0] >= 0 && point[1] >= 0;
      const double visibility = lines_.dimensions == 3 ? std::clamp(point[2], 0., 1e6) : is_there ? 1. : 0.;
      object.visibility.push_back(static_cast<std::int64_t>(visibility));
    }
  }

  const YoloLines lines_;
  const float width_, height_;
  std::size_t number_ = 0;
  std::vector<double> numbers_;
  ImageObjects objects_;
};

}  // namespace

Result<ImageObjects> read_yolo_labels(std::string_view text, const YoloLines& lines, const ImageSize& image) {
  return Lines(lines, image).read(text);
}

}  // namespace feedline::format
