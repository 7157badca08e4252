// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/tfrecord_format.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/shards/each_shard.h"
#include "format/shards/record_keys.h"
#include "format/tfrecord/feature_files.h"
#include "format/tfrecord/record_frame.h"
#include "format/tfrecord/record_survey.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

std::string stem_of(const std::string& shard) {
  std::string stem = shard.substr(shard.rfind('/') + 1);
  if (const std::size_t begin = stem.find(".tfrec"); begin != stem.npos && begin > 0) {
    const std::size_t end = std::min(stem.find_first_of(".-", begin + 1), stem.size());
    stem.erase(begin, end - begin);  // also for "train.tfrecord-00000-of-00010"
  }
  for (const std::string_view end : {".gz", ".zlib"})
    if (stem.ends_with(end)) stem.resize(stem.size() - end.size());
  return stem;
}

}  // namespace

std::vector<std::string> stems_of(const std::vector<std::string>& shards) {
  std::vector<std::string> names;
  for (const std::string& shard : shards) names.push_back(stem_of(shard));
  return key_stems(std::move(names));
}

Result<std::shared_ptr<const RecordFormat>> TfrecordFormat::open(const std::string& source,
                                                                 const std::vector<std::string>& names,
                                                                 const OpenOptions& options) {
  const RecordIndexStore indexes(options.index_directory, options.notes);
  RecordShard::Scans scans(scans_at_once());
  const RecordShard::Opening opening{indexes, scans, options.listing_age.count() == 0};
  const auto open_one = [&](std::size_t i) {
    auto shard = RecordShard::open(options.storage, names[i], opening);
    if (!shard && shard.error().where.shard.empty()) shard.error().where.shard = names[i];
    return shard;
  };
  auto shards = each_shard<std::unique_ptr<RecordShard>>(names.size(), open_one,
                                                         shards_side_by_side(options.storage->is_remote()));
  if (!shards) return std::unexpected(std::move(shards).error());
  auto fields = choose_fields(*shards, options);
  if (!fields) return std::unexpected(std::move(fields).error());
  std::shared_ptr<TfrecordFormat> format(new TfrecordFormat(source, options, std::move(*shards)));
  format->unopened_ = std::move(fields->unopened);
  if (auto taken = format->take_samples(std::move(fields->fields)); !taken)
    return std::unexpected(std::move(taken).error());
  if (format->size() > 0) return format;
  return config_error("missing=\"skip\" omits all samples: each lacks one of the fields");
}

TfrecordFormat::TfrecordFormat(std::string source, OpenOptions options, Shards shards)
    : ShardedRecordFormat(std::move(source), std::move(options)), shards_(std::move(shards)) {
  std::vector<std::string> names;
  for (const auto& shard : shards_) names.push_back(shard->name());
  stems_ = stems_of(names);
  expect(shards_);
}

// Selects the samples according to options_.missing.
Result<void> TfrecordFormat::take_samples(std::vector<FeatureChoice> fields) {
  const bool skips = options_.missing == Missing::kSkip;
  if (options_.missing != Missing::kError) {
    FEEDLINE_TRY(whole_, whole_records(shards_, fields, options_.storage->is_remote()));
  }
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const std::uint64_t records = shards_[i]->index().records(), taken = skips ? whole_[i].size() : records;
    left_out_ += records - taken;
    ends_.push_back(end += taken);
  }
  if (left_out_ == 0) whole_.clear();
  for (FeatureChoice& field : fields) {
    if (skips) field.description.may_be_absent = false;
    fields_.push_back(field.description);
  }
  reader_.emplace(std::move(fields));
  fingerprint_ = compute_fingerprint();
  return {};
}

// Does not depend on the names of shards, so that copies of the dataset have the same fingerprint.
std::uint64_t TfrecordFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  for (const FeatureChoice& field : reader_->fields()) {
    fingerprint.add(field.description.name);
    fingerprint.add(static_cast<std::uint64_t>(field.description.kind));
    for (const std::string& feature : field.alternatives) fingerprint.add(feature);
  }
  if (options_.missing != Missing::kError)
    fingerprint.add(options_.missing == Missing::kSkip ? std::string_view("skip") : std::string_view("none"));
  for (const auto& shard : shards_) fingerprint.add(shard->index().ends());
  for (const auto& records : whole_) fingerprint.add(std::as_bytes(std::span(records)));
  return fingerprint.value();
}

TfrecordFormat::Location TfrecordFormat::find_sample(std::uint64_t index) const {
  const auto [shard, sample] = position_of(index);
  return {shards_[shard].get(), shard, whole_.empty() ? sample : whole_[shard][sample]};
}

Where TfrecordFormat::where(std::uint64_t index) const {
  const Location location = find_sample(index);
  Where where;
  where.dataset = source_;
  where.shard = location.shard->name();
  where.key = record_key(stems_[location.number], location.record);
  where.record = index;
  where.offset = location.shard->index().location(location.record).offset;
  return where;
}

void TfrecordFormat::forget(std::size_t shard) const {
  shards_[shard]->forget_index(RecordIndexStore(options_.index_directory, nullptr));
}

Result<Bytes> TfrecordFormat::fetch(const Location& location, memory::Record& record) const {
  record.pin.reset();
  FEEDLINE_TRY(const auto reader, open_shards_.reader(*location.shard));
  return location.shard->read(reader, location.record, record);
}

Result<void> TfrecordFormat::accept_data(Bytes data, memory::Record& record) const {
  auto read = reader_->read(data, record);
  if (!read) return std::unexpected(std::move(read).error().error);
  record.bytes_read = data.size() + kRecordFrameBytes;
  return {};
}

Result<void> TfrecordFormat::read(std::uint64_t index, memory::Record& record) const {
  const auto data = fetch(find_sample(index), record);
  auto done = data ? accept_data(*data, record) : std::unexpected(data.error());
  if (!done) return at(index, std::move(done).error());
  return done;
}

Result<void> TfrecordFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  const Location location = find_sample(index);
  const RecordIndex::Location range = location.shard->index().location(location.record);
  FEEDLINE_TRY(auto reader, open_shards_.owned_reader(*location.shard));
  if (const auto view = reader->view(range.offset, 0); view && *view) return {};
  pieces.push_back({std::move(reader), {}, range.offset, range.bytes});
  return {};
}

Result<void> TfrecordFormat::accept(std::uint64_t index, std::span<const Bytes> pieces, memory::Record& record) const {
  record.pin.reset();
  const Location location = find_sample(index);
  FEEDLINE_CHECK(pieces.front().size() == location.shard->index().location(location.record).bytes);
  const auto data = location.shard->data_of(location.record, pieces.front());
  auto done = data ? accept_data(*data, record) : std::unexpected(data.error());
  if (!done) return at(index, std::move(done).error());
  return done;
}

Result<SampleFiles> TfrecordFormat::files(std::uint64_t index) const {
  const Location location = find_sample(index);
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  const auto data = fetch(location, record);
  auto files = data ? files_of(*data, reader_->fields()) : std::unexpected(data.error());
  if (!files) return at(index, std::move(files).error());
  return SampleFiles{record_key(stems_[location.number], location.record), std::nullopt, std::move(*files)};
}

}  // namespace feedline::format
