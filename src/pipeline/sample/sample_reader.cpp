// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/sample_reader.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "memory/row.h"
#include "pipeline/fields/pixels_path.h"
#include "pipeline/sample/mapping.h"
#include "pipeline/sample/sample_loader.h"

namespace feedline::pipeline {
namespace {

// Clearing the memory of a larger row would take as long as filling it.
constexpr std::size_t kLargeRow = 64 << 10;

// A new sample with this schema, which refers to existing rows and has memory for all others.
class SampleRoom {
 public:
  // own: empty, or one for each field of the schema.
  explicit SampleRoom(const Schema& schema, std::span<const memory::OwnRow> own = {}) : items_(schema.size()) {
    for (std::size_t i = 0; i < schema.size(); ++i) {
      const FieldSpec& field = schema[i];
      const bool is_own = i < own.size() && own[i].memory;
      const bool is_variable = field.has_variable_size() && !is_own;
      std::size_t bytes = is_variable || is_own ? 0 : field.array.bytes();
      std::shared_ptr<std::byte> pages;
      if (bytes >= kLargeRow && field.content == Content::kArray) {
        pages = {new std::byte[bytes], std::default_delete<std::byte[]>()};
        bytes = 0;
      }
      Sample::Field& made = sample_.fields.emplace_back(Sample::Field{
          field.name, field.array, std::vector<std::byte>(bytes), field.form, field.content, false, std::move(pages)});
      if (is_own) {
        made.array = own[i].array;
        made.pages = own[i].memory;
      }
      rows_.push_back({{made.bytes(), made.array}, is_variable ? &items_[i] : nullptr});
    }
  }

  std::span<memory::Row> rows() { return rows_; }
  Sample take() {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].item == nullptr) continue;
      memory::ListItem& item = *rows_[i].item;
      Sample::Field& field = sample_.fields[i];
      field.data.assign(item.data(), item.data() + item.size);
      field.array.shape = item.shape;
      field.absent = item.absent;
    }
    return std::move(sample_);
  }

 private:
  Sample sample_;
  std::vector<memory::ListItem> items_;
  std::vector<memory::Row> rows_;
};

// Reorders rows from the stored schema to the schema.
std::vector<memory::OwnRow> in_schema(const Recipe& recipe, const std::vector<memory::OwnRow>& stored) {
  if (!recipe.mapping) return stored;
  std::vector<memory::OwnRow> rows(recipe.schema.size());
  for (std::size_t i = 0; i < stored.size(); ++i)
    if (const std::size_t index = recipe.mapping->schema_indices[i]; index != Mapping::kTaken) rows[index] = stored[i];
  return rows;
}

Result<void> check_one_image(const Recipe& recipe) {
  if (is_one_image(recipe)) return {};
  return config_error("read: the samples of this dataset have more than one image, or a map function");
}

Result<void> copy(const GivenPixels& pixels, memory::PixelBuffer& into) {
  if (pixels.width <= 0 || pixels.height <= 0 || (pixels.channels != 1 && pixels.channels != 3))
    return config_error("read: an image needs pixels, and 1 or 3 channels");
  FEEDLINE_CHECK_OK(into.resize(pixels.width, pixels.height, pixels.channels));
  const std::size_t row_bytes = static_cast<std::size_t>(pixels.width) * static_cast<std::size_t>(pixels.channels);
  for (int y = 0; y < pixels.height; ++y)
    std::memcpy(into.row(y), pixels.data + static_cast<std::size_t>(y) * row_bytes, row_bytes);
  return {};
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

Result<Sample> SampleReader::read(const GivenSample& given, std::uint64_t seed, std::uint64_t epoch,
                                  memory::RowUse use) {
  FEEDLINE_CHECK_OK(source_.check_index(given.index));
  own_.clear();
  FEEDLINE_CHECK_OK(loader_->find_own_rows(given.index, use, own_));
  SampleRoom room(schema_of(*recipe_, {&given.index, 1}), in_schema(*recipe_, own_));
  FEEDLINE_CHECK_OK(loader_->load({given.index, {seed, epoch, given.draw}, room.rows(), {}, own_}));
  own_.clear();  // only the sample has references
  return room.take();
}

Result<Sample> SampleReader::read(std::span<const std::byte> encoded, const base::SampleKey& key) {
  FEEDLINE_CHECK_OK(check_one_image(*recipe_));
  SampleRoom room(schema());
  FEEDLINE_CHECK_OK(loader_->load_image(key, {.bytes = encoded}, room.rows()[0]));
  return room.take();
}

Result<Sample> SampleReader::read(const GivenPixels& pixels, const base::SampleKey& key) {
  FEEDLINE_CHECK_OK(check_one_image(*recipe_));
  FEEDLINE_CHECK_OK(copy(pixels, given_));
  SampleRoom room(schema());
  FEEDLINE_CHECK_OK(loader_->load_image(key, {.pixels = given_.view()}, room.rows()[0]));
  return room.take();
}

Result<std::vector<DrawnValue>> SampleReader::draw(const base::SampleKey& key) {
  FEEDLINE_CHECK_OK(source_.check_index(key.sample));
  return loader_->draw_values(key);
}

}  // namespace feedline::pipeline
