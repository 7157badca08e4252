// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample_loader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "format/format.h"
#include "pipeline/pixel_cache.h"
#include "telemetry/spans.h"
#include "transform/chain.h"
#include "transform/colour.h"

namespace feedline::pipeline {

using telemetry::Stage;

namespace {

// Of the last sample's memory. More goes back to the system before the next one: that takes nothing beside reading so
// much, and one huge sample must not stand in every thread's memory until the end.
constexpr std::size_t kKeptBytes = std::size_t{32} << 20;

bool is_image(const format::FieldDescription& field) { return field.kind == format::FieldKind::kImage; }

}  // namespace

SampleLoader::SampleLoader(std::shared_ptr<const Recipe> recipe, telemetry::ThreadCounters* counters, ReadAhead* ahead,
                           std::uint64_t most_bytes)
    : recipe_(std::move(recipe)), counters_(counters), ahead_(ahead) {
  const auto& fields = recipe_->format->fields();
  record_.most_bytes = most_bytes;
  image_ = static_cast<std::size_t>(std::ranges::find_if(fields, is_image) - fields.begin());
}

Result<void> SampleLoader::read(std::uint64_t index, const PlanRow& place) {
  if (record_.storage.capacity() > kKeptBytes) record_.storage = {};
  if (ahead_ != nullptr) return ahead_->read(place, index, record_, watch_);
  return recipe_->format->read(index, record_);
}

void SampleLoader::count(Stage stage, std::uint64_t started_ns, std::uint64_t bytes) {
  if (counters_ != nullptr) count(stage, started_ns, base::now_ns(), bytes);
}

void SampleLoader::count(Stage stage, std::uint64_t started_ns, std::uint64_t ended_ns, std::uint64_t bytes) {
  if (counters_ == nullptr) return;
  (*counters_)[static_cast<std::size_t>(stage)].add_item(ended_ns - started_ns, bytes);
  telemetry::record_span(stage, started_ns, ended_ns, sample_);
}

std::unexpected<Error> SampleLoader::placed(Error error, std::uint64_t index) const {
  return std::unexpected(with_place(std::move(error), *recipe_, index));
}

Result<void> SampleLoader::load(const Job& job) {
  if (!recipe_->chain) {
    if (auto filled = fill({&job.index, 1}, job.rows); !filled) return placed(std::move(filled).error(), job.index);
    return {};
  }
  sample_ = job.index;
  const auto chain = fetch(job.index, job.place);
  if (!chain) return placed(chain.error(), job.index);
  return load_fetched(**chain, job);
}

Result<void> SampleLoader::load_fetched(const transform::Chain& chain, const Job& job) {
  const auto& fields = recipe_->format->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind == format::FieldKind::kInteger) {
      std::memcpy(job.rows[i].data, &record_.fields[i].value, sizeof(std::int64_t));
    } else if (auto image = load_field(chain, job.key, record_.fields[i], job.rows[i]); !image) {
      return placed(std::move(image).error(), job.index);
    }
  }
  record_.pin.reset();
  return {};
}

// Where a sample's work is its only image's, which is decoded for every epoch.
bool SampleLoader::takes_turns(const Recipe& recipe) {
  return recipe.chain && !recipe.cache && std::ranges::count_if(recipe.format->fields(), is_image) == 1;
}

Result<void> SampleLoader::begin(const Job& job) {
  sample_ = job.index;
  const auto fetched = fetch(job.index, job.place);
  if (!fetched) return placed(fetched.error(), job.index);
  return {};
}

// Of a fetched sample. False where load_fetched() has to do it, or to say what is wrong.
bool SampleLoader::draw_encoded(const transform::Chain& chain, const base::SampleKey& key) {
  const memory::Record::Field& field = record_.fields[image_];
  if (field.pixels.data != nullptr) return false;
  const auto image = open_image(field);
  return image && chain.draw(*image, key, drawing_) && !drawing_.planes;
}

