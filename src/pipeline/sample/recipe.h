// SPDX-License-Identifier: Apache-2.0
#pragma once

// The information for loading samples from a source: the compiled operations and the schema.

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

class AudioHeaders;
class DeepPath;
class FieldPath;
class ForegroundIndex;
class MapPoint;
class PixelCache;
class PixelsPath;
class TargetPath;
class VideoIndexes;
class ViewsPath;
struct Mapping;
struct ViewPoint;

// The position of the cache in a chain.
struct CachePoint {
  std::shared_ptr<PixelCache> pixels;
  std::string where;         // "memory" or a path
  std::size_t position = 0;  // number of operations before it
};

// kConfig: see Dataset::cache. Accesses neither memory nor disk.
Result<CachePoint> make_cache_point(const std::string& where, std::uint64_t budget, const Source& source,
                                    const std::vector<Operation>& operations);
// Opens or creates the storage of the pixels; does nothing if it is already open.
Result<void> open_cache(const CachePoint& cache);
// Returns whether the cache is on a device, which only loaders support; they call cache_on().
bool is_on_device(const CachePoint& cache);
// kConfig: see PixelCache::on.
Result<CachePoint> cache_on(device::Device& device, const CachePoint& cache, const Source& source);

// The BatchForm of some fields, if it is not the default for their kind.
struct Collation {
  BatchForm form = BatchForm::kDense;
  std::vector<std::string> fields;
  bool follows_map = false;  // after map(): may name fields that the function creates
  bool is_for_all = false;   // after map(): applies to all fields that support the form
};
// map, views: the function and the views that precede it, or nullptr. kConfig: see Dataset::collate.
Result<Collation> make_collation(BatchForm form, std::vector<std::string> fields, const Source& source,
                                 const MapPoint* map = nullptr, const ViewPoint* views = nullptr);

// kConfig: arguments are out of range, operations conflict, or operations name fields that do not exist or that are
// arguments of an earlier function.
Result<void> check_operations(const Source& source, const std::vector<Operation>& operations,
                              const std::optional<CachePoint>& cache, const MapPoint* map = nullptr,
                              const ViewPoint* views = nullptr);

// A configuration that has been checked and does not change. Immutable, thread-safe. Only code that may include the
// stages uses the members; the consumer uses the functions below.
struct Recipe {
  std::string dataset;                                  // as passed to open(), for messages
  std::shared_ptr<const format::Format> format;         // the same as one of the next two; the other is nullptr:
  std::shared_ptr<const format::RecordFormat> records;  // samples are records, converted to rows by `paths`
  std::shared_ptr<const format::RowFormat> rows;        // samples are stored as rows
  std::vector<std::shared_ptr<const FieldPath>> paths;  // one per field, in the order of format->fields()
  std::vector<std::size_t> first_rows;                  // index of each path's first row in stored_schema
  std::shared_ptr<const PixelsPath> image;              // the first image without views; nullptr if there is none
  std::shared_ptr<const ViewsPath> views;               // nullptr: no image has views
  std::shared_ptr<const DeepPath> deep;                 // the first image with stored values; nullptr if there is none
  std::size_t deep_field = 0;                           // its index
  std::size_t image_field = 0;                          // index of the first image, with or without views
  std::size_t images = 0;                               // number of images
  std::vector<std::size_t> others;                      // the other fields, each after those it depends on
  std::shared_ptr<const TargetPath> boxes;              // boxes that determine the images' geometry; nullptr if none
  std::size_t boxes_field = 0;                          // their index
  std::shared_ptr<PixelCache> cache;                    // nullptr: pixels are not cached
  std::shared_ptr<device::ImageDecoder> decoder;        // the device's decoder; nullptr: the host decodes
  // For each entry of the schema: the work on its images that is left to the device. Empty if no entry leaves work to
  // the device.
  std::vector<std::shared_ptr<const transform::DeviceElements>> device_elements;
  Schema stored_schema;                          // in the order of format->fields(), with views in place of their image
  Schema schema;                                 // the same, or the result of `mapping`
  std::shared_ptr<const Mapping> mapping;        // nullptr: no function follows the paths
  bool names_fields = false;                     // explain() names each field because there are several
  bool ragged = false;                           // a field's samples have different lengths
  bool gathers = false;                          // records->gather() fills all fields of many rows
  std::shared_ptr<const plan::Mixture> mixture;  // nullptr: every sample once per epoch
  std::shared_ptr<SeenDepth> seen_depth;         // of the source
  std::shared_ptr<VideoIndexes> videos;          // of the source
  std::shared_ptr<AudioHeaders> audio_headers;   // of the source; nullptr: not stored
  std::shared_ptr<ForegroundIndex> foreground;   // of the source's label volumes; nullptr: there are no volumes
  bool has_clips = false;                        // clips of videos: only parts of files are read
  std::shared_ptr<ImageCheckpoints> checkpoints;  // of the source; nullptr: JPEGs are decoded from their start
};

