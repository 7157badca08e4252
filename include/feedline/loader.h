// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads batches of a Dataset: native threads fill batches ahead of the training loop.

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/array.h"
#include "feedline/device.h"
#include "feedline/error.h"
#include "feedline/operation.h"
#include "feedline/packing.h"
#include "feedline/sampling.h"

namespace feedline {

enum class OnError : std::uint8_t {
  kRaise,    // next() returns the error of the batch's first bad sample; that batch is lost, and the next call
             // continues
  kSkip,     // skip the sample, refill the batch from the end of the epoch's order, and log it; with several ranks or a
             // given order, replace the sample, so that the number of batches stays the same
  kReplace,  // replace it with another sample, drawn from (seed, epoch, sample), and log it
  kReport,   // deliver the batch and report the row in Batch::bad(): the caller must fill its contents
};

// One sample in an order that the caller specifies.
struct GivenSample {
  std::uint64_t index = 0;  // in the dataset
  // Seeds the sample's random operations, together with the loader's seed and the epoch. A sample that is passed twice
  // with different numbers gets different crops.
  std::uint64_t draw = 0;
};

// How to handle samples that do not divide evenly among ranks.
enum class Uneven : std::uint8_t {
  kPad,    // repeat samples from the start of the order: every rank has the same number of samples
  kDrop,   // omit the remainder: every rank has the same number of samples
  kExact,  // every sample exactly once: ranks may differ by one sample, and so by one batch
};

// How often mixup and cutmix draw their parameters, and which rows of a batch of n rows they mix.
enum class MixMode : std::uint8_t {
  kBatch,  // draw once for all rows
  kElem,   // draw separately for every row i, and mix it with row n - 1 - i
  kHalf,   // like kElem, but only for the first half of the rows; only these are delivered, so batches have batch_size
           // / 2 rows
  kPair,   // draw once for every pair of rows i and n - 1 - i
};

// Selects the row with which each row is mixed.
enum class MixPartner : std::uint8_t {
  kRoll,  // the preceding row, and for the first row the last one (torchvision)
  kFlip,  // row n - 1 - i (timm); with an odd number of rows the middle one is unchanged
};

// The samples with lengths up to `bound` and above the previous bucket's bound. A batch contains samples from only one
// bucket, padded to its `bound`.
struct Bucket {
  std::uint64_t bound = 0;
  std::uint64_t rows = 0;  // rows per batch, over all ranks
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

// Dataset::given_loader() ignores the options for the order of samples.
struct LoaderOptions {
#define OPTION(type, name, value) type name = value;
#include "feedline/loader_options.def"
#undef OPTION
};

// Options of one epoch.
struct EpochOptions {
  // Prefetches the first batches of the next epoch while the last batches of this epoch are in use. Set to false if no
  // epoch follows.
  bool prepare_next = true;
  // Declares that batches will be copied to a GPU. If no epoch has begun and the number of threads is automatic, one
  // CPU is reserved for the thread that feeds the GPU, or one core if threads are bound to CPUs.
  bool feeds_gpu = false;
};

// One field of a batch. The field's form (BatchForm) determines which members are used:
//
//   kDense    array    (rows, ...), C-contiguous
//   kPadded   array    (rows, longest, ...), shorter rows filled with the field's `pad`
//             lengths  int64 (rows,): the first extent of each row
//   kList     buffer   row r is the bytes from offsets[r] to offsets[r + 1], of array.spec.dtype and shapes[r]
//
// The contents of a batch do not depend on the number of threads. Arrays, and the buffers of lists of arrays, are on
// the batch's device. Text, JSON, bytes and all spans are on the host.
struct BatchField {
  std::string_view name;
  ArrayView array;  // for a list: no data, and the spec of one row, whose extents may be kAnyLength
  BatchForm form = BatchForm::kDense;
  Content content = Content::kArray;
  ArrayView lengths = {};
  std::span<std::byte> buffer = {};
  std::span<const std::int64_t> offsets = {};  // rows + 1 values, ascending from 0
  std::span<const Shape> shapes = {};
  std::span<const bool> absent = {};  // kPadded, kList: empty rows, whose sample lacks the field
};

struct BadRow {
  std::uint64_t row = 0;
  Error error;
};

// A batch and its memory, which is not reused until the last copy of the Batch is destroyed. Any number of batches may
// be held, even all of an epoch. A batch for a GPU may still be in transfer when it is delivered: read its data only if
// is_ready() returns true, or after wait().
class Batch {
 public:
  Batch() = default;
  std::span<const BatchField> fields() const { return fields_; }
  std::uint64_t rows() const { return samples_.size(); }
  std::uint64_t index() const { return index_; }                       // index of the batch in its epoch
  std::span<const std::uint64_t> samples() const { return samples_; }  // index in the dataset, per row
  const std::shared_ptr<void>& memory() const { return memory_; }      // owns the arrays
  std::span<const BadRow> bad() const { return bad_; }                 // rows without content, with OnError::kReport
  const DeviceLocation& device() const { return device_; }             // location of the arrays
  bool is_ready() const;
  Result<void> wait() const;  // kStorage, kInternal: the device has failed
  // See Ready::let_wait().
  Result<void> let_wait(std::uintptr_t stream) const;

