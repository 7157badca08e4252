// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/views_path.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "decode/decode_cost.h"
#include "decode/image_formats.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/image_input.h"
#include "pipeline/fields/pixels_path.h"

namespace feedline::pipeline {
namespace {

using telemetry::Stage;
using transform::Drawing;
using transform::SharedSteps;

Box moved(const Box& box, int right, int down) { return {box.left + right, box.top + down, box.width, box.height}; }

// Lists the regions of the views in pixels of their source, or, if shifted, in pixels of the image.
void list_regions(ViewScratch& views, int right = 0, int down = 0) {
  views.regions.clear();
  for (const Drawing& drawing : views.drawings) views.regions.push_back(moved(drawing.region, right, down));
}

// Returns the part at `box` of an image; `view` contains the image's pixels from (left, top) on.
memory::PixelView part_of(memory::PixelView view, const Box& box, int left, int top) {
  view.data = view.row(box.top - top) + (box.left - left) * view.channels;
  view.width = box.width;
  view.height = box.height;
  return view;
}

// Returns the coarsest planes that all views support; nullopt if a view needs pixels.
std::optional<memory::Coarseness> common_planes(const std::vector<Drawing>& drawings) {
  memory::Coarseness common{1 << 20, 1 << 20};
  for (const Drawing& drawing : drawings) {
    if (!drawing.planes) return std::nullopt;
    common.brightness = std::min(common.brightness, drawing.planes->brightness);
    common.colour = std::min(common.colour, drawing.planes->colour);
  }
  return common;
}

}  // namespace

ViewsPath::ViewsPath(std::string image, std::vector<FieldSpec> specs, std::vector<View> views,
                     std::shared_ptr<const SharedSteps> shared, CacheSplit split, bool needs_size)
    : FieldPath(std::move(specs)),
      image_(std::move(image)),
      views_(std::move(views)),
      shared_(std::move(shared)),
      split_(std::move(split)),
      needs_size_(needs_size) {}

std::shared_ptr<const transform::DeviceElements> ViewsPath::device_elements(std::size_t entry) const {
  return std::ranges::find(views_, entry, &View::field)->chain->device_elements();
}

void ViewsPath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.image) scratch.image = std::make_unique<ImageScratch>();
  if (!scratch.views) scratch.views = std::make_unique<ViewScratch>();
  scratch.views->drawings.resize(views_.size());
}

Result<void> ViewsPath::draw(Size image, const base::SampleKey& key, bool is_prepared, FieldScratch& scratch) const {
  if (needs_size_ || scratch.drawn_for.field == nullptr)
    FEEDLINE_CHECK_OK(check_drawn_size(scratch.drawn_for, image, image_));
  Drawing& whole = scratch.image->drawing;
  FEEDLINE_CHECK_OK(shared(is_prepared).draw(image, key, nullptr, whole));
  for (std::size_t i = 0; i < views_.size(); ++i)
    FEEDLINE_CHECK_OK(views_[i].chain->draw(whole.size, key, scratch.views->drawings[i]));
  return {};
}

bool ViewsPath::is_made_apart(const memory::Record::Field& stored, bool is_prepared, FieldScratch& scratch) const {
  const Drawing& whole = scratch.image->drawing;
  if (!is_encoded(stored) || views_.size() < 2 || !SharedSteps::is_nothing(whole)) return false;
  if (shared(is_prepared).fidelity() == Fidelity::kFast) return false;  // its planes must not depend on the cost
  list_regions(*scratch.views, whole.region.left, whole.region.top);
  return decode::is_cheaper_apart(scratch.image->decoder.header(), stored.bytes.size(), scratch.views->regions);
}

// Sets the destinations of the fields: rows of the batch, or memory of the drawn size.
Result<void> ViewsPath::set_destinations(FieldWork& work, std::span<memory::Row> rows) const {
  ViewScratch& scratch = *work.scratch.views;
  scratch.destinations.resize(rows.size());
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const View& view = views_[i];
    if (view.index != 0) continue;
    memory::Row& row = rows[view.field];
    ArrayView& destination = scratch.destinations[view.field];
    destination = row.view;
    if (row.item == nullptr) continue;
    const auto count = std::ranges::count(views_, view.field, &View::field);
    const Shape one = shape_drawn(*view.chain, scratch.drawings[i]);
    const Shape shape = view.is_stacked ? one.with_front(count) : one;
    const DType dtype = specs()[view.field].array.dtype;
    FEEDLINE_TRY(const auto room, row.item->make_room(shape, dtype, work.most_bytes));
    destination = {room.data(), {dtype, shape}};
  }
  return {};
}

ArrayView ViewsPath::destination_of(std::size_t i, const ViewScratch& scratch) const {
  const View& view = views_[i];
  ArrayView destination = scratch.destinations[view.field];
  if (!view.is_stacked) return destination;
  destination.spec.shape = shape_drawn(*view.chain, scratch.drawings[i]);
  destination.data += view.index * destination.spec.bytes();
  return destination;
}

