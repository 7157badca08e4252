// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/record_survey.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "format/shards/each_shard.h"
#include "format/tfrecord/feature_reader.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// Calls `take` with the number and data of each record of a shard until `take` returns false. For damaged records,
// passes the error instead of the data. Fails if the storage fails.
template <typename Take>
Result<void> each_record(const RecordShard& shard, Take&& take) {
  if (shard.index().records() == 0) return {};
  FEEDLINE_TRY(const auto opened, shard.reader());
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  for (std::uint64_t i = 0; i < shard.index().records(); ++i) {
    auto data = shard.read(opened.reader, i, record);
    if (!data && data.error().code != ErrorCode::kData) return std::unexpected(std::move(data).error());
    if (!take(i, data)) break;
  }
  shard.close();  // the shard may not be read again soon
  return {};
}

// Calls `take` for the first `most` records. If these records are small, reads all of them at once, because reading
// them separately from a remote shard would need one request per record. Returns the number of calls.
template <typename Take>
Result<std::uint64_t> each_of_first(const RecordShard& shard, std::uint64_t most, Take&& take) {
  constexpr std::uint64_t kAtOnce = std::uint64_t{8} << 20;
  const std::uint64_t count = std::min(shard.index().records(), most);
  const std::uint64_t bytes = count == 0 ? 0 : shard.index().ends()[count - 1];
  std::uint64_t taken = 0;
  const auto take_one = [&](const Result<Bytes>& data) { return take(data), ++taken < count; };
  if (bytes > kAtOnce) {
    FEEDLINE_CHECK_OK(each_record(shard, [&](std::uint64_t, const Result<Bytes>& data) { return take_one(data); }));
    return taken;
  }
  if (count == 0) return taken;
  FEEDLINE_TRY(const auto opened, shard.reader());
  memory::ByteBuffer buffer;
  const auto room = buffer.resize(static_cast<std::size_t>(bytes));
  FEEDLINE_TRY(const std::size_t got, opened.reader->read_at(0, room));
  if (got < room.size())
    return storage_error("the file ends at byte " + std::to_string(got) + ", inside a record: the file became shorter",
                         0);
  for (bool goes_on = true; goes_on;) {
    const RecordIndex::Location location = shard.index().location(taken);
    goes_on = take_one(shard.data_of(
        taken, room.subspan(static_cast<std::size_t>(location.offset), static_cast<std::size_t>(location.bytes))));
  }
  shard.close();  // the shard may not be read again soon
  return taken;
}

// Collects the features of the first records, which are enough to show whether a feature always has one value.
Result<FeatureSurvey> survey_first(const RecordShards& shards) {
  constexpr std::uint64_t kLookedAt = 32;
  FeatureSurvey survey;
  std::optional<Error> damage;
  std::uint64_t looked_at = 0;
  for (const auto& shard : shards) {
    if (looked_at >= kLookedAt) break;
    const auto take = [&](const Result<Bytes>& data) {
      if (!data && !damage) damage = data.error();
      if (data) survey.add(*data);
    };
    FEEDLINE_TRY(const std::uint64_t taken, each_of_first(*shard, kLookedAt - looked_at, take));
    looked_at += taken;
    if (damage && damage->where.shard.empty()) damage->where.shard = shard->name();
  }
  if (survey.records() > 0) return survey;
  if (damage) return std::unexpected(std::move(*damage));
  return config_error(looked_at == 0 ? "the TFRecord files have no records"
                                     : "the records are not tf.train.Example, nor any other type that this version "
                                       "reads");
}

Result<FeatureSurvey> survey_all(const RecordShards& shards) {
  FEEDLINE_TRY(const auto surveys,
               each_shard<FeatureSurvey>(shards.size(), [&](std::size_t i) -> Result<FeatureSurvey> {
                 FeatureSurvey survey;
                 const auto take = [&](std::uint64_t, const Result<Bytes>& data) {
                   if (data) survey.add(*data);
                   return true;
                 };
                 FEEDLINE_CHECK_OK(each_record(*shards[i], take));
                 return survey;
               }));
  FeatureSurvey all;
  for (const FeatureSurvey& survey : surveys) all.add(survey);
  return all;
}

struct Whole {
  std::vector<std::uint32_t> records;
  std::vector<bool> lacking;  // per field: whether a record lacks it
};

Result<Whole> look_for_gaps(const RecordShard& shard, const FeatureReader& reader) {
  Whole whole{{}, std::vector<bool>(reader.fields().size())};
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(each_record(shard, [&](std::uint64_t number, const Result<Bytes>& data) {
    bool lacks = false;
    if (data && reader.read(*data, record))
      for (std::size_t field = 0; field < whole.lacking.size(); ++field)
        if (record.fields[field].absent) lacks = whole.lacking[field] = true;
    if (!lacks) whole.records.push_back(static_cast<std::uint32_t>(number));
    return true;
  }));
  return whole;
}

std::vector<UnopenedColumn> unopened_features(const std::vector<FeatureChoice>& fields, const FeatureSurvey& survey,
                                              bool are_default) {
  std::vector<UnopenedColumn> left;
  for (const auto& [name, seen] : survey.features()) {
    const auto is_of = [&](const FeatureChoice& field) { return std::ranges::count(field.alternatives, name) > 0; };
    if (seen.records == 0 || std::ranges::any_of(fields, is_of)) continue;
    const std::string holds = (seen.is_list ? "steps of " : "") + std::string(name_of(seen.kind));
    left.push_back({name, holds, are_default ? "not a default field" : "not in fields=", name});
  }
  return left;
}

}  // namespace

Result<ChosenFeatures> choose_fields(const RecordShards& shards, const OpenOptions& options) {
  FEEDLINE_TRY(const FeatureSurvey first, survey_first(shards));
  auto fields = choose_features(options.fields, first);
  if (fields) {
    auto unopened = unopened_features(*fields, first, options.fields.empty());
    return ChosenFeatures{std::move(*fields), std::move(unopened)};
  }
  if (options.missing == Missing::kError) return std::unexpected(std::move(fields).error());
  FEEDLINE_TRY(const FeatureSurvey all, survey_all(shards));
  FEEDLINE_TRY(auto chosen, choose_features(options.fields, all));
  auto unopened = unopened_features(chosen, all, options.fields.empty());
  return ChosenFeatures{std::move(chosen), std::move(unopened)};
}

Result<std::vector<std::vector<std::uint32_t>>> whole_records(const RecordShards& shards,
                                                              std::vector<FeatureChoice>& fields, bool is_remote) {
  std::vector<FeatureChoice> lenient = fields;
  for (FeatureChoice& field : lenient) field.description.may_be_absent = true;
  const FeatureReader reader(std::move(lenient));
  FEEDLINE_TRY(auto found, each_shard<Whole>(
                               shards.size(), [&](std::size_t i) { return look_for_gaps(*shards[i], reader); },
                               shards_side_by_side(is_remote)));
  std::vector<std::vector<std::uint32_t>> records;
  for (Whole& whole : found) {
    records.push_back(std::move(whole.records));
    for (std::size_t field = 0; field < fields.size(); ++field)
      if (whole.lacking[field]) fields[field].description.may_be_absent = true;
  }
  return records;
}

}  // namespace feedline::format
