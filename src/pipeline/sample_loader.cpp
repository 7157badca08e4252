// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample_loader.h"

#include <cstring>
#include <utility>

#include "base/clock.h"

namespace feedline::pipeline {

using telemetry::Stage;

SampleLoader::SampleLoader(std::shared_ptr<const Recipe> recipe, telemetry::ThreadCounters* counters)
    : recipe_(std::move(recipe)), counters_(counters) {}

void SampleLoader::count(Stage stage, std::uint64_t started_ns, std::uint64_t bytes) {
  if (counters_ != nullptr) (*counters_)[static_cast<std::size_t>(stage)].add_item(base::now_ns() - started_ns, bytes);
}

Result<void> SampleLoader::load(std::uint64_t index, const base::SampleKey& key, std::span<const ArrayView> rows) {
  const auto placed = [&](Error error) { return std::unexpected(with_place(std::move(error), *recipe_, index)); };
  if (!recipe_->chain) {
    if (auto filled = fill({&index, 1}, rows); !filled) return placed(std::move(filled).error());
    return {};
  }
  const std::uint64_t started = base::now_ns();
  if (auto read = recipe_->format->read(index, record_); !read) return placed(std::move(read).error());
  count(Stage::kStorage, started, record_.bytes_read);
  const auto& fields = recipe_->format->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind == format::FieldKind::kInteger) {
      std::memcpy(rows[i].data, &record_.fields[i].value, sizeof(std::int64_t));
    } else if (auto image = load_image(key, record_.fields[i].bytes, rows[i]); !image) {
      return placed(std::move(image).error());
    }
  }
  record_.pin.reset();
  return {};
}

Result<void> SampleLoader::load_image(const base::SampleKey& key, std::span<const std::byte> encoded, ArrayView row) {
  std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const decode::ImageHeader header, decoder_.open(encoded));
  FEEDLINE_CHECK_OK(recipe_->chain->draw({header.height, header.width}, key, drawing_));
  const ColorMode mode = recipe_->chain->color_mode();
  const bool planar = drawing_.planes && decoder_.decode_planes(drawing_.region, mode, *drawing_.planes, planes_);
  if (!planar) FEEDLINE_CHECK_OK(decoder_.decode(drawing_.region, mode, pixels_));
  count(Stage::kDecode, started, planar ? memory::bytes_of(planes_) : memory::bytes_of(pixels_.view()));
  started = base::now_ns();
  FEEDLINE_CHECK_OK(planar ? recipe_->chain->apply(drawing_, planes_, workspace_, row)
                           : recipe_->chain->apply(drawing_, pixels_.view(), workspace_, row));
  count(Stage::kTransform, started, row.spec.bytes());
  return {};
}

Result<void> SampleLoader::fill(std::span<const std::uint64_t> samples, std::span<const ArrayView> first_rows) {
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const std::uint64_t bytes, recipe_->format->fill(samples, first_rows));
  count(Stage::kStorage, started, bytes);
  return {};
}

Result<SampleLoader::Drawn> SampleLoader::draw(const base::SampleKey& key) {
  const auto placed = [&](Error error) { return std::unexpected(with_place(std::move(error), *recipe_, key.sample)); };
  if (!recipe_->chain) return config_error("the data set has no image field");
  if (auto read = recipe_->format->read(key.sample, record_); !read) return placed(std::move(read).error());
  const auto& fields = recipe_->format->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind != format::FieldKind::kImage) continue;
    auto header = decoder_.open(record_.fields[i].bytes);
    if (!header) return placed(std::move(header).error());
    const Size image{header->height, header->width};
    if (auto drawn = recipe_->chain->draw(image, key, drawing_); !drawn) return placed(std::move(drawn).error());
    return Drawn{record_.fields[i].bytes, image, &drawing_};
  }
  return config_error("the data set has no image field");
}

}  // namespace feedline::pipeline
