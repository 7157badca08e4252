// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is known of a dataset's records only by reading them, when it is opened.

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
  std::vector<UnopenedColumn> unopened;  // of the first records
};

// The fields that the specs choose, by the dataset's first records; by all of them where samples may lack a field, and
// the first ones have none of its features. Records that are damaged say nothing, unless all are.
Result<ChosenFeatures> choose_fields(const RecordShards& shards, const OpenOptions& options);

// Per shard the records that lack none of the fields, after reading all; those that cannot be read are among them, and
// errors of their own. Of fields that a record lacks `may_be_absent` is set.
Result<std::vector<std::vector<std::uint32_t>>> whole_records(const RecordShards& shards,
                                                              std::vector<FeatureChoice>& fields, bool is_remote);

}  // namespace feedline::format
