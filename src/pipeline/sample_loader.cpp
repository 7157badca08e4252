// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample_loader.h"

#include <cstring>
#include <utility>

#include "base/clock.h"
#include "telemetry/spans.h"

namespace feedline::pipeline {

using telemetry::Stage;

SampleLoader::SampleLoader(std::shared_ptr<const Recipe> recipe, telemetry::ThreadCounters* counters)
    : recipe_(std::move(recipe)), counters_(counters) {}

void SampleLoader::count(Stage stage, std::uint64_t started_ns, std::uint64_t bytes, std::uint64_t sample) {
  if (counters_ == nullptr) return;
  const std::uint64_t ended_ns = base::now_ns();
  (*counters_)[static_cast<std::size_t>(stage)].add_item(ended_ns - started_ns, bytes);
  telemetry::record_span(stage, started_ns, ended_ns, sample);
}

Result<void> SampleLoader::load(std::uint64_t index, const base::SampleKey& key, std::span<const ArrayView> rows) {
  const auto placed = [&](Error error) { return std::unexpected(with_place(std::move(error), *recipe_, index)); };
  if (!recipe_->chain) {
    if (auto filled = fill({&index, 1}, rows); !filled) return placed(std::move(filled).error());
    return {};
  }
  const std::uint64_t started = base::now_ns();
  if (auto read = recipe_->format->read(index, record_); !read) return placed(std::move(read).error());
  count(Stage::kStorage, started, record_.bytes_read, index);
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
  FEEDLINE_CHECK_OK(decoder_.decode(drawing_.region, recipe_->chain->color_mode(), pixels_));
  const memory::PixelView decoded = pixels_.view();
  count(Stage::kDecode, started,
        static_cast<std::uint64_t>(decoded.width) * static_cast<std::uint64_t>(decoded.height) *
            static_cast<std::uint64_t>(decoded.channels),
        key.sample);
  started = base::now_ns();
  FEEDLINE_CHECK_OK(recipe_->chain->apply(drawing_, decoded, workspace_, row));
  count(Stage::kTransform, started, row.spec.bytes(), key.sample);
  return {};
}

Result<void> SampleLoader::fill(std::span<const std::uint64_t> samples, std::span<const ArrayView> first_rows) {
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const std::uint64_t bytes, recipe_->format->fill(samples, first_rows));
  count(Stage::kStorage, started, bytes, samples.front());
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
