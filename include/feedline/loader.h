// SPDX-License-Identifier: Apache-2.0
#pragma once

// A running pipeline over a Dataset: native threads fill batches ahead of the training loop.

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

namespace feedline {

enum class OnError : std::uint8_t {
  kRaise,    // next() returns the error of the first bad sample of that batch; the batch is lost, the next follows
  kSkip,     // leave the sample out, refill the batch from the end of the epoch's order, log it; over several ranks,
             // and where the order is given, it replaces, which keeps the number of batches
  kReplace,  // put another sample, drawn from (seed, epoch, sample), in its place, log it
  kReport,   // deliver the batch, with what Batch::bad() says about the row: its contents are the caller's to fill
};

// One sample of an order that the caller gives.
struct GivenSample {
  std::uint64_t index = 0;  // in the dataset
  // What its random operations draw from, besides the loader's seed and the epoch: a sample that is given twice with
  // two numbers comes twice with two crops.
  std::uint64_t draw = 0;
};

// What to do when the samples do not divide evenly over ranks.
enum class Uneven : std::uint8_t {
  kPad,    // repeat samples from the start of the order: same number of samples on every rank
  kDrop,   // leave the remainder out: same number of samples on every rank
  kExact,  // every sample exactly once: ranks may differ by one sample, and so by one batch
};

// What mixup and cutmix are drawn for, and which rows of a batch of n they mix.
enum class MixMode : std::uint8_t {
  kBatch,  // once for all rows
  kElem,   // for every row i by itself, with row n - 1 - i
  kHalf,   // likewise for the first half of the rows, which alone are delivered: batches have batch_size / 2 rows
  kPair,   // for every two rows i and n - 1 - i together
};

// Which row a row is mixed with.
enum class MixPartner : std::uint8_t {
  kRoll,  // the row before it, the first one with the last (torchvision)
  kFlip,  // row n - 1 - i (timm); the middle one of an odd number stays as it is
};

// Samples of lengths up to `bound`, and longer than the bound of the bucket before. A batch has samples of one bucket,
// each padded to its bound.
struct Bucket {
  std::uint64_t bound = 0;
  std::uint64_t rows = 0;  // of a batch, over all ranks
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

struct LoaderOptions {
  std::uint64_t batch_size = 1;  // samples per batch and rank; 0, with max_tokens: as many as these allow
  bool shuffle = false;
  // Not 0, with shuffle: shards are permuted, and the samples of so many of them at a time, so that only these are read
  // from at a time. For storage that is slow at reading here and there. Where there is one shard it means nothing.
  std::uint64_t shard_window = 0;
  // Samples of different lengths: batches of samples of like length. Ascending bounds, the last one at least the
  // longest sample's length; or so many buckets, with about as many samples each. What does not fill a batch of a
  // bucket goes up into the next one; drop_last and uneven are for what is left of the last.
  std::vector<std::uint64_t> bucket_bounds = {};
  std::uint64_t buckets = 0;
  std::uint64_t max_tokens = 0;  // not 0, with buckets: a batch has at most max_tokens / bound rows
  std::uint64_t seed = 0;        // of the order and of every random operation
  bool drop_last = false;
  // Native threads. 0: as many as the training loop turns out to need, while it runs, and no more than this process's
  // share of the CPUs (affinity, cgroup quota, other ranks on the machine).
  int num_workers = 0;
  std::uint64_t memory_budget = 0;  // bytes of batches held ahead of the user; 0: see docs, at most two batches ahead
  // false: batches as they complete. Over several ranks they come in order all the same: each rank would have another
  // part of the epoch behind it, and no state could be true of all.
  bool in_order = true;
  OnError on_error = OnError::kRaise;
  std::uint64_t error_budget = 0;  // bad samples an epoch may skip or replace; 0: any number
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  Uneven uneven = Uneven::kPad;
  std::optional<DType> dtype;  // element type of image fields; nullopt: what the operations give
  Layout layout = Layout::kNchw;
  std::chrono::milliseconds timeout{0};  // next() fails with kStalled after this long without a batch; 0: never
  // Every sample stands so many times in the order, one after the other, each time with other draws; the ranks take
  // turns at the positions. An epoch has as many positions as without, and so only a part of the samples.
  std::uint64_t repeat = 1;
  // MixUp and CutMix: alpha of Beta(alpha, alpha), which each draws its share from; 0: not done. Where one of them is
  // done, image fields are float32 or float16, and the label field is float32 (num_classes).
  double mixup = 0;
  double cutmix = 0;
  std::uint64_t num_classes = 0;    // 0: as many as the dataset names
  double label_smoothing = 0;       // of the targets
  double mix_probability = 1;       // that a batch, row or pair is mixed
  double switch_probability = 0.5;  // with both: that it is cutmix
  MixMode mix_mode = MixMode::kBatch;
  std::optional<MixPartner> partner;  // nullopt: kRoll with kBatch, and kFlip with the others, which have no other
  // The GPU that batches go to as soon as they are filled, as CUDA counts them; nullopt: they stay in host memory.
  std::optional<int> cuda_device;
};

// Of a loader without a plan: the caller gives the samples of each batch, in Loader::give(), and gets the batches in
// that order. For samplers written elsewhere. What is named as in LoaderOptions is the same.
struct GivenOptions {
  std::uint64_t batch_size = 1;  // samples that a batch may hold at most
  std::uint64_t seed = 0;        // of every random operation
  int num_workers = 0;
  int most_workers = 0;  // not 0, with num_workers = 0: as many threads at most
  std::uint64_t memory_budget = 0;
  OnError on_error = OnError::kRaise;  // kSkip replaces
  std::uint64_t error_budget = 0;
  std::optional<DType> dtype;
  Layout layout = Layout::kNchw;
  std::chrono::milliseconds timeout{0};
  std::optional<int> cuda_device;
};

// Of one epoch.
struct EpochOptions {
  // While the last batches of this epoch are used, the first of the next one are filled. false where no other will
  // follow.
  bool prepare_next = true;
  // The batches go to a GPU, from now on: where the number of threads was not given, one CPU is left to the thread that
  // feeds it, and where threads are bound to CPUs, one core, if no epoch was begun before.
  bool feeds_gpu = false;
};

// One field of a batch, of which there is, according to its form (BatchForm):
//
//   kDense    array    (rows, ...), C-contiguous
//   kPadded   array    (rows, longest, ...), and behind a shorter row the field's `pad`
//             lengths  int64 (rows,): the first extent of each row
//   kList     buffer   row r is the bytes from offsets[r] to offsets[r + 1], of array.spec.dtype and shapes[r]
//
// The same bytes whatever the number of threads. Arrays and buffers of arrays are on the batch's device; what is text,
// JSON or bytes, and all spans, are on the host.
struct BatchField {
  std::string_view name;
  ArrayView array;  // of a list: no data, and one row's spec, whose extents may be kAnyLength
  BatchForm form = BatchForm::kDense;
  Content content = Content::kArray;
  ArrayView lengths = {};
  std::span<std::byte> buffer = {};
  std::span<const std::int64_t> offsets = {};  // rows + 1, ascending, the first one 0
  std::span<const Shape> shapes = {};
  std::span<const bool> absent = {};  // kPadded, kList: rows whose sample does not have the field; they are empty
};

struct BadRow {
  std::uint64_t row = 0;
  Error error;
};

// A batch and the memory it lives in, which is the holder's until the last copy of the Batch goes: it is never
// reused under a holder. Holding every batch of an epoch works. On a device that is not the host a batch may still be
// on its way there when it is delivered: what is on the device may be read once is_ready(), or after wait().
class Batch {
 public:
  Batch() = default;
  std::span<const BatchField> fields() const { return fields_; }
  std::uint64_t rows() const { return samples_.size(); }
  std::uint64_t index() const { return index_; }                       // of the batch in its epoch
  std::span<const std::uint64_t> samples() const { return samples_; }  // index in the dataset, per row
  const std::shared_ptr<void>& memory() const { return memory_; }      // keeps the arrays alive
  std::span<const BadRow> bad() const { return bad_; }                 // rows that hold nothing, with OnError::kReport
  const DevicePlace& device() const { return device_; }                // where the arrays are
  bool is_ready() const;
  Result<void> wait() const;  // kStorage, kInternal: the device has failed
  // See Ready::let_wait().
  Result<void> let_wait(std::uintptr_t stream) const;

