// SPDX-License-Identifier: Apache-2.0
#pragma once

// An opened data set with the operations on its images, and the recipe compiled from them.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "feedline/dataset.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "format/folder/given_files.h"
#include "format/format.h"
#include "pipeline/pixel_cache.h"
#include "plan/order.h"
#include "transform/chain.h"

namespace feedline::pipeline {

// The stages before this one, for the consumer, which does not know them.
Result<std::shared_ptr<const format::Format>> open_source(const std::string& source, const OpenOptions& options);
std::shared_ptr<format::GivenFiles> given_files();
Result<std::shared_ptr<const format::Format>> array_source(std::vector<NamedArray> arrays);
Result<std::shared_ptr<const format::Format>> token_source(const std::vector<TokenFile>& files,
                                                           const TokenOptions& options);
// kConfig: their fields differ.
Result<std::shared_ptr<const format::Format>> joined_source(std::vector<std::shared_ptr<const format::Format>> parts);
// kConfig: weights that are no weights, or an epoch that is empty or too long.
Result<std::shared_ptr<const plan::Mixture>> make_mixture(const std::vector<std::uint64_t>& sizes,
                                                          const MixOptions& options);
Result<Inspection> inspect_source(const std::string& source, const OpenOptions& options);
// Where in a chain pixels are kept.
struct CachePoint {
  std::shared_ptr<PixelCache> pixels;
  std::size_t position = 0;  // operations before it
};
Result<void> check_operations(const std::vector<Operation>& operations, const std::optional<CachePoint>& cache);

// What loading a sample needs, checked and fixed. Immutable, thread-safe.
struct Recipe {
  std::string dataset;  // what the user passed to open(), for messages
  std::shared_ptr<const format::Format> format;
  std::shared_ptr<const transform::Chain> chain;  // the same for every image field; nullptr: samples are arrays
  std::shared_ptr<PixelCache> cache;              // nullptr: pixels are not kept
  std::shared_ptr<const transform::Chain> rest;   // of kept pixels: what follows the cache; gives what `chain` gives
  Schema schema;                                  // in the order of format->fields()
  bool ragged = false;                            // has the schema a field whose samples have different lengths?
  std::shared_ptr<const plan::Mixture> mixture;   // nullptr: every sample once an epoch
};

// kConfig: the operations do not fit, or the data set is empty.
Result<std::shared_ptr<const Recipe>> make_recipe(std::string dataset, std::shared_ptr<const format::Format> format,
                                                  std::shared_ptr<const plan::Mixture> mixture,
                                                  const std::vector<Operation>& operations, std::optional<DType> dtype,
                                                  Layout layout, const std::optional<CachePoint>& cache = {});
// What runs on images, one line each.
std::vector<std::string> explain_images(const Recipe& recipe);

// The recipe's schema with the extent of every ragged field: that of the longest of `samples`, or of all samples.
Schema schema_of(const Recipe& recipe, std::span<const std::uint64_t> samples);
Schema longest_schema(const Recipe& recipe);
Schema schema_of_length(const Recipe& recipe, std::uint64_t length);

// Of the samples and, in a mixture, of their weights.
std::uint64_t fingerprint_of(const format::Format& format, const plan::Mixture* mixture);

// The chain's drawing for an image of that size, in words; reads nothing.
Result<std::vector<DrawnValue>> draw_values(const Recipe& recipe, Size image, const base::SampleKey& key);
// Stored bytes of the first image field.
Result<std::vector<std::byte>> read_encoded(const format::Format& format, const std::string& dataset,
                                            std::uint64_t sample);

// `error` with every part of `where` that it does not name itself yet, and the data set.
Error with_place(Error error, const format::Format& format, const std::string& dataset, std::uint64_t sample);
Error with_place(Error error, const Recipe& recipe, std::uint64_t sample);

}  // namespace feedline::pipeline
