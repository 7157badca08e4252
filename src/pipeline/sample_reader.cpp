// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample_reader.h"

#include <utility>

#include "pipeline/pixels_path.h"
#include "pipeline/sample_loader.h"

namespace feedline::pipeline {
namespace {

// A sample of this schema with nothing in it yet, and where its fields are to be written.
Sample empty_sample(const Schema& schema, std::vector<ArrayView>& rows) {
  Sample sample;
  for (const FieldSpec& field : schema) {
    sample.fields.push_back({field.name, field.array, std::vector<std::byte>(field.array.bytes())});
    rows.push_back({sample.fields.back().data.data(), field.array});
  }
  return sample;
}

}  // namespace

SampleReader::SampleReader(std::shared_ptr<const Recipe> recipe)
    : recipe_(std::move(recipe)),
      source_(source_of(*recipe_)),
      loader_(std::make_unique<SampleLoader>(recipe_, nullptr)) {}
SampleReader::SampleReader(SampleReader&&) noexcept = default;
SampleReader& SampleReader::operator=(SampleReader&&) noexcept = default;
SampleReader::~SampleReader() = default;

const Schema& SampleReader::schema() const { return recipe_->schema; }

Result<Sample> SampleReader::read(const GivenSample& given, std::uint64_t seed, std::uint64_t epoch) {
  FEEDLINE_CHECK_OK(source_.check_index(given.index));
  std::vector<ArrayView> rows;
  Sample sample = empty_sample(schema_of(*recipe_, {&given.index, 1}), rows);
  FEEDLINE_CHECK_OK(loader_->load({given.index, {seed, epoch, given.draw}, rows}));
  return sample;
}

Result<Sample> SampleReader::read(std::span<const std::byte> encoded, const base::SampleKey& key) {
  if (!is_one_image(*recipe_)) return config_error("read: the samples of this dataset are more than one image");
  std::vector<ArrayView> rows;
  Sample sample = empty_sample(schema(), rows);
  FEEDLINE_CHECK_OK(loader_->load_image(key, encoded, rows[0]));
  return sample;
}

Result<std::vector<DrawnValue>> SampleReader::draw(const base::SampleKey& key) {
  FEEDLINE_CHECK_OK(source_.check_index(key.sample));
  FEEDLINE_TRY(const auto drawn, loader_->draw(key));
  return recipe_->image->chain().values(*drawn.drawing);
}

}  // namespace feedline::pipeline