 private:
  friend class BatchAccess;  // src/batch/batch_layout.cpp: how the engine fills one
  std::vector<BatchField> fields_;
  std::vector<std::uint64_t> samples_;
  std::uint64_t index_ = 0;
  std::shared_ptr<void> memory_;
  std::vector<BadRow> bad_;
  DevicePlace device_;
  std::array<std::shared_ptr<const Ready>, 2> ready_;  // nullptr: there is nothing to wait for
};

struct BadSample {
  Error error;
  std::uint64_t epoch = 0;
  std::uint64_t batch = 0;           // of the epoch, on this rank
  std::uint64_t sample = 0;          // index in the dataset
  OnError action = OnError::kRaise;  // what was done about it
};

struct StageStats {
  std::string name;  // "storage", "decode", "transform", "batch", "consumer"
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;                // put out by the stage
  double busy_s = 0;                      // summed over threads
  double blocked_s = 0;                   // waiting for room downstream
  double starved_s = 0;                   // waiting for input
  std::vector<std::uint64_t> latency_us;  // bucket b: items that took [2^b, 2^(b+1)) microseconds
};

// Of the pixels that Dataset::cache keeps, by all processes that share them.
struct CacheStats {
  std::string where;               // "memory" or a path
  std::uint64_t samples = 0;       // of the dataset
  std::uint64_t present = 0;       // of them kept
  std::uint64_t bytes = 0;         // that they take
  std::uint64_t budget_bytes = 0;  // that they may take; 0: no limit but the disk's
  bool full = false;               // no more are kept: the others are decoded in every epoch
};

// Of the function that Dataset::map() was given, over all threads.
struct MapStats {
  std::uint64_t calls = 0;  // that came back
  double run_s = 0;         // in the function
  double waited_s = 0;      // before it could begin: in Python, for the GIL
};

// Of mixup and cutmix.
struct MixStats {
  std::uint64_t batches = 0;  // that were mixed, or drawn to be left as they are
  std::uint64_t rows = 0;     // of them
  double run_s = 0;           // over all threads; the stage "batch" has it too
};

// Of OpenOptions::hedge: by all loaders of the dataset.
struct HedgeStats {
  std::uint64_t requests = 0;       // second ones, for some that were late
  std::uint64_t won = 0;            // of them, that were answered first
  std::uint64_t dropped_bytes = 0;  // that came of the answer that was not taken, until it was ended
};

// What num_workers = 0 has come to.
struct ControllerStats {
  struct Change {
    double at_s = 0;  // since the first iteration
    int from = 0;     // threads
    int to = 0;
    std::uint64_t ahead_from = 0;  // batches_ahead
    std::uint64_t ahead_to = 0;
    std::string why;
  };
  int threads = 0;                  // that fill batches now; the others rest
  int limit = 0;                    // most that may
  std::uint64_t batches_ahead = 0;  // that may be held ahead now
  std::uint64_t changed = 0;        // how often
  std::vector<Change> changes;      // the latest 64
};

struct LoaderStats {
  int threads = 0;            // those that rest included
  std::uint64_t batches = 0;  // delivered, all epochs of this loader
  std::uint64_t samples = 0;
  std::uint64_t bad_samples = 0;
  double wall_s = 0;                // from the first iteration to now or the end of the last epoch
  std::uint64_t ready_batches = 0;  // complete and waiting for the user, now
  std::uint64_t held_bytes = 0;     // of batches held ahead, now
  std::uint64_t held_bytes_peak = 0;
  std::uint64_t budget_bytes = 0;
  std::vector<StageStats> stages;
  std::optional<CacheStats> cache;
  std::optional<ControllerStats> controller;  // nullopt: the number of threads was given
  std::optional<MapStats> map;                // nullopt: the dataset has no function
  std::optional<MixStats> mix;                // nullopt: neither mixup nor cutmix
  std::optional<HedgeStats> hedge;            // nullopt: no second requests were asked for
};

// Positions [begin, end) of an epoch's order, which all ranks share.
struct Positions {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const Positions&, const Positions&) = default;
};

// What a dataset is, for a state to be compared with.
struct DatasetIdentity {
  std::uint64_t fingerprint = 0;
  std::string format;
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;
  std::vector<std::string> fields;
};

// Where a loader stands: enough to go on in another process, on any number of ranks and threads. The same on all ranks.
struct LoaderState {
  DatasetIdentity dataset;
  std::uint64_t seed = 0;
  bool shuffle = false;
  std::uint64_t shard_window = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;        // of the epoch's order: what lies before it was delivered
  std::vector<Positions> delivered;  // behind `position` (in_order = false)
  std::uint64_t left_out = 0;        // positions at the order's end that kSkip has used up
  std::vector<Bucket> buckets;       // they decide what a position is, so they stay the same
  std::uint64_t repeat = 1;          // likewise
  Fidelity fidelity = Fidelity::kExact;
};

// Owns its threads; they start with the first epoch and end at close() or with the loader: the next epoch finds them
// warm. One thread at a time, the consumer, may call start_epoch, set_epoch, epoch, give, end_giving, next, poll,
// restore and close; all else may be called by any at any time. Nothing throws. After fork() a child's copy of a loader
// that had begun an epoch starts nothing and takes no lock: what returns a Result is kConfig, interrupt(), set_epoch()
// and close() do nothing, and what is left tells what it told before.
class Loader {
 public:
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();  // closes

