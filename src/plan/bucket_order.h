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

// Global batches of samples of one bucket each. Every sample comes once:
//
//   bucket 0   members permuted     | batch | batch | batch | rest
//   bucket 1   members + rest of 0, permuted    | batch | batch | rest
//   bucket 2   members + rest of 1, permuted         | batch | batch | rest of the epoch
//
// What does not fill a global batch goes up into the next longer bucket; which samples do is the epoch's permutation's
// choice. How many do is not, so every epoch has the same number of batches. Shuffled, all whole batches are permuted;
// the rest of the epoch comes last.
//
//   order      | batch of 2 | batch of 0 | batch of 2 | batch of 1 | ... | rest |
//
// A position counts samples: a batch's place in the order is the sum of those before it, 8 bytes for each batch.
class BucketOrder final : public Order {
 public:
  BucketOrder(std::shared_ptr<const Buckets> buckets, bool shuffle, std::uint64_t key);

  std::uint64_t size() const override { return buckets_->samples(); }
  Placed at(std::uint64_t position) const override;
  void place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const override;
  const BucketOrder* as_buckets() const override { return this; }

  const Buckets& buckets() const { return *buckets_; }
  std::uint64_t batches() const { return batches_; }  // whole ones
  // Position of the batch's first sample; of batches(): of the rest.
  std::uint64_t begin(std::uint64_t batch) const { return begins_[batch]; }
  std::uint64_t bucket(std::uint64_t batch) const;  // of the rest: the last one
  // The first batch that begins at `position` or behind it; batches(): the rest, or the end.
  std::uint64_t batch_from(std::uint64_t position) const;
  // Is this where a batch, the rest or nothing begins?
  bool is_border(std::uint64_t position) const;

 private:
  struct Pool {                              // what the batches of one bucket are cut from
    std::uint64_t batches = 0;               // whole ones
    std::uint64_t first_batch = 0;           // batches of the buckets before
    std::optional<Permutation> permutation;  // of its members and the rest of the bucket before
  };
  struct Run {  // positions that follow each other in one batch
    std::uint64_t bucket = 0;
    std::uint64_t place = 0;  // in the bucket's pool, before it is permuted
    std::uint64_t count = 0;
  };
  Run run_at(std::uint64_t position) const;
  std::uint64_t sample_at(std::uint64_t bucket, std::uint64_t place) const;
  std::uint64_t unpermuted(std::uint64_t batch) const { return permutation_ ? (*permutation_)(batch) : batch; }

  std::shared_ptr<const Buckets> buckets_;
  std::vector<Pool> pools_;
  std::optional<Permutation> permutation_;  // of the batches
  std::uint64_t batches_ = 0;
  std::vector<std::uint64_t> begins_;  // and where the rest does
};

}  // namespace feedline::plan
