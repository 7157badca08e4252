// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/device_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <variant>

#include "base/check.h"
#include "device/cuda/kernels/pixel_job.h"
#include "memory/allocator.h"
#include "transform/kernels/pixel_ops/enhance.h"
#include "transform/operation/field_operations.h"
#include "transform/operation/image_operation.h"
#include "transform/resizer.h"
#include "transform/steps.h"

namespace feedline::pipeline {
namespace {

using device::cuda::CachedRow;
using device::cuda::ColourChange;
using device::cuda::PixelRow;
using device::cuda::Rectangle;
using transform::AxisTable;

static_assert(CachedRow::kConstant == static_cast<int>(PaddingMode::kConstant) &&
              CachedRow::kEdge == static_cast<int>(PaddingMode::kEdge) &&
              CachedRow::kReflect == static_cast<int>(PaddingMode::kReflect) &&
              CachedRow::kSymmetric == static_cast<int>(PaddingMode::kSymmetric));
static_assert(device::cuda::kWeightBits == transform::kWeightBits);

// Each column and row of the output has room for the offset and count of its weights and for this many weights, enough
// for bilinear downscaling by a factor of 15.
constexpr int kMostTaps = 32;

std::uint64_t table_bytes(const AxisTable& table) {
  return static_cast<std::uint64_t>(table.count()) * static_cast<std::uint64_t>(2 + table.taps()) *
         sizeof(std::int32_t);
}

std::byte* write_table(const AxisTable& table, std::byte* to) {
  const auto bytes = static_cast<std::size_t>(table.taps()) * sizeof(std::int32_t);
  for (int i = 0; i < table.count(); ++i) {
    const std::int32_t head[] = {table.first(i), table.used(i)};
    std::memcpy(to, head, sizeof head);
    std::memcpy(to + sizeof head, table.weights(i), bytes);
    to += sizeof head + bytes;
  }
  return to;
}

void take_border(const transform::PadStep& pad, CachedRow& row) {
  row.shift_x = pad.window.left - pad.padding.left;
  row.shift_y = pad.window.top - pad.padding.top;
  row.border = static_cast<std::uint32_t>(pad.mode);
  for (std::size_t c = 0; c < pad.fill.size(); ++c) row.fill |= std::uint32_t{pad.fill[c]} << (8 * c);
}

void add_colour(CachedRow& row, ColourChange::Kind kind, std::uint32_t value) {
  FEEDLINE_CHECK(row.colours < device::cuda::kMostColours);
  row.colour[row.colours++] = {kind, value};
}

// The order of the colour changes is the same as in transform/kernels/colour.cpp.
void take_colours(const transform::JitterDrawing& drawing, CachedRow& row) {
  const auto blend = [&row](const std::optional<double>& factor, ColourChange::Kind kind) {
    if (factor) add_colour(row, kind, std::bit_cast<std::uint32_t>(static_cast<float>(*factor)));
  };
  for (const int which : drawing.order) {
    if (which == 0) blend(drawing.brightness, ColourChange::kBrightness);
    if (which == 1) blend(drawing.contrast, ColourChange::kContrast);
    if (which == 2) blend(drawing.saturation, ColourChange::kSaturation);
    if (which == 3 && drawing.hue) add_colour(row, ColourChange::kHue, transform::hue_shift(*drawing.hue));
  }
}

// Returns false if the step does not change colours.
bool take_colours(const transform::Step& step, CachedRow& row) {
  if (const auto* const jitter = std::get_if<transform::JitterStep>(&step)) {
    take_colours(jitter->drawing, row);
    return true;
  }
  if (!std::holds_alternative<transform::GrayscaleStep>(step)) return false;
  add_colour(row, ColourChange::kGrey, 0);
  return true;
}

// Writes the resize and its weight tables.
Result<void> take_resize(const transform::ResizeStep& resize, AxisTable& columns, AxisTable& rows, std::size_t room,
                         CachedRow& row) {
  columns.compute(transform::columns_of(resize), resize.left);
  rows.compute(transform::rows_of(resize), resize.top);
  if (sizeof row + table_bytes(columns) + table_bytes(rows) > room)
    return data_error("a resize from " + std::to_string(resize.in.height) + " x " + std::to_string(resize.in.width) +
                          " to " + std::to_string(resize.out.height) + " x " + std::to_string(resize.out.width) +
                          " needs more weights than cache(\"device\") supports (" + std::to_string(kMostTaps) +
                          " per axis); place a resize before the cache, or use cache(\"memory\")",
                      "transform");
  row.column_taps = static_cast<std::uint32_t>(columns.taps());
  row.row_taps = static_cast<std::uint32_t>(rows.taps());
  row.flags |= CachedRow::kResized | (transform::is_vertical_first(resize) ? CachedRow::kVerticalFirst : 0u);
  return {};
}

}  // namespace

Result<void> check_device_operations(std::span<const Operation> operations, const DeviceOption& option) {
  const Operation* resize = nullptr;
  const Operation* mover = nullptr;  // a flip or a border, which no resize can follow on a device
  const Operation* border = nullptr;
  const Operation* colours = nullptr;
  std::size_t changes = 0;  // number of colour changes
  bool are_values = false;
  for (const Operation& operation : operations) {
    const std::string name(name_of(operation));
    const auto refuse = [&](const std::string& why) {
      return config_error(std::string(option.what) + ": " + name + " after it " + why + ", or " +
                          std::string(option.instead));
    };
    are_values = are_values || transform::makes_values(operation);
    const transform::Properties does = operation->properties();
    if (does.erases) {
      if (!are_values) return refuse("needs float input on a GPU: place normalize or to_dtype before it");
      if (does.erases_with_noise)
        return refuse("draws a number for each value, which a GPU does not support: draw one for each channel");
      continue;
    }
    if (!does.runs_on_device)
      return refuse("is not supported on a GPU: if it is not random, place it before that step");
    if (does.pads_if_needed)
      return refuse("with pad_if_needed is not supported on a GPU: place a resize or a pad before that step");
    if (colours != nullptr && does.moves_pixels && !does.is_flip)
      return refuse("follows " + std::string(name_of(*colours)) +
                    ", but a GPU changes colours after crops and resizes: swap them");
    changes += does.colour_changes;
    if (changes > device::cuda::kMostColours)
      return refuse("exceeds the colour changes that a GPU supports, at most " +
                    std::to_string(device::cuda::kMostColours) + ": place those that are not random before that step");
    if (does.colour_changes > 0) colours = &operation;
    if (does.resizes && (resize != nullptr || mover != nullptr))
      return refuse("follows " + std::string(name_of(resize != nullptr ? *resize : *mover)) +
                    ", but a GPU resizes once, before everything except crops: swap them");
    if (does.adds_border && (resize != nullptr || border != nullptr))
      return refuse(
          "follows " + std::string(name_of(resize != nullptr ? *resize : *border)) +
          ", but a GPU can add only one border, and none to images that it resizes: place one of the two before that "
          "step");
    if (does.resizes) resize = &operation;
    if (does.adds_border) border = &operation;
    if (does.adds_border || does.is_flip) mover = &operation;
  }
  return {};
}

std::size_t device_row_bytes(std::span<const Operation> operations, Size size) {
  constexpr std::size_t kAlign = memory::Allocator::kAlignment;
  std::size_t bytes = sizeof(CachedRow);
  if (std::ranges::any_of(operations, [](const Operation& one) { return one->properties().resizes; }))
    bytes += static_cast<std::size_t>(size.width + size.height) * (2 + kMostTaps) * sizeof(std::int32_t);
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

Result<void> write_device_row(const transform::Drawing& drawing, const memory::PixelView& image, AxisTable& columns,
                              AxisTable& rows, std::span<std::byte> row) {
  const transform::Drawing::Steps& steps = *drawing.steps;
  const Box& region = drawing.region;
  CachedRow made{.pixels = reinterpret_cast<std::uintptr_t>(image.data),
                 .stride = static_cast<std::uint32_t>(image.stride),
                 .left = region.left,
                 .top = region.top,
                 .width = region.width,
                 .height = region.height};
  made.flags = (steps.flip_x ? CachedRow::kMirrored : 0u) | (steps.flip_y ? CachedRow::kFlipped : 0u);
  const auto* const resize = steps.list.empty() ? nullptr : std::get_if<transform::ResizeStep>(&steps.list.front());
  const auto* const pad = steps.list.empty() ? nullptr : std::get_if<transform::PadStep>(&steps.list.front());
  const bool has_first = resize != nullptr || pad != nullptr;
  const auto is_colours = [&made](const transform::Step& step) { return take_colours(step, made); };
  // among accepted operations, only a crop larger than the image adds a border after another step
  if (!std::ranges::all_of(std::span(steps.list).subspan(has_first ? 1 : 0), is_colours))
    return data_error(
        "the image is smaller than a crop after cache(\"device\") and already has a border or is "
        "resized; place a resize before the cache, or use cache(\"memory\")",
        "transform");
  if (pad != nullptr) take_border(*pad, made);
  if (resize != nullptr) FEEDLINE_CHECK_OK(take_resize(*resize, columns, rows, row.size(), made));
  std::memcpy(row.data(), &made, sizeof made);
  if (resize != nullptr) write_table(rows, write_table(columns, row.data() + sizeof made));
  return {};
}

// The bytes of the count and the rectangles that follow it.
std::size_t rectangles_bytes(int most) {
  constexpr std::size_t kAlign = memory::Allocator::kAlignment;
  const std::size_t bytes = sizeof(std::uint64_t) + static_cast<std::size_t>(most) * sizeof(Rectangle);
  return most == 0 ? 0 : (bytes + kAlign - 1) / kAlign * kAlign;
}

void write_rectangles(std::span<const transform::DeviceRectangle> rectangles, std::span<std::byte> to) {
  const std::uint64_t count = rectangles.size();
  FEEDLINE_CHECK(sizeof count + count * sizeof(Rectangle) <= to.size());
  std::memcpy(to.data(), &count, sizeof count);
  std::byte* at = to.data() + sizeof count;
  for (const transform::DeviceRectangle& from : rectangles) {
    const Box& box = from.box;
    const Rectangle made{.left = box.left,
                         .top = box.top,
                         .width = box.width,
                         .height = box.height,
                         .value = {from.value[0], from.value[1], from.value[2], 0},
                         .patch = device::cuda::kNoPatch};
    std::memcpy(at, &made, sizeof made);
    at += sizeof made;
  }
}

void gather_rectangles(const std::byte* row, std::size_t stride, std::uint64_t rows, int most, std::byte* inputs,
                       std::byte* rectangles) {
  const std::byte* from = row + stride - rectangles_bytes(most);
  std::uint32_t first = 0;
  for (std::uint64_t i = 0; i < rows; ++i, from += stride) {
    std::uint64_t count = 0;
    std::memcpy(&count, from, sizeof count);
    const PixelRow made{.mirrored = 0, .first_rectangle = first, .rectangles = static_cast<std::uint32_t>(count)};
    std::memcpy(inputs + i * sizeof made, &made, sizeof made);
    std::memcpy(rectangles + first * sizeof(Rectangle), from + sizeof count, count * sizeof(Rectangle));
    first += made.rectangles;
  }
}

void set_resident_image(std::span<std::byte> row, std::uint64_t address) {
  std::memcpy(row.data() + offsetof(CachedRow, pixels), &address, sizeof address);
}

void write_made_row(std::uint64_t address, Size size, int channels, std::span<std::byte> row) {
  const CachedRow made{.pixels = address,
                       .stride = static_cast<std::uint32_t>(size.width * channels),
                       .width = size.width,
                       .height = size.height};
  std::memcpy(row.data(), &made, sizeof made);
}

void clear_device_row(std::span<std::byte> row, int most_rectangles) {
  const CachedRow none{};
  std::memcpy(row.data(), &none, sizeof none);
  if (most_rectangles > 0) write_rectangles({}, row.last(rectangles_bytes(most_rectangles)));
}

}  // namespace feedline::pipeline