void SampleLoader::finish_in_turn(SampleLoader& first, const Job& first_job, SampleLoader& second,
                                  const Job& second_job, std::array<Result<void>, 2>& results) {
  const std::array<SampleLoader*, 2> loaders{&first, &second};
  const std::array<const Job*, 2> jobs{&first_job, &second_job};
  const transform::Chain& chain = *first.recipe_->chain;
  const std::uint64_t started = base::now_ns();
  if (!results[0] || !results[1] || !first.draw_encoded(chain, first_job.key) ||
      !second.draw_encoded(chain, second_job.key)) {
    for (std::size_t i = 0; i < 2; ++i)
      if (results[i]) results[i] = loaders[i]->load_fetched(chain, *jobs[i]);
    return;
  }
  auto decoded = decode::ImageDecoder::decode_in_turn(
      first.decoder_, {first.drawing_.region, chain.color_mode(), &first.pixels_}, second.decoder_,
      {second.drawing_.region, chain.color_mode(), &second.pixels_});
  // nobody can tell whose time it was: half for each
  const std::uint64_t ended = base::now_ns(), middle = started + (ended - started) / 2;
  const std::array<std::uint64_t, 3> borders{started, middle, ended};
  for (std::size_t i = 0; i < 2; ++i) {
    if (decoded[i]) {
      loaders[i]->count(Stage::kDecode, borders[i], borders[i + 1], memory::bytes_of(loaders[i]->pixels_.view()));
      decoded[i] = loaders[i]->finish_image(chain, *jobs[i], first.workspace_);
    }
    if (!decoded[i]) results[i] = loaders[i]->placed(std::move(decoded[i]).error(), jobs[i]->index);
  }
}

// What follows the decode of the only image.
Result<void> SampleLoader::finish_image(const transform::Chain& chain, const Job& job,
                                        transform::Workspace& workspace) {
  const std::uint64_t started = base::now_ns();
  const auto& fields = recipe_->format->fields();
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (i != image_) std::memcpy(job.rows[i].data, &record_.fields[i].value, sizeof(std::int64_t));
  const ArrayView& row = job.rows[image_];
  FEEDLINE_CHECK_OK(chain.apply(drawing_, pixels_.view(), workspace, row));
  count(Stage::kTransform, started, row.spec.bytes());
  record_.pin.reset();
  return {};
}

Result<const transform::Chain*> SampleLoader::fetch(std::uint64_t index, const PlanRow& place) {
  const std::uint64_t started = base::now_ns();
  if (recipe_->cache) {
    FEEDLINE_TRY(const bool kept, recipe_->cache->read(index, record_));
    if (kept) {
      count(Stage::kStorage, started, 0);  // the pages are there, or the kernel brings them
      return recipe_->rest.get();
    }
  }
  FEEDLINE_CHECK_OK(read(index, place));
  count(Stage::kStorage, started, record_.bytes_read);
  // with a full cache the whole chain is quicker, which decodes only what it needs
  if (!recipe_->cache || !recipe_->cache->is_open_for_more()) return recipe_->chain.get();
  FEEDLINE_CHECK_OK(prepare(index));
  return recipe_->rest.get();
}

// What stands before the cache, for all fields of record_, which then looks at the result.
Result<void> SampleLoader::prepare(std::uint64_t index) {
  const transform::Preparation& preparation = recipe_->cache->preparation();
  const auto& fields = recipe_->format->fields();
  kept_.begin(index, recipe_->format->where(index).key, fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind == format::FieldKind::kInteger) {
      kept_.add_integer(record_.fields[i].value);
      continue;
    }
    const std::uint64_t started = base::now_ns();
    FEEDLINE_TRY(const Size image, open_image(record_.fields[i]));
    FEEDLINE_TRY(const Size size, preparation.draw(image, drawing_));
    FEEDLINE_TRY(const auto pixels, pixels_of(record_.fields[i], drawing_.region, preparation.color_mode(), started));
    const auto room = kept_.add_image(size.width, size.height, preparation.channels());
    FEEDLINE_CHECK_OK(preparation.apply(drawing_, pixels, size, workspace_, room));
  }
  const auto record = kept_.finish();
  recipe_->cache->keep(index, record);
  return format::read_record(record, fields, record_);
}

