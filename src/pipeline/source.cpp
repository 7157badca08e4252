// SPDX-License-Identifier: Apache-2.0
#include "pipeline/source.h"

#include <algorithm>
#include <utility>

#include "format/array_format.h"
#include "format/token_format.h"

namespace feedline::pipeline {

namespace {

// length(i): the extent of ragged field i.
template <typename Length>
Schema with_lengths(Schema schema, Length length) {
  for (std::size_t i = 0; i < schema.size(); ++i) {
    Shape& shape = schema[i].array.shape;
    if (schema[i].array.is_ragged()) shape = shape.with_first(static_cast<std::int64_t>(length(i)));
  }
  return schema;
}

format::OpenOptions format_options(const OpenOptions& options) {
  return {options.format, options.fields, options.index_directory, nullptr};
}

}  // namespace

Result<std::shared_ptr<const format::Format>> open_source(const std::string& source, const OpenOptions& options) {
  return format::open(source, format_options(options));
}

std::shared_ptr<format::GivenFiles> given_files() {
  return std::make_shared<format::GivenFiles>(storage::local_storage());
}

Result<std::shared_ptr<const format::Format>> array_source(std::vector<NamedArray> arrays) {
  return format::ArrayFormat::make(std::move(arrays));
}

Result<std::shared_ptr<const format::Format>> token_source(const std::vector<TokenFile>& files,
                                                           const TokenOptions& options) {
  return format::open_tokens(files, options, storage::local_storage());
}

Result<Inspection> inspect_source(const std::string& source, const OpenOptions& options) {
  return format::inspect(source, format_options(options));
}

Result<void> check_operations(const std::vector<Operation>& operations) { return transform::Chain::check(operations); }

Result<std::shared_ptr<const Recipe>> make_recipe(std::string dataset, std::shared_ptr<const format::Format> format,
                                                  const std::vector<Operation>& operations, std::optional<DType> dtype,
                                                  Layout layout) {
  auto recipe = std::make_shared<Recipe>();
  if (format::is_filled(*format)) {
    if (!operations.empty())
      return config_error(std::string(name_of(operations.front())) + ": the samples of \"" + dataset +
                          "\" are arrays, and operations are for images");
    if (dtype) return config_error("dtype is of images: the samples of \"" + dataset + "\" are arrays");
    for (const format::FieldDescription& field : format->fields()) recipe->schema.push_back({field.name, field.array});
  } else {
    FEEDLINE_TRY(recipe->chain, transform::Chain::compile(operations, dtype, layout));
    for (const format::FieldDescription& field : format->fields()) {
      const bool image = field.kind == format::FieldKind::kImage;
      recipe->schema.push_back({field.name, image ? recipe->chain->output() : ArraySpec{DType::kInt64, {}}});
    }
  }
  recipe->ragged = format::is_ragged(*format);
  recipe->dataset = std::move(dataset);
  recipe->format = std::move(format);
  return recipe;
}

Schema schema_of(const Recipe& recipe, std::span<const std::uint64_t> samples) {
  return with_lengths(recipe.schema, [&](std::size_t field) {
    std::uint64_t longest = 0;
    for (const std::uint64_t sample : samples) longest = std::max(longest, recipe.format->length(sample, field));
    return longest;
  });
}

Schema longest_schema(const Recipe& recipe) {
  return with_lengths(recipe.schema, [&](std::size_t field) { return recipe.format->longest(field); });
}

Result<std::vector<DrawnValue>> draw_values(const Recipe& recipe, Size image, const base::SampleKey& key) {
  transform::Drawing drawing;
  if (!recipe.chain) return config_error("draw: the samples are arrays, which nothing is drawn for");
  FEEDLINE_CHECK_OK(recipe.chain->draw(image, key, drawing));
  return recipe.chain->values(drawing);
}

Result<std::vector<std::byte>> read_encoded(const format::Format& format, const std::string& dataset,
                                            std::uint64_t sample) {
  memory::Record record;
  if (auto read = format.read(sample, record); !read)
    return std::unexpected(with_place(std::move(read).error(), format, dataset, sample));
  for (std::size_t i = 0; i < format.fields().size(); ++i)
    if (format.fields()[i].kind == format::FieldKind::kImage)
      return std::vector<std::byte>(record.fields[i].bytes.begin(), record.fields[i].bytes.end());
  return config_error("the data set has no image field");
}

Error with_place(Error error, const format::Format& format, const std::string& dataset, std::uint64_t sample) {
  const Where place = format.where(sample);
  error.where.dataset = dataset;
  error.where.record = sample;
  if (error.where.shard.empty()) error.where.shard = place.shard;
  if (error.where.key.empty()) error.where.key = place.key;
  if (!error.where.offset) error.where.offset = place.offset;
  return error;
}

Error with_place(Error error, const Recipe& recipe, std::uint64_t sample) {
  return with_place(std::move(error), *recipe.format, recipe.dataset, sample);
}

}  // namespace feedline::pipeline
