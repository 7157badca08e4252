// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/sample_loader.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "format/format.h"
#include "pipeline/fields/deep_path.h"
#include "pipeline/fields/image_input.h"
#include "pipeline/fields/pixel_cache.h"
#include "pipeline/fields/pixels_path.h"
#include "pipeline/fields/target_path.h"
#include "pipeline/sample/clip_reader.h"
#include "pipeline/sample/image_checkpoints.h"
#include "pipeline/sample/mapping.h"

namespace feedline::pipeline {

using telemetry::Stage;

namespace {

// The amount of memory that is reused for the next sample. Memory above this amount is freed before the next sample:
// freeing is cheap compared with reading so much data, and one huge sample must not occupy memory in every thread.
constexpr std::size_t kRetainedBytes = std::size_t{32} << 20;

}  // namespace

SampleLoader::SampleLoader(std::shared_ptr<const Recipe> recipe, telemetry::ThreadCounters* counters,
                           std::unique_ptr<RecordReader> reader, std::uint64_t most_bytes,
                           std::shared_ptr<FunctionWatch> watch, std::shared_ptr<VideoDecoders> decoders,
                           ClipReader* clips)
    : recipe_(std::move(recipe)), reader_(std::move(reader)), clips_(clips), meter_(counters) {
  record_.most_bytes = most_bytes;
  record_.defers_audio = recipe_->cache == nullptr;
  record_.defers_videos = recipe_->has_clips;
  for (const auto& path : recipe_->paths) path->add_scratch(scratch_);
  scratch_.connect();
  if (scratch_.video) scratch_.video->decoders = std::move(decoders);
  if (scratch_.image) scratch_.image->decoder.use_checkpoints(recipe_->checkpoints.get());
  if (recipe_->mapping) function_.emplace(*recipe_, std::move(watch));
}

std::unexpected<Error> SampleLoader::located(Error error, std::uint64_t index) const {
  return std::unexpected(with_location(std::move(error), *recipe_, index));
}

// ---- samples stored as rows, or numbers of many records ----

Result<void> SampleLoader::fill(std::span<const std::uint64_t> samples, std::span<const ArrayView> first_rows) {
  const std::uint64_t started = base::now_ns();
  std::uint64_t bytes = 0;
  if (recipe_->gathers) {
    gathered_.clear();
    for (std::size_t i = 0; i < samples.size(); ++i) gathered_.push_back({samples[i], i});
    FEEDLINE_TRY(bytes, recipe_->records->gather(gathered_, first_rows));
  } else {
    FEEDLINE_TRY(bytes, recipe_->rows->fill(samples, first_rows));
  }
  meter_.begin(samples.front());
  meter_.count_many(Stage::kStorage, samples.size(), started, bytes);
  return {};
}

// ---- samples stored as records ----

Result<void> SampleLoader::read(const Job& job) {
  if (record_.storage.capacity() > kRetainedBytes) record_.storage = {};
  for (memory::ByteBuffer& buffer : record_.more)
    if (buffer.capacity() > kRetainedBytes) buffer = {};
  if (reader_) return reader_->read(job.plan_row, job.index, job.key, record_);
  return recipe_->records->read(job.index, record_);
}

Result<bool> SampleLoader::fetch(const Job& job) {
  meter_.begin(job.index);
  const std::uint64_t started = base::now_ns();
  PixelCache* const cache = recipe_->cache.get();
  if (cache != nullptr) {
    FEEDLINE_TRY(const bool is_cached, cache->read(job.index, record_));
    if (is_cached) {
      meter_.count(Stage::kStorage, started, 0);  // the pages are mapped, or the kernel reads them
      return true;
    }
  }
  if (cache != nullptr && cache->is_on_device() && !cache->is_open_for_more())
    return std::unexpected(*cache->failure());  // the host cannot do anything with it
  FEEDLINE_CHECK_OK(read(job));
  meter_.count(Stage::kStorage, started, record_.bytes_read);
  // with a full cache the whole chain is faster, because it decodes only what it needs
  if (cache == nullptr || (!cache->is_on_device() && !cache->is_open_for_more())) return false;
  FEEDLINE_CHECK_OK(prepare(job));
  return true;
}

// Applies the operations before the cache to all fields of record_, which then contains the results.
Result<void> SampleLoader::prepare(const Job& job) {
  FieldWork work = work_of(job);
  scratch_.begin_sample();
  prepared_.begin(job.index, recipe_->format->where(job.index).key, recipe_->paths.size());
  if (recipe_->images > 0) FEEDLINE_CHECK_OK(prepare_field(recipe_->image_field, job, work));
  for (const std::size_t field : recipe_->others) FEEDLINE_CHECK_OK(prepare_field(field, job, work));
  const auto record = prepared_.finish();
  if (!recipe_->cache->is_on_device()) recipe_->cache->store(job.index, record);
  FEEDLINE_CHECK_OK(format::read_record(record, recipe_->format->fields(), record_));
  return recipe_->cache->is_on_device() ? recipe_->cache->store_on_device(job.index, record_) : Result<void>();
}

Result<void> SampleLoader::prepare_field(std::size_t field, const Job& job, FieldWork& work) {
  const memory::Record::Field& stored = record_.fields[field];
  prepared_.begin_field(field);
  if (stored.absent) {
    prepared_.add_absent();
    return {};
  }
  auto prepared = recipe_->paths[field]->prepare(stored, work, prepared_);
  if (!prepared) return std::unexpected(named(std::move(prepared).error(), field, job.index));
  return prepared;
}

// Adds the name of the field and its location to the error.
Error SampleLoader::named(Error error, std::size_t field, std::uint64_t index) const {
  error.what = "field '" + recipe_->format->fields()[field].name + "': " + error.what;
  Where where = recipe_->format->where_field(index, field);
  if (error.where.shard.empty()) error.where.shard = std::move(where.shard);
  if (!error.where.offset) error.where.offset = where.offset;
  return error;
}

Result<void> SampleLoader::find_own_rows(std::uint64_t index, memory::RowUse use,
                                         std::vector<memory::OwnRow>& rows) const {
  rows.resize(recipe_->stored_schema.size());
  if (recipe_->cache != nullptr) return {};
  for (std::size_t field = 0; field < recipe_->format->fields().size(); ++field) {
    if (!recipe_->rows && !recipe_->paths[field]->gives_stored_row()) continue;
    const std::size_t row = recipe_->rows ? field : recipe_->first_rows[field];
    if (function_ && function_->takes(row) != (use != memory::RowUse::kKept)) continue;
    auto own = recipe_->format->own_row(index, field, use);
    if (!own) return located(std::move(own).error(), index);
    rows[row] = std::move(*own);
  }
  return {};
}

Result<std::span<memory::Row>> SampleLoader::stored_rows_of(const Job& job) {
  if (!function_) return job.rows;
  function_->own_rows().assign(job.own.begin(), job.own.end());
  FEEDLINE_CHECK_OK(find_own_rows(job.index, use_of(*recipe_->mapping->function), function_->own_rows()));
  return function_->stored_rows(job.rows);
}

std::span<const memory::OwnRow> SampleLoader::own_rows_of(const Job& job) const {
  return function_ ? function_->own_rows() : job.own;
}

Result<void> SampleLoader::finish_fields(const Job& job) {
  record_.pin.reset();
  if (scratch_.image && scratch_.image->deepest != decode::Depth::k8Bits)
    recipe_->seen_depth->note(static_cast<std::uint8_t>(std::exchange(scratch_.image->deepest, decode::Depth::k8Bits)));
  return function_ ? function_->fill(job.key, job.rows, record_.most_bytes, meter_) : Result<void>();
}

Result<void> SampleLoader::fill_field(std::size_t field, const Job& job, std::span<memory::Row> stored_rows,
                                      FieldWork& work) {
  const memory::Record::Field& stored = record_.fields[field];
  const FieldPath& path = *recipe_->paths[field];
  const std::size_t first = recipe_->first_rows[field];
  const auto rows = stored_rows.subspan(first, path.specs().size());
  if (const auto own = own_rows_of(job); !own.empty() && own[first].memory) return {};
  if (stored.absent) {
    for (memory::Row& row : rows) row.item->clear(true);  // the recipe made it a list
    return {};
  }
  auto filled = path.fill_rows(stored, work, rows);
  if (!filled) return std::unexpected(named(std::move(filled).error(), field, job.index));
  return filled;
}

Result<void> SampleLoader::fill_all_but_image(const Job& job, std::span<memory::Row> stored_rows, FieldWork& work) {
  for (const std::size_t field : recipe_->others) FEEDLINE_CHECK_OK(fill_field(field, job, stored_rows, work));
  return {};
}

// Called before processing an image whose geometry depends on the sample's boxes.
Result<void> SampleLoader::draw_boxes(FieldWork& work, std::uint64_t index) {
  if (!recipe_->boxes || image().absent) return {};
  const memory::Record::Field& stored = record_.fields[recipe_->boxes_field];
  if (stored.absent) return {};
  const auto size = recipe_->image->size(image(), scratch_);
  if (!size) return std::unexpected(named(size.error(), recipe_->image_field, index));
  note_drawn_size(scratch_.drawn_for, *size, recipe_->image->spec().name);
  auto drawn = recipe_->boxes->draw(stored, work);
  if (!drawn) return std::unexpected(named(std::move(drawn).error(), recipe_->boxes_field, index));
  return {};
}

Result<void> SampleLoader::fill_whole(const Job& job) {
  recipe_->checkpoints->note_refused_range();
  if (auto whole = recipe_->records->read(job.index, record_); !whole)
    return located(std::move(whole).error(), job.index);
  return fill_fields(job, false);
}

// The first image is processed first, because the other images and the masks are compared with its size.
Result<void> SampleLoader::fill_fields(const Job& job, bool is_prepared) {
  FieldWork work = work_of(job, is_prepared);
  scratch_.begin_sample();
  FEEDLINE_TRY(const auto stored_rows, stored_rows_of(job));
  if (clips_ != nullptr) scratch_.video->fetched = clips_->take(job.plan_row, job.index, job.key);
  Result<void> filled;
  filled = draw_boxes(work, job.index);
  if (filled && recipe_->images > 0) filled = fill_field(recipe_->image_field, job, stored_rows, work);
  if (!filled && recipe_->images > 0 && image().part) return fill_whole(job);
  if (filled) filled = fill_all_but_image(job, stored_rows, work);
  if (filled) filled = finish_fields(job);
  if (clips_ != nullptr) scratch_.video->fetched.reset();
  if (!filled) return located(std::move(filled).error(), job.index);
  return {};
}

Result<void> SampleLoader::load(const Job& job) {
  if (recipe_->rows) {
    FEEDLINE_TRY(const auto stored_rows, stored_rows_of(job));
    views_.clear();
    for (const memory::Row& row : stored_rows) views_.push_back(row.view);
    const auto own = own_rows_of(job);
    for (std::size_t i = 0; i < own.size(); ++i)
      if (own[i].memory) views_[i].data = nullptr;  // needs no copy
    auto filled = fill({&job.index, 1}, views_);
    if (filled) filled = finish_fields(job);
    if (!filled) return located(std::move(filled).error(), job.index);
    return {};
  }
  const auto prepared = fetch(job);
  if (!prepared) return located(prepared.error(), job.index);
  return fill_fields(job, *prepared);
}

Result<void> SampleLoader::load_image(const base::SampleKey& key, const memory::Record::Field& stored,
                                      memory::Row& row) {
  meter_.begin(key.sample);
  scratch_.begin_sample();
  FieldWork work{key, scratch_, meter_, false, record_.most_bytes};
  return recipe_->image->fill(stored, work, row);
}

// Returns the index of the field with views, or else of the first image.
std::size_t SampleLoader::drawn_field() const {
  if (!recipe_->views) return recipe_->image_field;
  const auto is_it = [&](const auto& path) { return path.get() == recipe_->views.get(); };
  return static_cast<std::size_t>(std::ranges::find_if(recipe_->paths, is_it) - recipe_->paths.begin());
}

// Reads the image for which values will be drawn.
Result<const memory::Record::Field*> SampleLoader::drawn_image(const base::SampleKey& key) {
  if (recipe_->images == 0) return config_error("the dataset has no image field");
  if (auto read = recipe_->records->read(key.sample, record_); !read)
    return located(std::move(read).error(), key.sample);
  scratch_.begin_sample();
  const memory::Record::Field& field = record_.fields[drawn_field()];
  if (field.absent) return located(data_error("the sample has no image", "format").error(), key.sample);
  return &field;
}

Result<SampleLoader::Drawn> SampleLoader::draw(const base::SampleKey& key) {
  FEEDLINE_TRY(const memory::Record::Field* const field, drawn_image(key));
  Result<void> drawn;
  if (recipe_->views) {
    drawn = recipe_->views->find_regions(*field, key, scratch_, regions_);
  } else {
    FEEDLINE_TRY(const transform::Drawing* const drawing, draw_image(*field, key));
    regions_.assign(1, {drawing->region, drawing->planes});
  }
  if (!drawn) return located(named(std::move(drawn).error(), drawn_field(), key.sample), key.sample);
  return Drawn{field->bytes, regions_};
}

// Draws the values for an image without views.
Result<const transform::Drawing*> SampleLoader::draw_image(const memory::Record::Field& field,
                                                           const base::SampleKey& key) {
  FieldWork work{key, scratch_, meter_, false, record_.most_bytes};
  if (auto boxes = draw_boxes(work, key.sample); !boxes) return located(std::move(boxes).error(), key.sample);
  const auto size = recipe_->image->draw(field, key, scratch_);
  if (!size) return located(named(size.error(), recipe_->image_field, key.sample), key.sample);
  return &scratch_.image->drawing;
}

Result<std::vector<DrawnValue>> SampleLoader::draw_values(const base::SampleKey& key) {
  if (recipe_->images == 0 && recipe_->deep) return draw_deep_values(key);
  FEEDLINE_TRY(const memory::Record::Field* const field, drawn_image(key));
  if (!recipe_->views) {
    FEEDLINE_TRY(const transform::Drawing* const drawing, draw_image(*field, key));
    return recipe_->image->chain().values(*drawing);
  }
  const auto size = open_image(*field, recipe_->views->applies_exif(), *scratch_.image);
  auto values = size ? pipeline::draw_values(*recipe_, *size, key)
                     : Result<std::vector<DrawnValue>>(std::unexpected(size.error()));
  if (!values) return located(named(std::move(values).error(), drawn_field(), key.sample), key.sample);
  return values;
}

Result<std::vector<DrawnValue>> SampleLoader::draw_deep_values(const base::SampleKey& key) {
  if (auto read = recipe_->records->read(key.sample, record_); !read)
    return located(std::move(read).error(), key.sample);
  const std::size_t field = recipe_->deep_field;
  const auto size = recipe_->deep->size(record_.fields[field], scratch_);
  auto values = size ? pipeline::draw_values(*recipe_, *size, key)
                     : Result<std::vector<DrawnValue>>(std::unexpected(size.error()));
  if (!values) return located(named(std::move(values).error(), field, key.sample), key.sample);
  return values;
}

// ---- two samples in turn ----

// Returns true if a sample's only work is one image that is decoded in every epoch.
bool SampleLoader::takes_turns(const Recipe& recipe) { return recipe.images == 1 && recipe.image && !recipe.cache; }

Result<void> SampleLoader::begin(const Job& job) {
  const auto fetched = fetch(job);
  if (!fetched) return located(fetched.error(), job.index);
  return {};
}

void SampleLoader::finish_in_turn(SampleLoader& first, const Job& first_job, SampleLoader& second,
                                  const Job& second_job, std::array<Result<void>, 2>& results) {
  const std::array<SampleLoader*, 2> loaders{&first, &second};
  const std::array<const Job*, 2> jobs{&first_job, &second_job};
  const PixelsPath& path = *first.recipe_->image;
  const std::uint64_t started = base::now_ns();
  const auto begins = [&](SampleLoader& loader, const Job& job) {
    loader.scratch_.begin_sample();
    FieldWork work = loader.work_of(job);
    return !loader.image().absent && loader.draw_boxes(work, job.index) && path.begin(loader.image(), work);
  };
  if (!results[0] || !results[1] || !begins(first, first_job) || !begins(second, second_job)) {
    for (std::size_t i = 0; i < 2; ++i)
      if (results[i]) results[i] = loaders[i]->fill_fields(*jobs[i], false);
    return;
  }
  auto decoded = path.decode_in_turn(first.scratch_, second.scratch_);
  // the times cannot be separated: half for each
  const std::uint64_t ended = base::now_ns(), middle = started + (ended - started) / 2;
  const std::array<std::uint64_t, 3> borders{started, middle, ended};
  for (std::size_t i = 0; i < 2; ++i) {
    SampleLoader& loader = *loaders[i];
    if (!decoded[i] && loader.image().part) {
      results[i] = loader.fill_whole(*jobs[i]);
      continue;
    }
    if (!decoded[i]) {
      decoded[i] =
          std::unexpected(loader.named(std::move(decoded[i]).error(), loader.recipe_->image_field, jobs[i]->index));
    } else {
      const std::uint64_t bytes = memory::bytes_of(loader.scratch_.image->pixels.view());
      loader.meter_.count(Stage::kDecode, borders[i], borders[i + 1], bytes);
      decoded[i] = loader.finish_image(*jobs[i], first.scratch_.image->workspace);
    }
    if (!decoded[i]) results[i] = loader.located(std::move(decoded[i]).error(), jobs[i]->index);
  }
}

// Finishes the sample's only image after it was decoded.
Result<void> SampleLoader::finish_image(const Job& job, transform::Workspace& workspace) {
  FieldWork work = work_of(job);
  FEEDLINE_TRY(const auto stored_rows, stored_rows_of(job));
  auto finished = recipe_->image->finish(work, workspace, stored_rows[recipe_->first_rows[recipe_->image_field]]);
  if (!finished) return std::unexpected(named(std::move(finished).error(), recipe_->image_field, job.index));
  FEEDLINE_CHECK_OK(fill_all_but_image(job, stored_rows, work));
  return finish_fields(job);
}

}  // namespace feedline::pipeline