// The work that a device does for a recipe's batches.
struct OnDevice {
  bool makes_elements = false;                    // converts bytes to floats, so threads need not
  std::shared_ptr<device::ImageDecoder> decoder;  // nullptr: the host decodes
};
// Returns whether the operations contain decode(device="cuda").
bool decodes_there(const std::vector<Operation>& operations);
// kConfig: the operations request decoding on a device that does not support it.
Result<OnDevice> on_device(device::Device& device, const std::vector<Operation>& operations);

// All rows in a batch have the same shape, unless they are lists. The shapes of single samples may differ.
enum class RowsFor : std::uint8_t { kBatches, kSingleSamples };

// Reads a sample if the dtype and shape of its arrays are not known otherwise, and calls the function of map with it.
// there: the work that the loader's device does. kConfig: the operations conflict, they need images and the samples
// have none, or rows of a dense field differ in shape.
Result<std::shared_ptr<const Recipe>> make_recipe(const Source& source, const std::vector<Operation>& operations,
                                                  std::optional<DType> dtype, Layout layout,
                                                  const std::optional<CachePoint>& cache = {},
                                                  const std::vector<Collation>& collations = {},
                                                  const MapPoint* map = nullptr, const ViewPoint* views = nullptr,
                                                  const OnDevice& there = {}, RowsFor rows_for = RowsFor::kBatches);

std::vector<FieldRole> roles_of(const Source& source, const std::vector<Operation>& operations);

Source source_of(const Recipe& recipe);
bool is_one_image(const Recipe& recipe);  // Returns whether a sample consists of exactly one image.
Fidelity fidelity_of(const Recipe& recipe);
// Returns the reason if the cache or decoding on a device has stopped working, else nullopt.
std::optional<Error> lasting_failure(const Recipe& recipe);
// Returns nullopt if there is no cache.
std::optional<CacheStats> cache_stats(const Recipe& recipe);
// Returns nullopt if no image has checkpoints.
std::optional<CheckpointStats> checkpoint_stats(const Recipe& recipe);
// Returns nullopt if no block was decompressed.
std::optional<BlockStats> block_stats(const Recipe& recipe);
// Stores new checkpoints, at the end of an epoch.
void write_checkpoints(const Recipe& recipe);
// Describes the operations on images, and the function after them, one per line.
std::vector<std::string> explain_images(const Recipe& recipe);
std::vector<std::string> explain_map(const Recipe& recipe);

// Returns the number of rows that a thread fills by one call to the format; 1 if it fills them one by one.
std::uint64_t rows_at_once(const Recipe& recipe);

// Returns the recipe's schema, in which each ragged field has the extent of the longest of `samples`, or of all
// samples.
Schema schema_of(const Recipe& recipe, std::span<const std::uint64_t> samples);
Schema longest_schema(const Recipe& recipe);
Schema schema_of_length(const Recipe& recipe, std::uint64_t length);

// Returns the values drawn for an image of this size, as text; reads no data.
Result<std::vector<DrawnValue>> draw_values(const Recipe& recipe, Size image, const base::SampleKey& key);

// Returns `error` after adding the dataset and the missing parts of its location.
Error with_location(Error error, const Recipe& recipe, std::uint64_t sample);

}  // namespace feedline::pipeline