Result<void> ViewsPath::fill_rows(const memory::Record::Field& stored, FieldWork& work,
                                  std::span<memory::Row> rows) const {
  FEEDLINE_CHECK(rows.size() == specs().size());
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const Size image, open_image(stored, applies_exif(), *work.scratch.image));
  FEEDLINE_CHECK_OK(draw(image, work.key, work.is_prepared, work.scratch));
  FEEDLINE_CHECK_OK(set_destinations(work, rows));
  if (is_made_apart(stored, work.is_prepared, work.scratch)) return make_apart(stored, work, started);
  return make_at_once(stored, image, work, started);
}

Result<void> ViewsPath::make_at_once(const memory::Record::Field& stored, Size image, FieldWork& work,
                                     std::uint64_t started) const {
  ImageScratch& scratch = *work.scratch.image;
  ViewScratch& views = *work.scratch.views;
  const SharedSteps& steps = shared(work.is_prepared);
  list_regions(views);
  const Box all = decode::bounding_box(views.regions);
  FEEDLINE_CHECK_OK(steps.draw(image, work.key, &all, scratch.drawing));
  const bool is_fast = is_encoded(stored) && steps.fidelity() == Fidelity::kFast;
  if (is_fast && SharedSteps::is_nothing(scratch.drawing)) {
    FEEDLINE_TRY(const bool made, make_of_planes(all, work, started));
    if (made) return {};
  }
  const Drawing& drawing = scratch.drawing;
  memory::PixelView pixels;
  if (is_fast && drawing.planes &&
      scratch.decoder.decode_planes(drawing.region, steps.color_mode(), *drawing.planes, scratch.planes)) {
    work.meter.count(Stage::kDecode, started, memory::bytes_of(scratch.planes));
    started = base::now_ns();
    FEEDLINE_TRY(pixels, steps.apply(drawing, scratch.planes, scratch.workspace, views.shared));
  } else {
    FEEDLINE_TRY(const memory::PixelView decoded,
                 read_region(stored, drawing.region, steps.color_mode(), work, started));
    started = base::now_ns();
    FEEDLINE_TRY(pixels, steps.apply(drawing, decoded, scratch.workspace, views.shared));
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const ArrayView out = destination_of(i, views);
    const memory::PixelView part = part_of(pixels, views.drawings[i].region, all.left, all.top);
    FEEDLINE_CHECK_OK(views_[i].chain->apply(views.drawings[i], part, scratch.workspace, out));
    bytes += out.spec.bytes();
  }
  work.meter.count(Stage::kTransform, started, bytes);
  return {};
}

// Returns false if the image cannot be decoded to planes, or a view needs pixels. Requires: there are no shared steps.
Result<bool> ViewsPath::make_of_planes(const Box& all, FieldWork& work, std::uint64_t started) const {
  ImageScratch& scratch = *work.scratch.image;
  ViewScratch& views = *work.scratch.views;
  const auto planes = common_planes(views.drawings);
  const Box& region = scratch.drawing.region;
  if (!planes || !scratch.decoder.decode_planes(region, color_mode(), *planes, scratch.planes)) return false;
  work.meter.count(Stage::kDecode, started, memory::bytes_of(scratch.planes));
  started = base::now_ns();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    Drawing& drawing = views.drawings[i];
    drawing.region = moved(drawing.region, region.left - all.left, region.top - all.top);  // planes are the image's
    const ArrayView out = destination_of(i, views);
    FEEDLINE_CHECK_OK(views_[i].chain->apply(drawing, scratch.planes, scratch.workspace, out));
    bytes += out.spec.bytes();
  }
  work.meter.count(Stage::kTransform, started, bytes);
  return true;
}

// Requires: there are no shared steps, and the image's header was read.
Result<void> ViewsPath::make_apart(const memory::Record::Field& stored, FieldWork& work, std::uint64_t started) const {
  ImageScratch& scratch = *work.scratch.image;
  const ViewScratch& views = *work.scratch.views;
  std::uint64_t decode_ns = 0, decoded_bytes = 0, bytes = 0;
  const std::uint64_t first = started;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (i > 0) FEEDLINE_CHECK_OK(open_image(stored, applies_exif(), scratch));
    FEEDLINE_CHECK_OK(scratch.decoder.decode(views.regions[i], color_mode(), scratch.pixels));
    const memory::PixelView pixels = scratch.pixels.view();
    const std::uint64_t decoded = base::now_ns();
    decode_ns += decoded - started;
    decoded_bytes += memory::bytes_of(pixels);
    const ArrayView out = destination_of(i, views);
    FEEDLINE_CHECK_OK(views_[i].chain->apply(views.drawings[i], pixels, scratch.workspace, out));
    bytes += out.spec.bytes();
    started = base::now_ns();
  }
  // one item each, as if all decoding came first
  work.meter.count(Stage::kDecode, first, first + decode_ns, decoded_bytes);
  work.meter.count(Stage::kTransform, first + decode_ns, started, bytes);
  return {};
}