Result<Size> SampleLoader::open_image(const memory::Record::Field& field) {
  if (field.pixels.data != nullptr) return Size{field.pixels.height, field.pixels.width};
  FEEDLINE_TRY(const decode::ImageHeader header, decoder_.open(field.bytes));
  return Size{header.height, header.width};
}

// Requires: open_image() came before. Valid until the next sample.
Result<memory::PixelView> SampleLoader::pixels_of(const memory::Record::Field& field, const Box& region, ColorMode mode,
                                                  std::uint64_t started_ns) {
  if (field.pixels.data == nullptr) {
    FEEDLINE_CHECK_OK(decoder_.decode(region, mode, pixels_));
    const memory::PixelView decoded = pixels_.view();
    count(Stage::kDecode, started_ns, memory::bytes_of(decoded));
    return decoded;
  }
  memory::PixelView view = field.pixels;
  view.data = view.row(region.top) + region.left * view.channels;
  view.width = region.width;
  view.height = region.height;
  const int channels = mode == ColorMode::kRgb ? 3 : 1;
  if (view.channels == channels) return view;
  FEEDLINE_CHECK_OK(transform::grayscale(view, channels, pixels_));  // to L, or from L to three equal channels
  return pixels_.view();
}

Result<void> SampleLoader::load_field(const transform::Chain& chain, const base::SampleKey& key,
                                      const memory::Record::Field& field, ArrayView row) {
  std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const Size image, open_image(field));
  FEEDLINE_CHECK_OK(chain.draw(image, key, drawing_));
  const bool is_encoded = field.pixels.data == nullptr;
  if (is_encoded && drawing_.planes &&
      decoder_.decode_planes(drawing_.region, chain.color_mode(), *drawing_.planes, planes_)) {
    count(Stage::kDecode, started, memory::bytes_of(planes_));
    started = base::now_ns();
    FEEDLINE_CHECK_OK(chain.apply(drawing_, planes_, workspace_, row));
  } else {
    FEEDLINE_TRY(const memory::PixelView pixels, pixels_of(field, drawing_.region, chain.color_mode(), started));
    started = base::now_ns();
    FEEDLINE_CHECK_OK(chain.apply(drawing_, pixels, workspace_, row));
  }
  count(Stage::kTransform, started, row.spec.bytes());
  return {};
}

Result<void> SampleLoader::load_image(const base::SampleKey& key, std::span<const std::byte> encoded, ArrayView row) {
  sample_ = key.sample;
  return load_field(*recipe_->chain, key, {.bytes = encoded}, row);
}

Result<void> SampleLoader::fill(std::span<const std::uint64_t> samples, std::span<const ArrayView> first_rows) {
  const std::uint64_t started = base::now_ns();
  FEEDLINE_TRY(const std::uint64_t bytes, recipe_->format->fill(samples, first_rows));
  sample_ = samples.front();
  if (counters_ == nullptr) return {};
  const std::uint64_t ended = base::now_ns();
  (*counters_)[static_cast<std::size_t>(Stage::kStorage)].add_items(samples.size(), ended - started, bytes);
  telemetry::record_span(Stage::kStorage, started, ended, sample_);
  return {};
}

Result<SampleLoader::Drawn> SampleLoader::draw(const base::SampleKey& key) {
  const auto placed = [&](Error error) { return std::unexpected(with_place(std::move(error), *recipe_, key.sample)); };
  if (!recipe_->chain) return config_error("the dataset has no image field");
  if (auto read = recipe_->format->read(key.sample, record_); !read) return placed(std::move(read).error());
  const auto& fields = recipe_->format->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind != format::FieldKind::kImage) continue;
    const auto image = open_image(record_.fields[i]);
    if (!image) return placed(image.error());
    if (auto drawn = recipe_->chain->draw(*image, key, drawing_); !drawn) return placed(std::move(drawn).error());
    return Drawn{record_.fields[i].bytes, *image, &drawing_};
  }
  return config_error("the dataset has no image field");
}

}  // namespace feedline::pipeline
