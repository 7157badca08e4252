// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plan/buckets.h"
#include "plan/order.h"
#include "plan/permutation.h"

namespace feedline::plan {

// An order of global batches, each with samples from one bucket. Every sample appears once:
//
//   bucket 0   members permuted     | batch | batch | batch | rest
//   bucket 1   members + rest of 0, permuted    | batch | batch | rest
//   bucket 2   members + rest of 1, permuted         | batch | batch | rest of the epoch
//
// Samples that do not fill a global batch move to the next longer bucket; the epoch's permutation determines which
// ones. The number of these samples is fixed, so every epoch has the same number of batches. If the epoch is shuffled,
// all whole batches are permuted, and the rest of the epoch comes last.
//
//   order      | batch of 2 | batch of 0 | batch of 2 | batch of 1 | ... | rest |
//
// Positions count samples: a batch's position is the total size of the batches before it. The positions take 8 bytes of
// memory per batch.
class BucketOrder final : public Order {
 public:
  BucketOrder(std::shared_ptr<const Buckets> buckets, bool shuffle, std::uint64_t key);

  std::uint64_t size() const override { return buckets_->samples(); }
  OrderedSample at(std::uint64_t position) const override;
  void place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const override;
  const BucketOrder* as_buckets() const override { return this; }

  const Buckets& buckets() const { return *buckets_; }
  std::uint64_t batches() const { return batches_; }  // whole batches
  // Returns the position of the batch's first sample. If the argument is batches(), returns the position of the rest.
  std::uint64_t begin(std::uint64_t batch) const { return begins_[batch]; }
  std::uint64_t bucket(std::uint64_t batch) const;  // for the rest: the last bucket
  // Returns the first batch that begins at `position` or later, or batches() if only the rest or the end follows.
  std::uint64_t batch_from(std::uint64_t position) const;
  // Returns whether a batch or the rest begins at this position, or the order ends there.
  bool is_border(std::uint64_t position) const;

 private:
  struct Pool {                              // the samples divided into the batches of one bucket
    std::uint64_t batches = 0;               // whole batches
    std::uint64_t first_batch = 0;           // number of batches in earlier buckets
    std::optional<Permutation> permutation;  // of its members and the previous bucket's rest
  };
  struct Run {  // consecutive positions in one batch
    std::uint64_t bucket = 0;
    std::uint64_t offset = 0;  // position in the bucket's pool, before permutation
    std::uint64_t count = 0;
  };
  Run run_at(std::uint64_t position) const;
  std::uint64_t sample_at(std::uint64_t bucket, std::uint64_t offset) const;
  std::uint64_t unpermuted(std::uint64_t batch) const { return permutation_ ? (*permutation_)(batch) : batch; }

  std::shared_ptr<const Buckets> buckets_;
  std::vector<Pool> pools_;
  std::optional<Permutation> permutation_;  // of the batches
  std::uint64_t batches_ = 0;
  std::vector<std::uint64_t> begins_;  // the last entry is the start of the rest
};

}  // namespace feedline::plan
