// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/view_point.h"

#include <algorithm>
#include <utility>

#include "format/format.h"
#include "pipeline/sample/mapping.h"
#include "pipeline/sample/source.h"
#include "transform/chain.h"
#include "transform/operation/field_operations.h"
#include "transform/operation/image_operation.h"

namespace feedline::pipeline {
namespace {

using format::FieldDescription;
using format::FieldKind;

static_assert(Dataset::kMostViews == transform::Chain::kMostViews);

std::string quoted(const std::string& text) { return "'" + text + "'"; }

// Returns the image from which views are made: the named image, or the only one.
Result<std::string> image_of(const std::string& caller, const std::string& name, const Source& source,
                             const MapPoint* map) {
  std::vector<std::string> images;
  for (const FieldDescription& field : source.format()->fields())
    if (field.kind == FieldKind::kImage) images.push_back(field.name);
  if (images.empty()) return config_error(caller + ": the samples of \"" + source.name() + "\" have no image");
  std::string names;
  for (const std::string& image : images) names += (names.empty() ? "" : ", ") + image;
  if (name.empty() && images.size() > 1)
    return config_error(caller + ": the samples have several images, " + names + "; select one with field=");
  const std::string image = name.empty() ? images.front() : name;
  if (std::ranges::find(images, image) == images.end())
    return config_error(caller + ": field: there is no image " + quoted(image) + "; the images are " + names);
  if (map != nullptr && map->takes(image))
    return config_error(caller + ": " + quoted(image) + " is an argument of an earlier map(); place " + caller +
                        " before map");
  return image;
}

Result<void> check_view(const View& view, const std::string& name) {
  if (view.count && *view.count < 1)
    return config_error("views: " + quoted(name) + ": count must be at least 1, got " + std::to_string(*view.count));
  for (const Operation& operation : view.operations) {
    const std::string start = "views: " + quoted(name) + ": " + std::string(name_of(operation));
    if (operation->properties().decode != nullptr)
      return config_error(start + ": all views share the same pixels; place decode before views");
    if (!operation.fields.empty()) return config_error(start + ": a view has no fields to select; omit fields=");
  }
  return {};
}

// Checks that every view whose draws this view reuses precedes this view and has the same operations. before: the
// operations of earlier views, whose draws the view can share.
Result<void> check_drawn_as(const View& view, const std::string& name,
                            const std::vector<const std::vector<Operation>*>& before) {
  const std::string start = "views: " + quoted(name) + ": ";
  if (!view.drawn_as.empty() && view.count) return config_error(start + "drawn_as does not support count");
  if (view.drawn_as.size() > view.operations.size())
    return config_error(start + "the view has fewer operations than drawn_as");
  for (std::size_t i = 0; i < view.drawn_as.size(); ++i) {
    const int other = view.drawn_as[i];
    const bool is_before = other >= 0 && static_cast<std::size_t>(other) < before.size();
    const auto* const theirs = is_before ? before[static_cast<std::size_t>(other)] : nullptr;
    if (theirs == nullptr || i >= theirs->size() || describe((*theirs)[i]) != describe(view.operations[i]))
      return config_error(start + "drawn_as names view " + std::to_string(other) +
                          ", which is not an earlier view with the same " + std::string(name_of(view.operations[i])) +
                          " at this position");
  }
  return {};
}

Result<void> check_names(const ViewPoint& point, const Source& source) {
  for (auto field = point.fields.begin(); field != point.fields.end(); ++field) {
    const auto is_it = [&](const auto& other) { return other.name == field->name; };
    if (std::any_of(point.fields.begin(), field, is_it))
      return config_error("views: several views have the name " + quoted(field->name));
    for (const FieldDescription& other : source.format()->fields())
      if (is_it(other) && other.name != point.image)
        return config_error("views: " + quoted(field->name) + " is the name of another field of the samples");
  }
  return {};
}

std::string described(const std::vector<Operation>& operations) {
  std::string text = "chain()";
  for (const Operation& operation : operations) text += "." + describe(operation);
  return text;
}

std::string described(const std::vector<View>& views, const std::string& image) {
  std::string text;
  for (const View& view : views) {
    text += (text.empty() ? "" : ", ") + (view.name.empty() ? "" : view.name + "=");
    text += view.count ? "(" + described(view.operations) + ", " + std::to_string(*view.count) + ")"
                       : described(view.operations);
    for (std::size_t i = 0; i < view.drawn_as.size(); ++i)
      text += (i == 0 ? " drawn as " : ", ") + std::to_string(view.drawn_as[i]);
  }
  return "views(" + text + (image.empty() ? "" : ", field=" + quoted(image)) + ")";
}

}  // namespace

std::vector<Operation> ViewPoint::shared(const std::vector<Operation>& operations) const {
  return transform::operations_for(std::span(operations).first(position), image);
}

std::vector<Operation> ViewPoint::operations_of(const std::vector<Operation>& operations, std::size_t field,
                                                std::size_t view) const {
  std::vector<Operation> all = shared(operations);
  const auto& own = fields[field].views[view];
  all.insert(all.end(), own.begin(), own.end());
  const auto after = transform::operations_for(std::span(operations).subspan(position), fields[field].name);
  all.insert(all.end(), after.begin(), after.end());
  return all;
}

Result<ViewPoint> make_view_point(std::vector<View> views, const std::string& image, const Source& source,
                                  std::size_t operations, const MapPoint* map) {
  if (views.empty()) return config_error("views: at least one view is needed");
  ViewPoint point{.image = {}, .fields = {}, .position = operations, .text = described(views, image)};
  FEEDLINE_TRY(point.image, image_of("views", image, source, map));
  std::size_t total = 0;
  std::vector<const std::vector<Operation>*> before;
  for (std::size_t i = 0; i < views.size(); ++i) {
    View& view = views[i];
    const std::string name = view.name.empty() ? point.image + "_" + std::to_string(i) : std::move(view.name);
    FEEDLINE_CHECK_OK(check_view(view, name));
    FEEDLINE_CHECK_OK(check_drawn_as(view, name, before));
    const auto count = static_cast<std::size_t>(view.count.value_or(1));
    total += count;
    if (count > Dataset::kMostViews || total > Dataset::kMostViews)
      return config_error("views: a sample can have at most " + std::to_string(Dataset::kMostViews) + " views, got " +
                          std::to_string(total));
    point.fields.push_back(
        {name, {count, view.operations}, view.count.has_value(), {view.drawn_as.begin(), view.drawn_as.end()}});
    before.resize(total, view.count ? nullptr : &view.operations);
  }
  FEEDLINE_CHECK_OK(check_names(point, source));
  return point;
}

Result<ViewPoint> make_corner_crops(Size size, Mirrored mirrored, const std::string& image, const Source& source,
                                    std::size_t operations, const MapPoint* map) {
  constexpr Corner kCorners[] = {Corner::kTopLeft, Corner::kTopRight, Corner::kBottomLeft, Corner::kBottomRight,
                                 Corner::kCenter};
  const std::string name = mirrored == Mirrored::kNot ? "five_crop" : "ten_crop";
  ViewPoint point{.image = {}, .fields = {}, .position = operations, .text = {}};
  FEEDLINE_TRY(point.image, image_of(name, image, source, map));
  ViewPoint::Field crops{point.image, {}, true};
  for (const Corner corner : kCorners) crops.views.push_back({op::CornerCrop{size, corner}});
  if (mirrored != Mirrored::kNot) {
    const Operation flip =
        mirrored == Mirrored::kHorizontally ? Operation(op::RandomHorizontalFlip{1}) : op::RandomVerticalFlip{1};
    for (const Corner corner : kCorners) crops.views.push_back({flip, op::CornerCrop{size, corner}});
  }
  point.fields.push_back(std::move(crops));
  point.text = name + "(" + std::to_string(size.height) + ", " + std::to_string(size.width) +
               (mirrored == Mirrored::kVertically ? ", vertical_flip=True" : "") +
               (image.empty() ? "" : ", field=" + quoted(image)) + ")";
  return point;
}

std::vector<FieldDescription> fields_behind(const std::vector<FieldDescription>& fields, const ViewPoint* views) {
  if (views == nullptr) return fields;
  std::vector<FieldDescription> all;
  for (const FieldDescription& field : fields) {
    if (field.name != views->image) {
      all.push_back(field);
      continue;
    }
    for (const ViewPoint::Field& view : views->fields) {
      all.push_back(field);
      all.back().name = view.name;
    }
  }
  return all;
}

}  // namespace feedline::pipeline
