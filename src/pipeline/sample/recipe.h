// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything needed to load a sample of a source: the compiled operations and the schema.

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
#include "pipeline/sample/source.h"

namespace feedline::format {
class RecordFormat;
class RowFormat;
}  // namespace feedline::format

namespace feedline::device {
class Device;
class ImageDecoder;
}  // namespace feedline::device
namespace feedline::transform {
struct DeviceElements;
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

// The position of the cache in a chain.
struct CachePoint {
  std::shared_ptr<PixelCache> pixels;
  std::string where;         // "memory" or a path
  std::size_t position = 0;  // number of operations before it
};

// kConfig: see Dataset::cache. Touches neither memory nor disk.
Result<CachePoint> make_cache_point(const std::string& where, std::uint64_t budget, const Source& source,
                                    const std::vector<Operation>& operations);
// Finds or creates the storage of the pixels; does nothing if already open.
Result<void> open_cache(const CachePoint& cache);
// Returns true for "device", which only loaders support: they use cache_on().
bool is_on_device(const CachePoint& cache);
// kConfig: see PixelCache::on.
Result<CachePoint> cache_on(device::Device& device, const CachePoint& cache, const Source& source);

// The form of some fields' rows in a batch, if it is not the default of their kind.
struct Collation {
  BatchForm form = BatchForm::kDense;
  std::vector<std::string> fields;
  bool follows_map = false;  // after map(): may name fields that the function creates
  bool is_for_all = false;   // after map(): applies to all fields that support the form
};
// map, views: the function and the views before it, or nullptr. kConfig: see Dataset::collate.
Result<Collation> make_collation(BatchForm form, std::vector<std::string> fields, const Source& source,
                                 const MapPoint* map = nullptr, const ViewPoint* views = nullptr);

// kConfig: arguments out of range, operations that do not fit together, or that name missing fields or fields taken by
// an earlier function.
Result<void> check_operations(const Source& source, const std::vector<Operation>& operations,
                              const std::optional<CachePoint>& cache, const MapPoint* map = nullptr,
                              const ViewPoint* views = nullptr);

// A checked and final configuration. Immutable, thread-safe. Only code that includes the stages uses the members; the
// consumer holds a recipe and calls the functions below.
struct Recipe {
  std::string dataset;                                  // as passed to open(), for messages
  std::shared_ptr<const format::Format> format;         // the same as one of the next two; the other is nullptr:
  std::shared_ptr<const format::RecordFormat> records;  // samples are records, converted to rows by `paths`
  std::shared_ptr<const format::RowFormat> rows;        // samples are stored as rows
  std::vector<std::shared_ptr<const FieldPath>> paths;  // one per field, in the order of format->fields()
  std::vector<std::size_t> first_rows;                  // index of each path's first row in stored_schema
  std::shared_ptr<const PixelsPath> image;              // the first image without views; nullptr if there is none
  std::shared_ptr<const ViewsPath> views;               // nullptr: no image has views
  std::size_t image_field = 0;                          // index of the first image, with or without views
  std::size_t images = 0;                               // number of images
  std::vector<std::size_t> others;                      // the other fields, each after those it depends on
  std::shared_ptr<const TargetPath> boxes;              // boxes that determine the images' geometry; nullptr if none
  std::size_t boxes_field = 0;                          // their index
  std::shared_ptr<PixelCache> cache;                    // nullptr: pixels are not cached
  std::shared_ptr<device::ImageDecoder> decoder;        // the device's decoder; nullptr: the host decodes
  // For each entry of the schema: the device's remaining work on its images. Empty if no entry supports it.
  std::vector<std::shared_ptr<const transform::DeviceElements>> device_elements;
  Schema stored_schema;                          // in the order of format->fields(), with views in place of their image
  Schema schema;                                 // the same, or the result of `mapping`
  std::shared_ptr<const Mapping> mapping;        // nullptr: no function follows the paths
  bool names_fields = false;                     // explain() names each field because there are several
  bool ragged = false;                           // a field's samples have different lengths
  std::shared_ptr<const plan::Mixture> mixture;  // nullptr: every sample once per epoch
  std::shared_ptr<SeenDepth> seen_depth;         // of the source
};

// Work that a device does for a recipe's batches.
struct OnDevice {
  bool makes_elements = false;                    // converts bytes to floats, so threads need not
  std::shared_ptr<device::ImageDecoder> decoder;  // nullptr: the host decodes
};
// Returns true if the operations include decode(device="cuda").
bool decodes_there(const std::vector<Operation>& operations);
// kConfig: the operations request decoding on a device that does not support it.
Result<OnDevice> on_device(device::Device& device, const std::vector<Operation>& operations);

// Rows of a batch have one shape, unless they are lists. Single samples may differ.
enum class RowsFor : std::uint8_t { kBatches, kSingleSamples };

// Reads a sample if the dtype and shape of its arrays are not known otherwise, and calls the function of map with it.
// there: of the loader. kConfig: the operations do not fit together, they need images and the samples have none, or
// rows of a dense field differ in shape.
Result<std::shared_ptr<const Recipe>> make_recipe(const Source& source, const std::vector<Operation>& operations,
                                                  std::optional<DType> dtype, Layout layout,
                                                  const std::optional<CachePoint>& cache = {},
                                                  const std::vector<Collation>& collations = {},
                                                  const MapPoint* map = nullptr, const ViewPoint* views = nullptr,
                                                  const OnDevice& there = {}, RowsFor rows_for = RowsFor::kBatches);

std::vector<FieldRole> roles_of(const Source& source, const std::vector<Operation>& operations);

Source source_of(const Recipe& recipe);
bool is_one_image(const Recipe& recipe);  // Returns true if a sample is one image and nothing else.
Fidelity fidelity_of(const Recipe& recipe);
// Returns why the cache or decoding on a device has stopped working; nullopt if there is no error.
std::optional<Error> lasting_failure(const Recipe& recipe);
// Returns nullopt without a cache.
std::optional<CacheStats> cache_stats(const Recipe& recipe);
// Describes the operations on images, and the function after them, one per line.
std::vector<std::string> explain_images(const Recipe& recipe);
std::vector<std::string> explain_map(const Recipe& recipe);

// Returns the recipe's schema with the extent of every ragged field: that of the longest of `samples`, or of all
// samples.
Schema schema_of(const Recipe& recipe, std::span<const std::uint64_t> samples);
Schema longest_schema(const Recipe& recipe);
Schema schema_of_length(const Recipe& recipe, std::uint64_t length);

// Returns the values drawn for an image of that size as text; reads nothing.
Result<std::vector<DrawnValue>> draw_values(const Recipe& recipe, Size image, const base::SampleKey& key);

// Returns `error` with the missing parts of `where` and the dataset filled in.
Error with_location(Error error, const Recipe& recipe, std::uint64_t sample);

}  // namespace feedline::pipeline
