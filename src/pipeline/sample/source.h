// SPDX-License-Identifier: Apache-2.0
#pragma once

// The source of a Dataset: one opened source, or several that are mixed. The consumer uses this class, because the
// consumer must not depend on formats.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "feedline/inspection.h"
#include "feedline/loader.h"
#include "feedline/rows.h"
#include "feedline/sample_files.h"
#include "feedline/sources/volumes.h"

namespace feedline::format {
class Format;
class GivenFiles;
}  // namespace feedline::format

namespace feedline::plan {
struct Mixture;
}

namespace feedline::storage {
class Storage;
}

namespace feedline::pipeline {

class AudioHeaders;
class ForegroundIndex;
class ImageCheckpoints;
class VideoIndexes;

// The largest bit depth of any image read from a source so far, and whether the user was warned. Thread-safe.
class SeenDepth {
 public:
  void note(std::uint8_t depth);  // depth: of decode::Depth
  // Returns the name of the depth in the first call after an image with more than 8 bits was recorded, otherwise an
  // empty string.
  std::string take();

 private:
  std::atomic<std::uint8_t> deepest_ = 0;
  std::atomic<bool> is_taken_ = false;
};

// Immutable and thread-safe; copies share the opened source. Errors contain the dataset and the sample.
class Source {
 public:
  // Errors: as for feedline::open, arrays, tokens and mix.
  static Result<Source> open(const std::string& source, const OpenOptions& options);
  static Result<Source> arrays(std::vector<NamedArray> arrays);
  static Result<Source> rows(RowOptions options);
  // images: the source of each column of EpisodeImages.
  static Result<Source> episodes(EpisodeOptions options, const std::vector<Source>& images);
  static Result<Source> tokens(const std::vector<TokenFile>& files, const TokenOptions& options);
  static Result<Source> volumes(VolumeOptions options);
  static Result<Source> mix(const std::vector<Source>& parts, const MixOptions& options);

  // Selects some samples. kConfig: as for Dataset::subset.
  Result<Source> subset(std::vector<std::uint64_t> indices) const;
  // See Dataset::patches().
  Result<Source> patches(const PatchOptions& options) const;
  // Divides all samples into parts. kConfig: as for Dataset::split.
  Result<std::vector<Source>> split(const std::vector<std::uint64_t>& counts, std::uint64_t seed,
                                    const std::vector<std::int64_t>& classes) const;

  Source(std::string name, std::shared_ptr<const format::Format> format,
         std::shared_ptr<const plan::Mixture> mixture = nullptr)
      : name_(std::move(name)), format_(std::move(format)), mixture_(std::move(mixture)) {}

  const std::string& name() const { return name_; }  // as passed to open(), for messages
  std::uint64_t size() const;                        // samples
  std::string_view format_name() const;
  const std::vector<std::string>& classes() const;
  std::vector<std::uint64_t> shard_ends() const;
  // The parts of the shards that shuffle="shards" permutes, or the shards themselves; and their name, "row groups".
  std::vector<std::uint64_t> block_ends() const;
  std::string_view block_name() const;
  std::vector<UnopenedColumn> unopened() const;
  std::vector<FieldRemark> remarks() const;
  std::string summary() const;
  std::string key(std::uint64_t sample) const;
  // Returns a fingerprint of the samples, including their weights in a mixture.
  std::uint64_t fingerprint() const;
  bool is_mixture() const { return mixture_ != nullptr; }
  std::uint64_t positions() const;  // samples of an epoch, which a mixture may set

  // kConfig: `sample` is out of range.
  Result<void> check_index(std::uint64_t sample) const;
  // See Dataset::files and Dataset::encoded.
  Result<SampleFiles> files(std::uint64_t sample) const;
  Result<SampleFileSizes> file_sizes(std::uint64_t sample) const;
  Result<std::vector<std::byte>> encoded(std::uint64_t sample) const;
  // See Dataset::numbers and Dataset::values.
  Result<std::vector<std::int64_t>> numbers(const std::string& field) const;
  Result<std::vector<std::vector<StoredValue>>> values(const std::vector<std::string>& fields) const;
  Result<FieldValues> field_values(const std::string& field) const;
  Result<Inspection> inspect() const;

  // For code that reads samples.
  const std::shared_ptr<const format::Format>& format() const { return format_; }
  const std::shared_ptr<const plan::Mixture>& mixture() const { return mixture_; }
  const std::shared_ptr<SeenDepth>& seen_depth() const { return seen_depth_; }
  const std::shared_ptr<ImageCheckpoints>& checkpoints() const { return checkpoints_; }  // nullptr: disabled
  const std::shared_ptr<VideoIndexes>& videos() const { return videos_; }                // nullptr: no videos
  const std::shared_ptr<AudioHeaders>& audio_headers() const { return audio_headers_; }  // nullptr: not stored
  const std::shared_ptr<ForegroundIndex>& foreground() const { return foreground_; }     // nullptr: no volumes

 private:
  // Opens the stored indexes of videos and audio files; directory: as for VideoIndexes::of_source.
  void find_media_indexes(const storage::Storage& storage, const std::string& source, const std::string& directory);

  std::string name_;
  std::shared_ptr<const format::Format> format_;
  std::shared_ptr<const plan::Mixture> mixture_;  // nullptr: every sample once per epoch
  std::vector<std::string> notes_;                // what happened to cached indexes
  friend class GivenSource;
  std::shared_ptr<SeenDepth> seen_depth_ = std::make_shared<SeenDepth>();
  std::shared_ptr<ImageCheckpoints> checkpoints_;
  std::shared_ptr<VideoIndexes> videos_;
  std::shared_ptr<AudioHeaders> audio_headers_;
  std::shared_ptr<ForegroundIndex> foreground_;
};

// See feedline::GivenFiles. Thread-safe; copies share the files.
class GivenSource {
 public:
  explicit GivenSource(std::string name);
  Source source() const;
  std::uint64_t add(std::vector<GivenImage> files) const;
  void keep(std::shared_ptr<const void> owner) const;
  void forget(std::uint64_t first) const;
  void forget_all() const;

 private:
  std::string name_;
  std::shared_ptr<format::GivenFiles> files_;
  std::shared_ptr<ImageCheckpoints> checkpoints_;
};

// Makes the checkpoints of all JPEGs in `threads` threads, and writes them. Samples that cannot be read or decoded are
// left out.
Result<CheckpointStats> make_checkpoints(const Source& source, int threads);
// See feedline::inspect.
Result<Inspection> inspect_source(const std::string& source, const OpenOptions& options);
// See feedline::read_table.
Result<TableCells> read_table(const std::string& source);
std::span<const std::string_view> label_names();

// Returns `error` after adding the dataset and the missing parts of its location.
Error with_location(Error error, const format::Format& format, const std::string& dataset, std::uint64_t sample);

}  // namespace feedline::pipeline