  std::uint64_t batches() const;  // per epoch on this rank, if no sample is bad
  // Rows that each rank has in the batch that was delivered last: with kExact an epoch's last ones may differ. Empty:
  // none was delivered yet.
  Result<std::vector<std::uint64_t>> rows_per_rank() const;
  const Schema& schema() const;  // of one row of a batch
  // As they were passed; explain() tells what came of those that were left open. Of Dataset::given_loader(): what both
  // kinds of options have.
  const LoaderOptions& options() const;

  // Begins an epoch: the restored one if restore() came before, else the one set by set_epoch(), else the one after
  // the last. A running epoch is abandoned.
  Result<void> start_epoch(const EpochOptions& options = {});
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const;  // the running epoch, or the next one to start

  // The next batch; nullopt: the epoch is over. Starts an epoch where none runs, with the options of the last one.
  Result<std::optional<Batch>> next();

  // Of Dataset::given_loader(): the samples of the next batch, after start_epoch(); any number of batches may be given
  // ahead. kConfig: more than batch_size, none, or an index out of range; or the loader follows a plan.
  Result<void> give(std::vector<GivenSample> samples);
  // No further batch will be given: the epoch is over once what was given is delivered.
  Result<void> end_giving();

  enum class Polled : std::uint8_t { kBatch, kEnd, kPending };
  // Like next(), but gives up after `wait` with kPending, so that a caller can look after signals.
  Result<Polled> poll(std::chrono::milliseconds wait, Batch& batch);
  // Ends the next() or poll() that waits, or else the next one to be called, with kCancelled. Nothing is lost: the call
  // after that goes on. It takes a lock, so a signal handler must not call it.
  void interrupt();

  Result<LoaderStats> stats() const;
  std::uint64_t changes() const;                                        // as ControllerStats::changed
  Result<std::vector<BadSample>> errors(std::uint64_t from = 0) const;  // but for the first `from`
  Result<std::uint64_t> error_count() const;
  Result<LoaderState> state() const;
  // Goes on where `state` was taken, at the next start_epoch(); with the next epoch where it was taken after the last
  // batch of one. The batches are those of the run that it was taken in where batch_size * world_size is the same, and
  // otherwise go on at the same sample. kConfig: taken on another dataset, or with another seed, order or fidelity.
  Result<void> restore(const LoaderState& state);
  Result<std::string> explain() const;  // the plan, its numbers and what runs where, for people

  void close();  // ends the threads; next() and start_epoch() then fail with kCancelled

 private:
  friend class Dataset;
  struct Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace feedline
