// SPDX-License-Identifier: Apache-2.0
#include "pipeline/recipe.h"

#include <algorithm>
#include <utility>

#include "format/format.h"
#include "pipeline/field_paths.h"
#include "pipeline/pixel_cache.h"
#include "pipeline/pixels_path.h"
#include "transform/chain.h"

namespace feedline::pipeline {
namespace {

// length(i): the extent of ragged field i.
template <typename Length>
Schema with_lengths(Schema schema, Length length) {
  for (std::size_t i = 0; i < schema.size(); ++i) {
    Shape& shape = schema[i].array.shape;
    if (schema[i].array.is_ragged() && !schema[i].is_late())
      shape = shape.with_first(static_cast<std::int64_t>(length(i)));
  }
  return schema;
}

// ---- the stages of make_recipe(), each of which knows what those before it have put there ----

void take_source(Recipe& recipe, const Source& source) {
  recipe.dataset = source.name();
  recipe.format = source.format();
  recipe.records = format::records_of(recipe.format);
  recipe.rows = format::rows_of(recipe.format);
  recipe.mixture = source.mixture();
  recipe.ragged = format::is_ragged(*recipe.format);
}

// Rows are what they are stored as.
Result<void> take_rows(Recipe& recipe, const std::vector<Operation>& operations, std::optional<DType> dtype) {
  if (!operations.empty())
    return config_error(std::string(name_of(operations.front())) + ": the samples of \"" + recipe.dataset +
                        "\" are arrays, and operations are for images");
  if (dtype) return config_error("dtype is of images: the samples of \"" + recipe.dataset + "\" are arrays");
  for (const format::FieldDescription& field : recipe.format->fields())
    recipe.schema.push_back({field.name, field.array});
  return {};
}

Result<void> take_fields(Recipe& recipe, const FieldStages& stages) {
  for (const format::FieldDescription& field : recipe.format->fields()) {
    FEEDLINE_TRY(auto path, make_field_path(field, stages));
    recipe.schema.push_back(path->spec());
    recipe.paths.push_back(std::move(path));
  }
  return {};
}

void find_images(Recipe& recipe) {
  for (std::size_t i = 0; i < recipe.paths.size(); ++i) {
    auto image = std::dynamic_pointer_cast<const PixelsPath>(recipe.paths[i]);
    if (!image) continue;
    if (recipe.images++ > 0) continue;
    recipe.image = std::move(image);
    recipe.image_field = i;
  }
}

}  // namespace

Result<CachePoint> make_cache_point(const std::string& where, std::uint64_t budget, const Source& source,
                                    const std::vector<Operation>& operations) {
  const auto records = format::records_of(source.format());
  if (!records)
    return config_error("cache: the samples of \"" + source.name() +
                        "\" are arrays, which are in memory or mapped already: a cache would be a second copy");
  FEEDLINE_TRY(auto pixels, PixelCache::make(where, budget, source.name(), *records, source.fingerprint(), operations));
  return CachePoint{std::move(pixels), where, operations.size()};
}

Result<void> open_cache(const CachePoint& cache) { return cache.pixels->open(); }

Result<void> check_operations(const std::vector<Operation>& operations, const std::optional<CachePoint>& cache) {
  FEEDLINE_CHECK_OK(transform::Chain::check(operations));
  for (std::size_t i = cache ? cache->position : operations.size(); i < operations.size(); ++i)
    if (std::holds_alternative<op::Decode>(operations[i]))
      return config_error("decode: must be the first operation; the cache before it keeps decoded pixels");
  return {};
}

Result<std::shared_ptr<const Recipe>> make_recipe(const Source& source, const std::vector<Operation>& operations,
                                                  std::optional<DType> dtype, Layout layout,
                                                  const std::optional<CachePoint>& cache) {
  auto recipe = std::make_shared<Recipe>();
  take_source(*recipe, source);
  if (recipe->rows) {
    FEEDLINE_CHECK_OK(take_rows(*recipe, operations, dtype));
    return recipe;
  }
  // from here on the samples are records
  FEEDLINE_CHECK_OK(check_operations(operations, cache));
  FEEDLINE_CHECK_OK(take_fields(*recipe, {operations, dtype, layout, cache ? &*cache : nullptr}));
  find_images(*recipe);
  if (cache) recipe->cache = cache->pixels;
  return recipe;
}

Source source_of(const Recipe& recipe) { return {recipe.dataset, recipe.format, recipe.mixture}; }

bool is_one_image(const Recipe& recipe) { return recipe.images == 1 && recipe.paths.size() == 1; }

Fidelity fidelity_of(const Recipe& recipe) {
  return recipe.image ? recipe.image->chain().fidelity() : Fidelity::kExact;
}

std::optional<Error> cache_failure(const Recipe& recipe) {
  return recipe.cache ? recipe.cache->failure() : std::nullopt;
}

std::optional<CacheStats> cache_stats(const Recipe& recipe) {
  if (!recipe.cache) return std::nullopt;
  return recipe.cache->stats();
}

std::vector<std::string> explain_images(const Recipe& recipe) {
  if (!recipe.image) return {};
  if (!recipe.cache) return recipe.image->chain().explain();
  std::vector<std::string> lines = recipe.cache->preparation()->explain();
  lines.push_back(recipe.cache->explain());
  for (std::string& line : recipe.image->rest()->explain()) lines.push_back(std::move(line));
  return lines;
}

Schema schema_of(const Recipe& recipe, std::span<const std::uint64_t> samples) {
  return with_lengths(recipe.schema, [&](std::size_t field) {
    std::uint64_t longest = 0;
    for (const std::uint64_t sample : samples) longest = std::max(longest, recipe.rows->length(sample, field));
    return longest;
  });
}

Schema longest_schema(const Recipe& recipe) {
  return with_lengths(recipe.schema, [&](std::size_t field) { return recipe.rows->longest(field); });
}

Schema schema_of_length(const Recipe& recipe, std::uint64_t length) {
  return with_lengths(recipe.schema, [length](std::size_t) { return length; });
}

Result<std::vector<DrawnValue>> draw_values(const Recipe& recipe, Size image, const base::SampleKey& key) {
  transform::Drawing drawing;
  if (!recipe.image) return config_error("draw: the samples have no image, which something would be drawn for");
  FEEDLINE_CHECK_OK(recipe.image->chain().draw(image, key, drawing));
  return recipe.image->chain().values(drawing);
}

Error with_place(Error error, const Recipe& recipe, std::uint64_t sample) {
  return with_place(std::move(error), *recipe.format, recipe.dataset, sample);
}

}  // namespace feedline::pipeline
