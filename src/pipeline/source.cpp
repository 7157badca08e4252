// SPDX-License-Identifier: Apache-2.0
#include "pipeline/source.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/random.h"
#include "format/arrays/array_format.h"
#include "format/joined_format.h"
#include "format/tokens/token_format.h"
#include "plan/mixed_order.h"
#include "storage/slow_storage.h"

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

// Local files; with FEEDLINE_SLOW_STORAGE=MICROSECONDS, for tests and benchmarks, as if each read took so long.
std::shared_ptr<const storage::Storage> stored_files() {
  const char* slow = std::getenv("FEEDLINE_SLOW_STORAGE");
  const long latency_us = slow ? std::atol(slow) : 0;
  if (latency_us <= 0) return storage::local_storage();
  return std::make_shared<storage::SlowStorage>(storage::local_storage(),
                                                storage::SlowReads{.latency = std::chrono::microseconds(latency_us)});
}

format::OpenOptions format_options(const OpenOptions& options) {
  return {options.format, options.fields, options.index_directory, stored_files()};
}

}  // namespace

Result<std::shared_ptr<const format::Format>> open_source(const std::string& source, const OpenOptions& options) {
  return format::open(source, format_options(options));
}

std::shared_ptr<format::GivenFiles> given_files() { return std::make_shared<format::GivenFiles>(stored_files()); }

Result<std::shared_ptr<const format::Format>> array_source(std::vector<NamedArray> arrays) {
  return format::ArrayFormat::make(std::move(arrays));
}

Result<std::shared_ptr<const format::Format>> token_source(const std::vector<TokenFile>& files,
                                                           const TokenOptions& options) {
  return format::open_tokens(files, options, storage::local_storage());
}

Result<std::shared_ptr<const format::Format>> joined_source(std::vector<std::shared_ptr<const format::Format>> parts) {
  return format::JoinedFormat::make(std::move(parts));
}

Result<std::shared_ptr<const plan::Mixture>> make_mixture(const std::vector<std::uint64_t>& sizes,
                                                          const MixOptions& options) {
  auto mixture = std::make_shared<plan::Mixture>();
  if (!options.weights.empty() && options.weights.size() != sizes.size())
    return config_error("mix: " + std::to_string(sizes.size()) + " data sets need as many weights, not " +
                        std::to_string(options.weights.size()));
  bool positive = false;
  for (const double weight : options.weights) {
    if (!std::isfinite(weight) || weight < 0) return config_error("mix: a weight must be a number from 0 on");
    positive = positive || weight > 0;
  }
  if (!options.weights.empty() && !positive) return config_error("mix: all weights are 0");
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    mixture->parts.push_back({sizes[i], options.weights.empty() ? static_cast<double>(sizes[i]) : options.weights[i]});
    total += sizes[i];
  }
  switch (options.until) {
    case MixUntil::kSamples:
      mixture->samples = options.samples > 0 ? options.samples : total;
      break;
    case MixUntil::kFirst:
      mixture->samples = plan::positions_until_first(mixture->parts);
      break;
    case MixUntil::kLast:
      mixture->samples = plan::positions_until_last(mixture->parts);
      break;
  }
  if (mixture->samples > plan::kMostPositions)
    return config_error("mix: an epoch would have more than 2^48 samples: the weights and sizes are too far apart");
  if (mixture->samples == 0)
    return config_error("mix: an epoch would have no sample: the data set that ends first has too few for its weight");
  return mixture;
}

Result<Inspection> inspect_source(const std::string& source, const OpenOptions& options) {
  return format::inspect(source, format_options(options));
}

Result<void> check_operations(const std::vector<Operation>& operations, const std::optional<CachePoint>& cache) {
  FEEDLINE_CHECK_OK(transform::Chain::check(operations));
  for (std::size_t i = cache ? cache->position : operations.size(); i < operations.size(); ++i)
    if (std::holds_alternative<op::Decode>(operations[i]))
      return config_error("decode: must be the first operation; the cache before it keeps decoded pixels");
  return {};
}

Result<std::shared_ptr<const Recipe>> make_recipe(std::string dataset, std::shared_ptr<const format::Format> format,
                                                  std::shared_ptr<const plan::Mixture> mixture,
                                                  const std::vector<Operation>& operations, std::optional<DType> dtype,
                                                  Layout layout, const std::optional<CachePoint>& cache) {
  auto recipe = std::make_shared<Recipe>();
  if (format::is_filled(*format)) {
    if (!operations.empty())
      return config_error(std::string(name_of(operations.front())) + ": the samples of \"" + dataset +
                          "\" are arrays, and operations are for images");
    if (dtype) return config_error("dtype is of images: the samples of \"" + dataset + "\" are arrays");
    for (const format::FieldDescription& field : format->fields()) recipe->schema.push_back({field.name, field.array});
  } else {
    FEEDLINE_CHECK_OK(check_operations(operations, cache));
    FEEDLINE_TRY(recipe->chain, transform::Chain::compile(operations, dtype, layout));
    if (cache) {
      FEEDLINE_TRY(recipe->rest, transform::Chain::compile_rest(operations, cache->position, dtype, layout));
      recipe->cache = cache->pixels;
    }
    for (const format::FieldDescription& field : format->fields()) {
      const bool image = field.kind == format::FieldKind::kImage;
      recipe->schema.push_back({field.name, image ? recipe->chain->output() : ArraySpec{DType::kInt64, {}}});
    }
  }
  recipe->ragged = format::is_ragged(*format);
  recipe->mixture = std::move(mixture);
  recipe->dataset = std::move(dataset);
  recipe->format = std::move(format);
  return recipe;
}

std::vector<std::string> explain_images(const Recipe& recipe) {
  if (!recipe.chain) return {};
  if (!recipe.cache) return recipe.chain->explain();
  std::vector<std::string> lines = recipe.cache->preparation().explain();
  lines.push_back(recipe.cache->explain());
  for (std::string& line : recipe.rest->explain()) lines.push_back(std::move(line));
  return lines;
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

Schema schema_of_length(const Recipe& recipe, std::uint64_t length) {
  return with_lengths(recipe.schema, [length](std::size_t) { return length; });
}

std::uint64_t fingerprint_of(const format::Format& format, const plan::Mixture* mixture) {
  std::uint64_t value = format.fingerprint();
  if (mixture == nullptr) return value;
  for (const plan::Part& part : mixture->parts) value = base::mix64(value + std::bit_cast<std::uint64_t>(part.weight));
  return base::mix64(value + mixture->samples);
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
  record.most_bytes = memory::usual_sample_limit();
  if (auto read = format.read(sample, record); !read)
    return std::unexpected(with_place(std::move(read).error(), format, dataset, sample));
  for (std::size_t i = 0; i < format.fields().size(); ++i)
    if (format.fields()[i].kind == format::FieldKind::kImage && record.fields[i].pixels.data != nullptr)
      return config_error("encoded: the images of \"" + dataset + "\" are stored as pixels");
    else if (format.fields()[i].kind == format::FieldKind::kImage)
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