Result<void> ViewsPath::prepare(const memory::Record::Field& stored, FieldWork& work,
                                format::PixelRecordBuilder& cached) const {
  return prepare_image(stored, *split_.preparation, image_, work, cached);
}

Result<void> ViewsPath::find_regions(const memory::Record::Field& stored, const base::SampleKey& key,
                                     FieldScratch& scratch, std::vector<Region>& regions) const {
  ViewScratch& views = *scratch.views;
  FEEDLINE_TRY(const Size image, open_image(stored, applies_exif(), *scratch.image));
  FEEDLINE_CHECK_OK(draw(image, key, false, scratch));
  regions.clear();
  if (is_made_apart(stored, false, scratch)) {
    for (const Box& box : views.regions) regions.push_back({box, std::nullopt});
    return {};
  }
  list_regions(views);
  const Box all = decode::bounding_box(views.regions);
  const Drawing& drawing = scratch.image->drawing;
  FEEDLINE_CHECK_OK(shared_->draw(image, key, &all, scratch.image->drawing));
  const bool is_common = fidelity() == Fidelity::kFast && SharedSteps::is_nothing(drawing);
  regions.push_back({drawing.region, is_common ? common_planes(views.drawings) : drawing.planes});
  return {};
}

Result<std::vector<DrawnValue>> ViewsPath::values(Size image, const base::SampleKey& key) const {
  Drawing whole, drawing;
  FEEDLINE_CHECK_OK(shared_->draw(image, key, nullptr, whole));
  std::vector<DrawnValue> all = shared_->values(whole);
  for (const View& view : views_) {
    FEEDLINE_CHECK_OK(view.chain->draw(whole.size, key, drawing));
    for (DrawnValue& value : view.chain->values(drawing)) {
      value.view = view.name;
      all.push_back(std::move(value));
    }
  }
  return all;
}

// ---- as text ----

// Describes how often the views of a typical photo are decoded together, and how often separately. Reads no samples:
// draws depend only on sample numbers.
std::string ViewsPath::explain_decoding() const {
  constexpr Size kPhoto{375, 500};
  constexpr std::uint64_t kSamples = 256;
  constexpr std::size_t kStoredBytes = 110'000;  // average of ImageNet
  const std::string start = std::to_string(views_.size()) + " views of an image from one read: ";
  const std::string of_photo = " of " + std::to_string(kSamples) + " samples drawn for a JPEG of 375 x 500";
  if (views_.size() == 1) return start + "the view is decoded separately";
  FieldScratch scratch;
  add_scratch(scratch);
  std::uint64_t apart = 0, whole = 0;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    scratch.drawn_for = {};
    if (!draw(kPhoto, {0, 0, sample}, false, scratch)) return start + "one decode";
    const Drawing& drawing = scratch.image->drawing;
    if (!SharedSteps::is_nothing(drawing)) return start + "one decode; the operations above run once for all views";
    if (fidelity() == Fidelity::kFast)
      return start + "one decode of the region that the views need, as planes if all views support planes";
    list_regions(*scratch.views, drawing.region.left, drawing.region.top);
    const Box all = decode::bounding_box(scratch.views->regions);
    const decode::ImageHeader photo{
        .width = kPhoto.width, .height = kPhoto.height, .format = &decode::image_format("jpeg")};
    if (decode::is_cheaper_apart(photo, kStoredBytes, scratch.views->regions))
      ++apart;
    else if (all == Box{0, 0, kPhoto.width, kPhoto.height})
      ++whole;
  }
  return start + "the bounding box of their regions is decoded once for " + std::to_string(kSamples - apart) +
         of_photo + " (the whole image for " + std::to_string(whole) +
         "), and each view separately, which is cheaper there, for " + std::to_string(apart);
}

std::vector<std::string> ViewsPath::explain() const {
  const bool is_cached = split_.shared != nullptr;
  std::vector<std::string> lines = shared(is_cached).explain();
  if (is_cached)
    lines.push_back(std::to_string(views_.size()) + " views of the cached pixels");
  else
    lines.push_back(explain_decoding());
  for (std::size_t i = 0; i < views_.size(); ++i) {
    const auto own = views_[i].chain->explain();
    std::size_t last = i;
    while (last + 1 < views_.size() && views_[last + 1].field == views_[i].field &&
           views_[last + 1].chain->explain() == own)
      ++last;
    const std::string name = views_[i].name + (last > i ? " to " + views_[last].name : "");
    for (const std::string& line : own) lines.push_back(name + ": " + line);
    i = last;
  }
  return lines;
}

}  // namespace feedline::pipeline
