// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/rows.h"
#include "format/format.h"

namespace feedline::format {

// A format whose samples are rows, or windows of rows, of recorded episodes.
class EpisodeFormat final : public RecordFormat {
 public:
  // Wraps the storage of the videos to add a cache or test conditions.
  using Wrap = std::function<Result<std::shared_ptr<const storage::Storage>>(std::shared_ptr<const storage::Storage>)>;
  // images: the format of each column of EpisodeImages, in their order. kConfig: see feedline::episodes().
  static Result<std::shared_ptr<const RecordFormat>> open(EpisodeOptions options,
                                                          std::vector<std::shared_ptr<const RecordFormat>> images,
                                                          const Wrap& wrap);

  std::string_view name() const override { return options_.format; }
  std::uint64_t size() const override { return static_cast<std::uint64_t>(options_.ends.back()); }
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return no_classes_; }
  std::vector<UnopenedColumn> unopened() const override { return options_.unopened; }
  std::string summary() const override;
  ShuffleBlocks shuffle_blocks() const override;
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  bool find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                  std::string& room) const override;
  std::shared_ptr<const storage::Storage> storage() const override { return storage_; }
  Where where(std::uint64_t index) const override;
  Where where_field(std::uint64_t index, std::size_t field) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

 private:
  struct Episode {
    std::size_t number;
    std::int64_t begin, end;  // rows
    std::uint64_t row_at(std::uint64_t index, std::int64_t step) const;
    bool has(std::uint64_t index, std::int64_t step) const;
  };
  // The images of a column.
  struct Stored {
    std::shared_ptr<const RecordFormat> format;
    std::size_t field = 0;
  };

  EpisodeFormat(EpisodeOptions options, std::vector<FieldDescription> fields, std::vector<Stored> stored);
  Episode episode_of(std::uint64_t index) const;
  std::uint64_t make_fingerprint() const;
  std::string object_of(const EpisodeVideos& videos, std::size_t episode) const;
  Result<void> read_images(const Stored& stored, const EpisodeImages& column, std::uint64_t index,
                           memory::Record& record, std::size_t& used, memory::Record::Field& field) const;

  const EpisodeOptions options_;
  const std::vector<FieldDescription> fields_;
  const std::vector<Stored> stored_;  // one for each column; without a format for columns that are not images
  const std::vector<std::string> no_classes_;
  std::shared_ptr<const storage::Storage> storage_;
  std::string folder_;  // the storage's name of the dataset's folder
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