 private:
  friend class BatchAccess;  // used by src/batch/batch_layout.cpp to fill a batch
  std::vector<BatchField> fields_;
  std::vector<std::uint64_t> samples_;
  std::uint64_t index_ = 0;
  std::shared_ptr<void> memory_;
  std::vector<BadRow> bad_;
  DeviceLocation device_;
  std::array<std::shared_ptr<const Ready>, 2> ready_;  // nullptr: the arrays are ready
};

struct BadSample {
  Error error;
  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;           // index of the batch in the epoch, on this rank
  std::uint64_t sample = 0;          // index in the dataset
  OnError action = OnError::kRaise;  // how it was handled
};

struct StageStats {
  std::string name;  // "storage", "decode", "transform", "batch", "consumer"
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;                // items produced by the stage
  double busy_s = 0;                      // summed over threads
  double blocked_s = 0;                   // waiting for room downstream
  double starved_s = 0;                   // waiting for input
  std::vector<std::uint64_t> latency_us;  // bucket b: items that took [2^b, 2^(b+1)) microseconds
};

// Statistics of the pixels cached by Dataset::cache, over all processes that share them.
struct CacheStats {
  std::string where;               // "memory" or a path
  std::uint64_t samples = 0;       // of the dataset
  std::uint64_t present = 0;       // cached samples
  std::uint64_t bytes = 0;         // bytes in use
  std::uint64_t budget_bytes = 0;  // limit in bytes; 0: limited only by the disk
  bool full = false;               // if full, further samples are decoded in every epoch
};

// Statistics of the function passed to Dataset::map(), over all threads.
struct MapStats {
  std::uint64_t calls = 0;  // completed calls
  double run_s = 0;         // spent in the function
  double waited_s = 0;      // spent waiting before the call could start: in Python, for the GIL
};

// Statistics of mixup and cutmix.
struct MixStats {
  std::uint64_t batches = 0;  // processed batches, including those drawn to stay unmixed
  std::uint64_t rows = 0;     // rows of these batches
  double run_s = 0;           // over all threads; also included in the stage "batch"
};

// Statistics of hedged requests (OpenOptions::hedge), over all loaders of the dataset.
struct HedgeStats {
  std::uint64_t requests = 0;       // hedged requests sent
  std::uint64_t won = 0;            // hedged requests that were answered first
  std::uint64_t dropped_bytes = 0;  // bytes received of the discarded response before it was cancelled
};

// Checkpoints of JPEGs, from which crops are decoded; see docs/patches.md. `images` and `bytes` include all runs and
// processes that share a file; the other counts include only this dataset in this process.
struct CheckpointStats {
  std::uint64_t images = 0;   // with checkpoints
  std::uint64_t bytes = 0;    // of their checkpoints
  std::string path;           // of their file; empty: in memory
  std::uint64_t used = 0;     // decodes that could start at a checkpoint
  std::uint64_t made = 0;     // decodes that recorded checkpoints
  std::uint64_t changed = 0;  // decodes of images whose bytes had changed: from the start
  std::uint64_t damaged = 0;  // decodes from the start, because stored checkpoints were unreadable
  std::uint64_t dropped = 0;  // checkpoints that were not stored, over the limit of memory
  std::string failure;        // why they could not be stored
  std::uint64_t ranges = 0;   // crops of remote images for which only a range was fetched
  std::uint64_t range_bytes = 0, range_image_bytes = 0;  // of these ranges, and of their whole images
  std::uint64_t refused_ranges = 0;  // ranges that could not be used, so that the whole image was fetched
};

// Decoding of clips, over all threads.
struct VideoStats {
  std::uint64_t opens = 0;               // of decoders
  double open_s = 0;                     // time spent opening them
  std::uint64_t frames = 0;              // decoded, wanted or not
  std::uint64_t bytes_fetched = 0;       // read from the files
  std::uint64_t bytes_used = 0;          // of the packets that were decoded
  std::uint64_t decoder_budget = 0;      // limit of the memory of decoders that are open at once
  std::uint64_t decoder_bytes_peak = 0;  // the largest such memory, as estimated by the videos' dimensions
};

// The automatically chosen number of threads if num_workers is 0, and the changes of this number.
struct ControllerStats {
  struct Change {
    double at_s = 0;  // since the first iteration
    int from = 0;     // threads
    int to = 0;
    std::uint64_t ahead_from = 0;  // batches_ahead
    std::uint64_t ahead_to = 0;
    std::string why;
  };
  int threads = 0;                  // threads that currently fill batches; the others are idle
  int limit = 0;                    // maximum number of such threads
  std::uint64_t batches_ahead = 0;  // current limit on prefetched bytes
  std::uint64_t changed = 0;        // number of changes
  std::vector<Change> changes;      // the latest 64 changes
};

// Blocks of compressed values that were decompressed, over all loaders of the dataset.
struct BlockStats {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;            // after decompression
  std::uint64_t delivered_bytes = 0;  // of values that were read
};

struct LoaderStats {
  int threads = 0;            // including idle threads
  std::uint64_t batches = 0;  // delivered, all epochs of this loader
  std::uint64_t samples = 0;
  std::uint64_t bad_samples = 0;
  double wall_s = 0;                // from the first iteration to now or the end of the last epoch
  std::uint64_t ready_batches = 0;  // complete and waiting for the user, now
  std::uint64_t held_bytes = 0;     // bytes of batches prefetched now
  std::uint64_t held_bytes_peak = 0;
  std::uint64_t budget_bytes = 0;
  std::vector<StageStats> stages;
  std::optional<CacheStats> cache;
  std::optional<ControllerStats> controller;   // nullopt: the number of threads was given
  std::optional<MapStats> map;                 // nullopt: the dataset has no function
  std::optional<MixStats> mix;                 // nullopt: neither mixup nor cutmix
  std::optional<HedgeStats> hedge;             // nullopt: hedged requests were not enabled
  std::optional<CheckpointStats> checkpoints;  // nullopt: the images have none
  std::optional<BlockStats> blocks;            // nullopt: no block was decompressed
  std::optional<VideoStats> video;             // nullopt: the samples have no clips
};

// Positions [begin, end) in an epoch's order, which all ranks share.
struct Positions {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const Positions&, const Positions&) = default;
};

// Identifies a dataset, so that a loader can check that a state was saved from the same dataset.
struct DatasetIdentity {
  std::uint64_t fingerprint = 0;
  std::string format;
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;
  std::vector<std::string> fields;
  std::uint64_t blocks = 0;  // parts of shards that shuffle="shards" permutes; 0: it permutes shards, or is not used
};

// The weights of a mixture after set_mix_weights(), and the progress of the passes over its datasets.
struct MixState {
  std::vector<double> weights;      // one per dataset
  std::uint64_t since = 0;          // first epoch with these weights
  std::vector<std::uint64_t> used;  // samples of each dataset that the epochs before it had used
  friend bool operator==(const MixState&, const MixState&) = default;
};

// The position of a loader of packed sequences in the stream of packs.
struct PackState {
  std::uint64_t window = 0;
  std::uint64_t pack = 0;  // in the window
  friend bool operator==(const PackState&, const PackState&) = default;
};

// A loader's position. Another process can resume from a saved state, with any number of ranks and threads. All ranks
// have the same state.
struct LoaderState {
  DatasetIdentity dataset;
  std::uint64_t seed = 0;
  bool shuffle = false;
  std::uint64_t shard_window = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;        // in the epoch's order: everything before it was delivered
  std::vector<Positions> delivered;  // delivered after `position` (in_order = false)
  std::uint64_t left_out = 0;        // positions at the order's end that kSkip has consumed
  std::vector<Bucket> buckets;       // the options that define the positions and must not change
  std::uint64_t repeat = 1;          // must not change either
  std::uint64_t sampling = 0;        // fingerprint of the epoch's Sampling; 0: every sample once
  std::optional<MixState> mix;       // nullopt: the dataset's weights
  Fidelity fidelity = Fidelity::kExact;
  std::optional<PackState> packing = {};  // `position` counts packs, for information; nullopt: not packed
};

// A loader owns its threads. The threads start with the first epoch, are reused by later epochs, and end at close() or
// when the loader is destroyed. Only one thread at a time, the consumer, may call start_epoch, set_epoch, epoch,
// next_epoch, set_sampling, set_mix_weights, give, end_giving, next, poll, restore and close; all other functions are
// thread-safe. Nothing throws. After fork(), a child cannot use a loader that had begun an epoch: functions that return
// a Result fail with kConfig, interrupt(), set_epoch() and close() do nothing, and the others return the values from
// before the fork.
class Loader {
 public:
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();  // closes

