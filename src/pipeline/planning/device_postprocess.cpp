// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/device_postprocess.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "batch/batch_layout.h"
#include "device/cuda/kernels/pixel_job.h"
#include "memory/allocator.h"
#include "pipeline/fields/device_rows.h"
#include "pipeline/sample/recipe.h"
#include "transform/chain.h"
#include "transform/mixup.h"

namespace feedline::pipeline {
namespace {

std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kAlign = memory::Allocator::kAlignment;
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

// Returns whether the rows contain instructions for a cached image instead of pixels.
bool is_from_resident(const FieldSpec& filled) { return filled.array.shape.dims() == 1; }

std::size_t image_bytes(const transform::DeviceElements& elements) {
  return static_cast<std::size_t>(elements.size.width * elements.size.height * elements.channels);
}

// A row of stacked views consists of several images.
std::uint64_t images_of_row(const FieldSpec& filled, const transform::DeviceElements& elements) {
  if (is_from_resident(filled)) return 1;
  return filled.array.bytes() / image_bytes(elements);
}

std::size_t inputs_bytes(const transform::DeviceElements& elements, std::uint64_t rows) {
  return elements.most_rectangles == 0 ? 0 : aligned(rows * sizeof(device::cuda::PixelRow));
}

std::size_t written_over_bytes(const transform::DeviceElements& elements, std::uint64_t rows) {
  return inputs_bytes(elements, rows) +
         aligned(rows * static_cast<std::uint64_t>(elements.most_rectangles) * sizeof(device::cuda::Rectangle));
}

device::cuda::MixedRow on_the_device(const transform::RowMix& row) {
  using device::cuda::MixedRow;
  using Kind = transform::Mix::Kind;
  const Box& box = row.mix.box;
  const MixedRow::Kind kind = row.mix.kind == Kind::kBlend   ? MixedRow::kBlend
                              : row.mix.kind == Kind::kPaste ? MixedRow::kPaste
                                                             : MixedRow::kNone;
  return {static_cast<std::uint32_t>(row.own),
          static_cast<std::uint32_t>(row.partner),
          kind,
          static_cast<float>(row.mix.share),
          static_cast<float>(1.0 - row.mix.share),
          box.left,
          box.top,
          box.left + box.width,
          box.top + box.height};
}

}  // namespace

std::shared_ptr<const DevicePostprocess> DevicePostprocess::make(const Recipe& recipe, const Schema& filled,
                                                                 bool mixes) {
  if (std::ranges::none_of(recipe.device_elements, [](const auto& elements) { return elements != nullptr; }))
    return nullptr;
  ByField elements = recipe.device_elements;
  elements.resize(filled.size());
  return std::shared_ptr<const DevicePostprocess>(new DevicePostprocess(std::move(elements), mixes));
}

Schema DevicePostprocess::delivered(Schema filled) const {
  for (std::size_t i = 0; i < device_elements_.size(); ++i) {
    if (!device_elements_[i]) continue;
    const std::uint64_t images = images_of_row(filled[i], *device_elements_[i]);
    const bool is_stacked = filled[i].array.shape.dims() > device_elements_[i]->spec.shape.dims();
    filled[i].array = device_elements_[i]->spec;
    if (is_stacked) filled[i].array.shape = filled[i].array.shape.with_front(static_cast<std::int64_t>(images));
  }
  return filled;
}

std::shared_ptr<const batch::BatchLayout> DevicePostprocess::delivered(const batch::BatchLayout& filled) const {
  std::vector<bool> made(device_elements_.size());
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = makes(i);
  return std::make_shared<const batch::BatchLayout>(filled, delivered(filled.schema()), made);
}

std::size_t DevicePostprocess::tables_bytes() const {
  std::size_t bytes = 0;
  for (const auto& elements : device_elements_)
    if (elements) bytes += aligned(elements->tables.size());
  return bytes;
}

std::size_t DevicePostprocess::mixed_bytes(std::uint64_t rows) const {
  return mixes_ ? aligned(rows * sizeof(device::cuda::MixedRow)) : 0;
}

std::size_t DevicePostprocess::extra_bytes(std::uint64_t rows) const {
  std::size_t bytes = tables_bytes() + mixed_bytes(rows);
  for (const auto& elements : device_elements_)
    if (elements) bytes += written_over_bytes(*elements, rows);
  return bytes;
}

void DevicePostprocess::clear_row(const batch::BatchLayout& filled, std::byte* data, std::uint64_t row) const {
  for (std::size_t i = 0; i < device_elements_.size(); ++i) {
    const FieldSpec& field = filled.schema()[i];
    if (!device_elements_[i] || !is_from_resident(field)) continue;
    clear_device_row({data + filled.offset_of(i) + row * field.array.bytes(), field.array.bytes()},
                     device_elements_[i]->most_rectangles);
  }
}

device::Finish DevicePostprocess::finish(const batch::BatchLayout& filled, std::byte* data, std::uint64_t rows,
                                         std::uint64_t filled_rows, std::span<const transform::RowMix> mixed) const {
  const auto after = delivered(filled);
  device::Finish finish{.made_bytes = after->made_bytes(), .images = {}};
  std::size_t at = filled.fields_bytes();
  std::optional<std::size_t> mixed_at;
  if (!mixed.empty()) {
    mixed_at = at + tables_bytes();
    std::byte* to = data + *mixed_at;
    for (const transform::RowMix& row : mixed) {
      const device::cuda::MixedRow entry = on_the_device(row);
      std::memcpy(to, &entry, sizeof entry);
      to += sizeof entry;
    }
  }
  std::size_t over = at + tables_bytes() + mixed_bytes(filled_rows);
  for (std::size_t i = 0; i < device_elements_.size(); ++i) {
    if (!device_elements_[i]) continue;
    const transform::DeviceElements& elements = *device_elements_[i];
    const FieldSpec& field = filled.schema()[i];
    std::optional<device::Finish::Images::FromResident> from_resident;
    if (is_from_resident(field)) from_resident = {filled.offset_of(i), field.array.bytes(), filled_rows};
    if (!elements.tables.empty()) std::memcpy(data + at, elements.tables.data(), elements.tables.size());
    finish.images.push_back({.from = from_resident ? finish.scratch_bytes : filled.offset_of(i),
                             .from_resident = from_resident,
                             .to = after->offset_of(i),
                             .rows = rows * images_of_row(field, elements),
                             .size = elements.size,
                             .channels = elements.channels,
                             .layout = elements.layout,
                             .dtype = elements.spec.dtype,
                             .tables = at,
                             .mixed = mixed_at});
    if (elements.most_rectangles > 0) {
      device::Finish::Images& images = finish.images.back();
      images.inputs = over;
      images.rectangles = over + inputs_bytes(elements, filled_rows);
      gather_rectangles(data + filled.offset_of(i), field.array.bytes(), filled_rows, elements.most_rectangles,
                        data + over, data + images.rectangles);
      over += written_over_bytes(elements, filled_rows);
    }
    at += aligned(elements.tables.size());
    if (from_resident) finish.scratch_bytes += aligned(filled_rows * image_bytes(elements));
  }
  return finish;
}

}  // namespace feedline::pipeline
