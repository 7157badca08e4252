// SPDX-License-Identifier: Apache-2.0
#pragma once

// Determines the properties that are needed to open a dataset and are stored only in its records.

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

// Chooses the fields of the specs based on the first records. Reads all records if samples may lack a field and none of
// the first records has its features. Ignores damaged records, unless all are damaged.
Result<ChosenFeatures> choose_fields(const RecordShards& shards, const OpenOptions& options);

// Reads all records and returns for each shard the records that have all fields. Includes unreadable records, since
// reading them reports the error. Sets `may_be_absent` for fields that a record lacks.
Result<std::vector<std::vector<std::uint32_t>>> whole_records(const RecordShards& shards,
                                                              std::vector<FeatureChoice>& fields, bool is_remote);

}  // namespace feedline::format