  std::uint64_t batches() const;  // per epoch on this rank, if no sample is bad
  // The number of rows that each rank has in the last delivered batch, or an empty list before the first one. With
  // kExact, the numbers may differ between ranks in the last batches of an epoch.
  Result<std::vector<std::uint64_t>> rows_per_rank() const;
  const Schema& schema() const;  // of one row of a batch
  // The options as passed. explain() reports the values that the loader chose for unset options.
  const LoaderOptions& options() const;

  // Begins the epoch that restore() or set_epoch() selected, otherwise the next epoch. Abandons a running epoch.
  Result<void> start_epoch(const EpochOptions& options = {});
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const;       // the running epoch, or the next one to start
  std::uint64_t next_epoch() const;  // the one that start_epoch() begins
  // Replaces LoaderOptions::sampling from the next epoch on. If restore() resumes within an epoch, that epoch uses the
  // sampling with which the state was saved. Fails with kConfig if the loader was created without a sampling, or if
  // this sampling is for a different number of samples or selects fewer samples than there are ranks.
  Result<void> set_sampling(std::shared_ptr<const Sampling> sampling);
  // Replaces the weights of the dataset's mixture from the next epoch on; if restore() resumes within an epoch, that
  // epoch uses the weights in the state. The number of samples per epoch does not change. state() includes the weights.
  // Fails with kConfig if the weights are invalid or the dataset is not a mixture.
  Result<void> set_mix_weights(const std::vector<double>& weights);

