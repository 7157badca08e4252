// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds properties of a dataset's records that opening needs and that only the records show.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "format/tfrecord/feature_choice.h"
#include "format/tfrecord/record_shard.h"

namespace feedline::format {

using RecordShards = std::vector<std::unique_ptr<RecordShard>>;

struct ChosenFeatures {
  std::vector<FeatureChoice> fields;
  std::vector<UnopenedColumn> unopened;  // from the first records
};

// Chooses the fields of the specs based on the dataset's first records, or on all records if samples may lack a field
// and the first ones have none of its features. Ignores damaged records, unless all are damaged.
Result<ChosenFeatures> choose_fields(const RecordShards& shards, const OpenOptions& options);

// Reads all records and returns, per shard, those that lack no field. Includes unreadable records; reading them reports
// the error. Sets `may_be_absent` of fields that a record lacks.
Result<std::vector<std::vector<std::uint32_t>>> whole_records(const RecordShards& shards,
                                                              std::vector<FeatureChoice>& fields, bool is_remote);

}  // namespace feedline::format
