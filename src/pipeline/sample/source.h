// SPDX-License-Identifier: Apache-2.0
#pragma once

// The source of a Dataset: an opened source, or several mixed ones. Used by the consumer, which does not depend on
// formats.

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
#include "feedline/rows.h"
#include "feedline/sample_files.h"

namespace feedline::format {
class Format;
class GivenFiles;
}  // namespace feedline::format

namespace feedline::plan {
struct Mixture;
}

namespace feedline::pipeline {

// The maximum image depth seen in a source so far, and whether the user was warned. Thread-safe.
class SeenDepth {
 public:
  void note(std::uint8_t depth);  // depth: of decode::Depth
  // Returns the depth's name once after an image deeper than 8 bits was noted; else an empty string.
  std::string take();

 private:
  std::atomic<std::uint8_t> deepest_ = 0;
  std::atomic<bool> is_taken_ = false;
};

// Immutable and thread-safe; copies share the opened source. Errors name the dataset and the sample.
class Source {
 public:
  // Errors: as feedline::open, arrays, tokens and mix.
  static Result<Source> open(const std::string& source, const OpenOptions& options);
  static Result<Source> arrays(std::vector<NamedArray> arrays);
  static Result<Source> rows(RowOptions options);
  static Result<Source> tokens(const std::vector<TokenFile>& files, const TokenOptions& options);
  static Result<Source> mix(const std::vector<Source>& parts, const MixOptions& options);

  // Selects some samples. kConfig: as Dataset::subset.
  Result<Source> subset(std::vector<std::uint64_t> indices) const;
  // Divides all samples into parts. kConfig: as Dataset::split.
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
  std::vector<UnopenedColumn> unopened() const;
  std::vector<FieldRemark> remarks() const;
  std::string summary() const;
  std::string key(std::uint64_t sample) const;
  // The samples' fingerprint, including their weights in a mixture.
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

  // For the stages that read.
  const std::shared_ptr<const format::Format>& format() const { return format_; }
  const std::shared_ptr<const plan::Mixture>& mixture() const { return mixture_; }
  const std::shared_ptr<SeenDepth>& seen_depth() const { return seen_depth_; }

 private:
  std::string name_;
  std::shared_ptr<const format::Format> format_;
  std::shared_ptr<const plan::Mixture> mixture_;  // nullptr: every sample once per epoch
  std::vector<std::string> notes_;                // what happened to cached indexes
  std::shared_ptr<SeenDepth> seen_depth_ = std::make_shared<SeenDepth>();
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
};

// See feedline::inspect.
Result<Inspection> inspect_source(const std::string& source, const OpenOptions& options);
// See feedline::read_table.
Result<TableCells> read_table(const std::string& source);
std::span<const std::string_view> label_names();

// Returns `error` with the missing parts of `where` and the dataset filled in.
Error with_location(Error error, const format::Format& format, const std::string& dataset, std::uint64_t sample);

}  // namespace feedline::pipeline