  // Returns the next batch, or nullopt at the end of the epoch. If no epoch is running, starts an epoch with the last
  // EpochOptions.
  Result<std::optional<Batch>> next();

  // Queues the samples of one batch for a loader from Dataset::given_loader(), after start_epoch(). Any number of
  // batches may be queued. Fails with kConfig if there are no samples or more than batch_size, an index is out of
  // range, or the loader has its own order.
  Result<void> give(std::vector<GivenSample> samples);
  // Declares that no further batches will be queued: the epoch ends after the queued batches are delivered.
  Result<void> end_giving();

  enum class Polled : std::uint8_t { kBatch, kEnd, kPending };
  // Like next(), but returns kPending if no batch is ready after `wait`, so that a caller can handle signals.
  Result<Polled> poll(std::chrono::milliseconds wait, Batch& batch);
  // Makes a waiting next() or poll() return kCancelled, or the next call if none is waiting. No batch is lost: the call
  // after the cancelled one continues. Acquires a lock, so it must not be called from a signal handler.
  void interrupt();

  Result<LoaderStats> stats() const;
  std::uint64_t changes() const;                                        // as ControllerStats::changed
  Result<std::vector<BadSample>> errors(std::uint64_t from = 0) const;  // without the first `from` errors
  Result<std::uint64_t> error_count() const;
  Result<LoaderState> state() const;
  // Makes the next start_epoch() resume from `state`, or begin the next epoch if the state was saved after the last
  // batch of an epoch. If batch_size * world_size is the same, the batches equal those of the original run; otherwise,
  // the new batches start at the same sample. A mixture resumes with the state's weights. Fails with kConfig if the
  // state was saved from a different dataset, or with a different seed, order, sampling or fidelity.
  Result<void> restore(const LoaderState& state);
  // For a loader of packed sequences: the segments of a batch that it has just delivered; otherwise nullopt.
  Result<std::optional<PackSegments>> segments(const Batch& batch) const;
  // Returns batches() for another epoch; the number differs between epochs only for packed sequences.
  Result<std::uint64_t> batches_in(std::uint64_t epoch) const;
  // For packed sequences: the effect of packing on an epoch, or on its first windows. kConfig: the loader does not pack
  // sequences.
  Result<PackCounts> pack_counts(std::uint64_t epoch, std::optional<std::uint64_t> windows = {}) const;
  // A warning about an order that decompresses much more than is delivered, with the argument to pass instead; empty if
  // there is none.
  Result<std::string> warning() const;
  Result<std::string> explain() const;  // the plan, its numbers and where each operation runs, for users

  void close();  // ends the threads; next() and start_epoch() then fail with kCancelled

 private:
  friend class Dataset;
  friend class PackedDataset;
  struct Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline
