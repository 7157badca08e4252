// SPDX-License-Identifier: Apache-2.0
#pragma once

// What loading a sample of a source needs: the operations compiled, the schema known.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "feedline/dataset.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "pipeline/source.h"

namespace feedline::format {
class RecordFormat;
class RowFormat;
}  // namespace feedline::format

namespace feedline::device {
class Device;
class ImageDecoder;
}  // namespace feedline::device
namespace feedline::transform {
struct LeftElements;
}

namespace feedline::pipeline {

class FieldPath;
class MapPoint;
class PixelCache;
class PixelsPath;
class TargetPath;
class ViewsPath;
struct Mapping;
struct ViewPoint;

// Where in a chain pixels are kept.
struct CachePoint {
  std::shared_ptr<PixelCache> pixels;
  std::string where;         // "memory" or a path
  std::size_t position = 0;  // operations before it
};

// kConfig: see Dataset::cache. Touches neither memory nor disk.
Result<CachePoint> make_cache_point(const std::string& where, std::uint64_t budget, const Source& source,
                                    const std::vector<Operation>& operations);
// Finds or makes the place where the pixels are; again: does nothing.
Result<void> open_cache(const CachePoint& cache);
// Is it "device", which loaders alone have? Then what they make is made with cache_on().
bool is_on_device(const CachePoint& cache);
// kConfig: see PixelCache::on.
Result<CachePoint> cache_on(device::Device& device, const CachePoint& cache, const Source& source);

// How rows of some fields stand in a batch, where it is not by their kind.
struct Collation {
  BatchForm form = BatchForm::kDense;
  std::vector<std::string> fields;
  bool follows_map = false;  // so that fields may be those that a function makes, which are known with a recipe
  bool is_for_all = false;   // likewise: for all fields that can have the form
};
// map, views: the function and the views before it, or nullptr. kConfig: see Dataset::collate.
Result<Collation> make_collation(BatchForm form, std::vector<std::string> fields, const Source& source,
                                 const MapPoint* map = nullptr, const ViewPoint* views = nullptr);

// kConfig: arguments out of range, operations that do not fit one after the other, or for fields that there are not, or
// that a function has taken.
Result<void> check_operations(const Source& source, const std::vector<Operation>& operations,
                              const std::optional<CachePoint>& cache, const MapPoint* map = nullptr,
                              const ViewPoint* views = nullptr);

// Checked and fixed. Immutable, thread-safe. Its stages are for those who include them: the consumer holds a recipe,
// and asks the functions below.
struct Recipe {
  std::string dataset;                                  // what the user passed to open(), for messages
  std::shared_ptr<const format::Format> format;         // the same as one of the next two; the other is nullptr:
  std::shared_ptr<const format::RecordFormat> records;  // samples are records, of which `paths` make rows
  std::shared_ptr<const format::RowFormat> rows;        // samples are rows as they are
  std::vector<std::shared_ptr<const FieldPath>> paths;  // one per field, in the order of format->fields()
  std::vector<std::size_t> first_rows;                  // of each of them, in stored_schema
  std::shared_ptr<const PixelsPath> image;              // the first that is an image without views; nullptr: none is
  std::shared_ptr<const ViewsPath> views;               // nullptr: no image has views
  std::size_t image_field = 0;                          // place of the first image, with views or without
  std::size_t images = 0;                               // how many are
  std::vector<std::size_t> others;                      // the other fields, each behind those that it goes by
  std::shared_ptr<const TargetPath> boxes;  // those that the sample's images are drawn by; nullptr: there are none
  std::size_t boxes_field = 0;              // their place
  std::shared_ptr<PixelCache> cache;        // nullptr: pixels are not kept
  std::shared_ptr<device::ImageDecoder> decoder;  // what a device decodes images with; nullptr: it does not
  // Of each entry of the schema: what is left to be made of the bytes of its images. Empty where nothing can be.
  std::vector<std::shared_ptr<const transform::LeftElements>> left;
  Schema stored_schema;                          // in the order of format->fields(), views in their image's place
  Schema schema;                                 // the same, or what `mapping` makes of it
  std::shared_ptr<const Mapping> mapping;        // nullptr: no function is behind the paths
  bool names_fields = false;                     // explain() describes each field: there are several
  bool ragged = false;                           // has it a field whose samples have different lengths?
  std::shared_ptr<const plan::Mixture> mixture;  // nullptr: every sample once an epoch
  std::shared_ptr<SeenDepth> seen_depth;         // of the source
};

// What a device does for a recipe of its batches.
struct OnDevice {
  bool makes_elements = false;                    // floats of bytes, so that threads need not
  std::shared_ptr<device::ImageDecoder> decoder;  // nullptr: the host decodes
};
// decode(device="cuda") is among the operations.
bool decodes_there(const std::vector<Operation>& operations);
// kConfig: the operations have it decode images, and it does not.
Result<OnDevice> on_device(device::Device& device, const std::vector<Operation>& operations);

// Rows of a batch have one shape, unless they are lists. Single samples each have their own.
enum class RowsFor : std::uint8_t { kBatches, kSingleSamples };

// Reads a sample where its arrays' dtype and shape are not known otherwise, and calls the function of map with one.
// there: of a loader's. kConfig: the operations do not fit, or they are
// for images and the samples have none, or rows of a dense field have not one shape.
Result<std::shared_ptr<const Recipe>> make_recipe(const Source& source, const std::vector<Operation>& operations,
                                                  std::optional<DType> dtype, Layout layout,
                                                  const std::optional<CachePoint>& cache = {},
                                                  const std::vector<Collation>& collations = {},
                                                  const MapPoint* map = nullptr, const ViewPoint* views = nullptr,
                                                  const OnDevice& there = {}, RowsFor rows_for = RowsFor::kBatches);

std::vector<FieldRole> roles_of(const Source& source, const std::vector<Operation>& operations);

Source source_of(const Recipe& recipe);
bool is_one_image(const Recipe& recipe);  // has a sample one image and nothing else?
Fidelity fidelity_of(const Recipe& recipe);
// Why pixels can be kept no more, or decoded on a device; nullopt: nothing is wrong.
std::optional<Error> lasting_failure(const Recipe& recipe);
// What is kept; nullopt: no pixels are.
std::optional<CacheStats> cache_stats(const Recipe& recipe);
// What runs on images, and which function behind that, one line each.
std::vector<std::string> explain_images(const Recipe& recipe);
std::vector<std::string> explain_map(const Recipe& recipe);

// The recipe's schema with the extent of every ragged field: that of the longest of `samples`, or of all samples.
Schema schema_of(const Recipe& recipe, std::span<const std::uint64_t> samples);
Schema longest_schema(const Recipe& recipe);
Schema schema_of_length(const Recipe& recipe, std::uint64_t length);

// The chain's drawing for an image of that size, in words; reads nothing.
Result<std::vector<DrawnValue>> draw_values(const Recipe& recipe, Size image, const base::SampleKey& key);

// `error` with every part of `where` that it does not name itself yet, and the dataset.
Error with_place(Error error, const Recipe& recipe, std::uint64_t sample);

}  // namespace feedline::pipeline
