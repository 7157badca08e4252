// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/device_pixels.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "memory/sample_limit.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/image_input.h"

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kLooks = 32;  // samples read for an estimate
constexpr std::uint64_t kUnit = 256;  // the device's allocation granularity for images

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kUnit - 1) / kUnit * kUnit; }

// Returns the total size of a sample's images after preparation.
Result<std::uint64_t> prepared_bytes(const memory::Record& record, std::span<const format::FieldDescription> fields,
                                     const transform::Preparation& preparation, ImageScratch& scratch) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind != format::FieldKind::kImage || record.fields[i].absent) continue;
    FEEDLINE_TRY(const Size image, open_image(record.fields[i], preparation.applies_exif(), scratch));
    FEEDLINE_TRY(const Size size, preparation.draw(image, scratch.drawing));
    bytes += aligned(static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height) *
                     static_cast<std::uint64_t>(preparation.channels()));
  }
  return bytes;
}

}  // namespace

// A cached sample, with the memory of all its fields except images.
struct DevicePixels::Sample {
  std::vector<memory::Record::Field> fields;
  std::vector<std::byte> bytes;
};

DevicePixels::DevicePixels(std::shared_ptr<device::ResidentImages> images, std::uint64_t samples)
    : images_(std::move(images)), samples_(samples) {}

DevicePixels::~DevicePixels() {
  for (const auto& sample : samples_) delete sample.load(std::memory_order_relaxed);
}

Result<std::uint64_t> DevicePixels::bytes_needed(const format::RecordFormat& records,
                                                 const transform::Preparation& preparation) {
  ImageScratch scratch;
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  const std::uint64_t looks = std::min(kLooks, records.size());
  std::uint64_t seen = 0, sum = 0, least = ~std::uint64_t{0}, most = 0;
  std::optional<Error> failure;
  for (std::uint64_t i = 0; i < looks; ++i) {
    Result<void> read = records.read(i * records.size() / looks, record);
    auto bytes = read ? prepared_bytes(record, records.fields(), preparation, scratch)
                      : Result<std::uint64_t>(std::unexpected(std::move(read).error()));
    if (!bytes) {
      failure = std::move(bytes).error();
      continue;
    }
    ++seen;
    sum += *bytes;
    least = std::min(least, *bytes);
    most = std::max(most, *bytes);
  }
  if (seen == 0 && failure) return std::unexpected(std::move(*failure));
  if (seen == 0) return 0;
  const std::uint64_t exact = most * records.size();
  if (least == most) return exact;
  const double guess = static_cast<double>(sum) / static_cast<double>(seen) * static_cast<double>(records.size());
  return aligned(std::min(exact, static_cast<std::uint64_t>(guess * 1.05)));
}

bool DevicePixels::read(std::uint64_t sample, memory::Record& record) const {
  const Sample* const cached = samples_[sample].load(std::memory_order_acquire);
  if (cached == nullptr) return false;
  record.fields = cached->fields;
  record.bytes_read = 0;
  return true;
}

Result<void> DevicePixels::take_images(std::span<const format::FieldDescription> fields, Sample& cached) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    memory::PixelView& pixels = cached.fields[i].pixels;
    if (fields[i].kind != format::FieldKind::kImage || cached.fields[i].absent) continue;
    const std::span<const std::uint8_t> all(pixels.data, memory::bytes_of(pixels));
    FEEDLINE_TRY(const std::uint64_t address, images_->store(std::as_bytes(all)));
    pixels.data = reinterpret_cast<const std::uint8_t*>(address);
    bytes += all.size();
  }
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return {};
}

Result<void> DevicePixels::store(std::uint64_t sample, std::span<const format::FieldDescription> fields,
                                 memory::Record& record) {
  const std::lock_guard lock(keeping_[sample % keeping_.size()]);
  if (read(sample, record)) return {};
  auto cached = std::make_unique<Sample>();
  cached->fields = record.fields;
  std::size_t size = 0;
  const auto is_here = [&](std::size_t i) { return fields[i].kind != format::FieldKind::kImage; };
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (is_here(i)) size += cached->fields[i].bytes.size() + memory::bytes_of(cached->fields[i].pixels);
  cached->bytes.resize(size + memory::PixelBuffer::kRowSlack);  // kernels may read whole vectors past a mask's end
  std::byte* to = cached->bytes.data();
  const auto take = [&to](const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return std::exchange(to, to + bytes);
  };
  for (std::size_t i = 0; i < fields.size(); ++i) {
    memory::Record::Field& field = cached->fields[i];
    if (!is_here(i)) continue;
    field.bytes = {take(field.bytes.data(), field.bytes.size()), field.bytes.size()};
    if (field.pixels.data != nullptr)
      field.pixels.data =
          reinterpret_cast<const std::uint8_t*>(take(field.pixels.data, memory::bytes_of(field.pixels)));
  }
  FEEDLINE_CHECK_OK(take_images(fields, *cached));
  record.fields = cached->fields;
  samples_[sample].store(cached.release(), std::memory_order_release);
  present_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

}  // namespace feedline::pipeline
