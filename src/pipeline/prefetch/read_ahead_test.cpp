// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/read_ahead.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <thread>

#include "base/test_conditions.h"
#include "format/folder/folder_format.h"
#include "format/folder/pattern_format.h"
#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"
#include "storage/gated_storage.h"
#include "storage/short_reads_storage.h"
#include "storage/slow_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kHang = 200s;  // exceeded only by a hang

using storage::SlowReads;
using storage::SlowStorage;
using Labels = std::vector<std::vector<std::int64_t>>;

constexpr int kClasses = 96;  // of one image each: the label identifies the sample

// Simulates remote storage with local files.
class FarStorage final : public storage::Storage {
 public:
  Result<std::unique_ptr<storage::Reader>> open(const std::string& path, storage::Access access) const override {
    return files_->open(path, access);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    return files_->read_all(path, buffer, most);
  }
  Result<std::vector<storage::Entry>> list(const std::string& directory) const override {
    return files_->list(directory);
  }
  Result<storage::ObjectStat> stat(const std::string& path) const override { return files_->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return files_->is_directory(path); }
  bool is_remote() const override { return true; }
  bool joins_reads() const override { return true; }

 private:
  const std::shared_ptr<const storage::Storage> files_ = storage::local_storage();
};

class ReadAheadTest : public testing::Test {
 protected:
  ReadAheadTest() {
    for (int i = 0; i < kClasses; ++i) {
      const auto png = plain_png(static_cast<std::uint8_t>(i));
      folder_.write(name(i), {reinterpret_cast<const char*>(png.data()), png.size()});
    }
  }
  ~ReadAheadTest() override { base::test_conditions() = {}; }
  static std::string name(int i) { return "data/" + std::to_string(100 + i) + "/image.png"; }
  static void set_mode(std::string_view mode) {
    base::test_conditions().read_ahead = mode == "never"     ? ReadAheadMode::kNever
                                         : mode == "always"  ? ReadAheadMode::kAlways
                                         : mode == "threads" ? ReadAheadMode::kThreads
                                                             : ReadAheadMode::kAuto;
  }

  std::unique_ptr<Pipeline> pipeline(std::shared_ptr<const storage::Storage> storage, const LoaderOptions& options,
                                     bool given = false) {
    auto format = format::FolderFormat::open(folder_.path("data"), {.storage = std::move(storage)});
    return pipeline_of(format, options, given);
  }
  static std::unique_ptr<Pipeline> pipeline_of(const Result<std::shared_ptr<const format::RecordFormat>>& format,
                                               const LoaderOptions& options, bool given = false) {
    EXPECT_TRUE(format) << format.error().message();
    auto recipe = make_recipe({"data", *format}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    EXPECT_TRUE(recipe) << recipe.error().message();
    auto plan = given ? plan_given(**recipe, {.batch_size = options.batch_size, .num_workers = options.num_workers})
                      : plan_pipeline(**recipe, options);
    EXPECT_TRUE(plan) << plan.error().message();
    return std::make_unique<Pipeline>(std::move(*recipe), *plan);
  }
  std::unique_ptr<Pipeline> given_pipeline(std::shared_ptr<const storage::Storage> storage) {
    return pipeline(std::move(storage), options_, true);
  }
  // Returns the labels after checking that the images match; an error is recorded as -1.
  Labels run(Pipeline& pipeline, EpochStart start = {}, bool prepare_next = false, std::size_t batches = 1000) {
    Labels labels;
    EXPECT_TRUE(pipeline.begin(start, prepare_next));
    while (labels.size() < batches) {
      Batch batch;
      const auto polled = pipeline.poll(kHang, batch);
      if (!polled) {
        errors_.push_back(polled.error());
        continue;
      }
      if (*polled != Loader::Polled::kBatch) break;
      const auto* values = batch.fields()[1].array.as<std::int64_t>();
      labels.emplace_back(values, values + batch.rows());
      for (std::uint64_t row = 0; row < batch.rows(); ++row)
        EXPECT_EQ(batch.fields()[0].array.as<std::uint8_t>()[row * 48], values[row]) << "another sample's image";
    }
    return labels;
  }

  // Returns an order like that of a sampler: `count` samples, some of them repeated, in batches of eight.
  static std::vector<std::vector<GivenSample>> sampled(std::uint64_t count, std::uint64_t seed) {
    std::vector<std::vector<GivenSample>> batches;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i % 8 == 0) batches.emplace_back();
      batches.back().push_back({base::mix64(seed * 1000 + i) % kClasses, i});
    }
    return batches;
  }
  // Returns the labels of an epoch of these batches; `ahead` batches are given before the first one is requested.
  Labels run_given(Pipeline& pipeline, const std::vector<std::vector<GivenSample>>& batches, std::size_t ahead) {
    Labels labels;
    EXPECT_TRUE(pipeline.begin({}, true));
    std::size_t given = 0;
    for (; given < std::min(ahead, batches.size()); ++given) EXPECT_TRUE(pipeline.give(batches[given]));
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (given < batches.size()) {
        EXPECT_TRUE(pipeline.give(batches[given++]));
      }
      if (given == batches.size()) {
        EXPECT_TRUE(pipeline.end_giving());
      }
      Batch batch;
      const auto polled = pipeline.poll(kHang, batch);
      EXPECT_TRUE(polled && *polled == Loader::Polled::kBatch);
      if (!polled) break;
      const auto* values = batch.fields()[1].array.as<std::int64_t>();
      labels.emplace_back(values, values + batch.rows());
    }
    return labels;
  }
  static Labels labels_of(const std::vector<std::vector<GivenSample>>& batches) {
    Labels labels;
    for (const auto& batch : batches) {
      labels.emplace_back();
      for (const GivenSample& sample : batch) labels.back().push_back(static_cast<std::int64_t>(sample.index));
    }
    return labels;
  }

  storage::TemporaryFolder folder_;
  std::vector<Error> errors_;
  const LoaderOptions options_{.batch_size = 8, .shuffle = true, .num_workers = 3};
};

TEST_F(ReadAheadTest, GivesWhatReadingOneByOneGives) {
  set_mode("never");
  const auto plain = pipeline(storage::local_storage(), options_);
  for (const char* mode : {"always", "threads", "auto"}) {
    for (const auto& storage : {storage::local_storage(), storage::short_reads_storage()}) {
      set_mode(mode);
      const auto ahead = pipeline(storage, options_);
      for (const std::uint64_t epoch : {0u, 1u, 2u, 7u, 2u, 2u})
        EXPECT_EQ(run(*ahead, {.epoch = epoch}, epoch < 7), run(*plain, {.epoch = epoch})) << mode << epoch;
    }
  }
  EXPECT_TRUE(errors_.empty());
}

TEST_F(ReadAheadTest, FollowsEpochsThatAreBrokenOffAndPlacesInTheirMiddle) {
  set_mode("never");
  const auto plain = pipeline(storage::local_storage(), options_);
  set_mode("always");
  const auto ahead = pipeline(storage::local_storage(), options_);
  for (const std::uint64_t position : {0u, 8u, 40u, 88u, 16u}) {
    run(*ahead, {.epoch = position % 3}, true, 2);  // two batches of it
    EXPECT_EQ(run(*ahead, {.epoch = 1, .position = position}), run(*plain, {.epoch = 1, .position = position}));
  }
}

// Three threads without read-ahead have three reads in flight. Reads are counted in the storage, without measuring
// time.
TEST_F(ReadAheadTest, KeepsMoreReadsUnderWayThanThereAreThreads) {
  for (const char* mode : {"always", "threads", "auto"}) {
    set_mode(mode);
    const auto slow = std::make_shared<SlowStorage>(storage::local_storage(), SlowReads{.latency = 60ms});
    const auto ahead = pipeline(slow, options_);
    EXPECT_EQ(run(*ahead).size(), 12u);
    EXPECT_GE(slow->counts().most_at_once, 12u) << mode;
    EXPECT_LE(slow->counts().reads, kClasses * 5 / 4) << mode << ": more reads were repeated than when it is enabled";
    EXPECT_NE(ahead->explain_reads().find("now, at most"), std::string::npos) << ahead->explain_reads();
    EXPECT_TRUE(ahead->explain_reads().starts_with("artificially slow: 60000 us per read")) << ahead->explain_reads();
  }
}

// Each sample consists of up to three objects; every fourth sample has no text.
class SeveralObjectsTest : public ReadAheadTest {
 protected:
  SeveralObjectsTest() {
    for (int i = 0; i < kClasses; ++i) {
      const std::string key = std::to_string(100 + i);
      const auto png = plain_png(static_cast<std::uint8_t>(i));
      folder_.write("parts/images/" + key + ".png", {reinterpret_cast<const char*>(png.data()), png.size()});
      folder_.write("parts/labels/" + key + ".cls", std::to_string(i));
      if (i % 4 != 0) folder_.write("parts/texts/" + key + ".txt", "text " + key);
    }
  }
  std::unique_ptr<Pipeline> pipeline(std::shared_ptr<const storage::Storage> storage,
                                     const LoaderOptions& options) const {
    return pipeline_of(
        format::PatternFormat::open(folder_.path("parts"),
                                    {.fields = {"images/{key}.png", "labels/{key}.cls", "texts/{key}.txt"},
                                     .storage = std::move(storage),
                                     .missing = Missing::kNone}),
        options);
  }
  // Like run(), but returns all texts by label.
  std::map<std::int64_t, std::string> texts(Pipeline& pipeline) {
    std::map<std::int64_t, std::string> texts;
    EXPECT_TRUE(pipeline.begin({}, false));
    for (Batch batch; *pipeline.poll(kHang, batch) == Loader::Polled::kBatch; batch = {})
      for (std::uint64_t row = 0; row < batch.rows(); ++row) {
        const BatchField& text = batch.fields()[2];
        const auto* first = reinterpret_cast<const char*>(text.buffer.data());
        texts[batch.fields()[1].array.as<std::int64_t>()[row]] =
            text.absent[row] ? "absent" : std::string(first + text.offsets[row], first + text.offsets[row + 1]);
      }
    return texts;
  }
  static constexpr std::uint64_t kObjects = kClasses * 3 - kClasses / 4;
};

TEST_F(SeveralObjectsTest, AreFetchedTogetherAndGiveTheSame) {
  set_mode("never");
  const auto plain = pipeline(storage::local_storage(), options_);
  const auto expected = texts(*plain);
  ASSERT_EQ(expected.size(), kClasses);
  EXPECT_EQ(expected.at(4), "absent");
  EXPECT_EQ(expected.at(5), "text 105");
  for (const char* mode : {"always", "threads", "auto"}) {
    for (const auto& storage : {storage::local_storage(), storage::short_reads_storage()}) {
      set_mode(mode);
      const auto ahead = pipeline(storage, options_);
      for (const std::uint64_t epoch : {0u, 1u, 2u, 7u, 2u, 2u})
        EXPECT_EQ(run(*ahead, {.epoch = epoch}, epoch < 7), run(*plain, {.epoch = epoch})) << mode << epoch;
      EXPECT_EQ(texts(*ahead), expected);
    }
  }
  EXPECT_TRUE(errors_.empty());
}

TEST_F(SeveralObjectsTest, AreEachReadOnceAndManyAtATime) {
  for (const char* mode : {"always", "threads"}) {
    set_mode(mode);
    const auto slow = std::make_shared<SlowStorage>(storage::local_storage(), SlowReads{.latency = 20ms});
    const auto ahead = pipeline(slow, options_);
    const std::uint64_t before = slow->counts().reads;
    EXPECT_EQ(run(*ahead).size(), 12u);
    EXPECT_GE(slow->counts().most_at_once, 24u) << mode;
    EXPECT_LE(slow->counts().reads - before, kObjects * 5 / 4) << mode;
    EXPECT_NE(ahead->explain_reads().find("now, at most"), std::string::npos) << ahead->explain_reads();
  }
}

TEST_F(SeveralObjectsTest, OneThatIsGoneIsItsSamplesErrorAlone) {
  LoaderOptions options = options_;
  options.on_error = OnError::kReport;
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  for (const char* mode : {"never", "always", "threads"}) {
    set_mode(mode);
    pipelines.push_back(pipeline(storage::local_storage(), options));
  }
  std::filesystem::remove(folder_.path("parts/labels/107.cls"));
  std::filesystem::remove(folder_.path("parts/texts/109.txt"));
  folder_.write("parts/images/111.png", "");
  for (const auto& ahead : pipelines) {
    ASSERT_TRUE(ahead->begin({}, false));
    std::map<std::string, std::string> failed;
    Batch batch;
    while (*ahead->poll(kHang, batch) == Loader::Polled::kBatch)
      for (const BadRow& bad : batch.bad())
        failed[bad.error.where.key] = bad.error.what.substr(0, bad.error.what.find(':')) + " " + bad.error.where.stage;
    const std::map<std::string, std::string> expected{
        {"107", "field 'labels' storage"}, {"109", "field 'texts' storage"}, {"111", "field 'images' format"}};
    EXPECT_EQ(failed, expected);
  }
}

// A file of blocks of eight images. Samples of a block share a piece.
class BlockFormat final : public format::RecordFormat {
 public:
  static constexpr std::uint64_t kInBlock = 8;

  BlockFormat(std::shared_ptr<const storage::Storage> storage, const std::string& path, std::uint64_t bytes)
      : storage_(std::move(storage)),
        reader_(storage_->open(path, storage::Access::kRead).value()),
        image_bytes_(bytes / kClasses) {}

  std::string_view name() const override { return "blocks"; }
  std::uint64_t size() const override { return kClasses; }
  const std::vector<format::FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override {
    ++reads;
    FEEDLINE_TRY(const std::size_t got,
                 reader_->read_at(index * image_bytes_, record.storage.resize(static_cast<std::size_t>(image_bytes_))));
    return fill(index, {record.storage.data(), got}, record);
  }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override {
    const std::uint64_t bytes = kInBlock * image_bytes_;
    pieces.push_back({reader_, {}, index / kInBlock * bytes, bytes, {}, true});
    return {};
  }
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override {
    EXPECT_EQ(record.piece_offsets, std::vector{index / kInBlock * kInBlock * image_bytes_});
    const auto image = pieces.front().subspan(static_cast<std::size_t>(index % kInBlock * image_bytes_),
                                              static_cast<std::size_t>(image_bytes_));
    std::ranges::copy(image, record.more.emplace_back().resize(image.size()).begin());
    return fill(index, {record.more.back().data(), image.size()}, record);
  }
  std::shared_ptr<const storage::Storage> storage() const override { return storage_; }
  Where where(std::uint64_t) const override { return {}; }
  std::uint64_t fingerprint() const override { return 1; }
  Result<Inspection> inspect() const override { return Inspection{}; }

  mutable std::atomic<int> reads{0};

 private:
  static Result<void> fill(std::uint64_t index, std::span<const std::byte> image, memory::Record& record) {
    record.fields.assign(2, {});
    record.fields[0].bytes = image;
    record.fields[1].value = static_cast<std::int64_t>(index);
    record.bytes_read = image.size();
    return {};
  }

  const std::shared_ptr<const storage::Storage> storage_;
  const std::shared_ptr<const storage::Reader> reader_;
  const std::uint64_t image_bytes_;
  const std::vector<format::FieldDescription> fields_{{"image", format::FieldKind::kImage},
                                                      {"label", format::FieldKind::kInteger}};
  const std::vector<std::string> classes_;
};

class SharedPiecesTest : public ReadAheadTest {
 protected:
  SharedPiecesTest() {
    for (int i = 0; i < kClasses; ++i) images_.push_back(plain_png(static_cast<std::uint8_t>(i)));
    const auto longest = std::ranges::max(images_, {}, &std::vector<std::byte>::size).size();
    std::string text;
    for (auto& image : images_) {
      image.resize(longest);  // decoders ignore bytes after the image
      text.append(reinterpret_cast<const char*>(image.data()), image.size());
    }
    path_ = folder_.write("blocks", text);
    bytes_ = text.size();
  }
  std::vector<std::vector<std::byte>> images_;
  std::string path_;
  std::uint64_t bytes_ = 0;
};

TEST_F(SharedPiecesTest, AreReadOnceForAllSamplesThatNeedThem) {
  for (const char* mode : {"always", "threads"})
    for (const bool is_shuffled : {false, true}) {
      set_mode(mode);
      const auto slow = std::make_shared<SlowStorage>(std::make_shared<FarStorage>(), SlowReads{.latency = 60ms});
      const auto format = std::make_shared<const BlockFormat>(slow, path_, bytes_);
      LoaderOptions options = options_;
      options.shuffle = is_shuffled;
      const auto ahead = pipeline_of(std::shared_ptr<const format::RecordFormat>(format), options);
      const std::uint64_t before = slow->counts().reads;
      const Labels labels = run(*ahead);
      EXPECT_EQ(labels.size(), kClasses / 8);
      EXPECT_TRUE(errors_.empty());
      // Threads read their first samples themselves, and a block may be fetched again if its samples are far apart.
      EXPECT_LE(format->reads, 2 * BlockFormat::kInBlock) << mode;
      EXPECT_LT(slow->counts().reads - before, kClasses / 2) << mode << is_shuffled;
    }
}

TEST_F(SharedPiecesTest, MayBeCancelled) {
  set_mode("always");
  const auto slow = std::make_shared<SlowStorage>(std::make_shared<FarStorage>(), SlowReads{.latency = 20ms});
  const auto format = std::make_shared<const BlockFormat>(slow, path_, bytes_);
  for (std::size_t batches = 0; batches < 4; ++batches) {
    const auto ahead = pipeline_of(std::shared_ptr<const format::RecordFormat>(format), options_);
    run(*ahead, {}, true, batches);
  }
  EXPECT_TRUE(errors_.empty());
}

TEST_F(ReadAheadTest, GivesTheSamplesThatWereGiven) {
  for (const char* mode : {"always", "threads", "auto", "never"}) {
    set_mode(mode);
    const auto ahead = given_pipeline(storage::short_reads_storage());
    for (const std::uint64_t seed : {1u, 2u, 3u})
      for (const std::size_t given : {0u, 2u, 50u}) {
        const auto batches = sampled(115, seed);
        ASSERT_EQ(run_given(*ahead, batches, given), labels_of(batches)) << mode << given;
      }
  }
}

TEST_F(ReadAheadTest, KeepsReadsOfAGivenOrderUnderWay) {
  for (const char* mode : {"always", "threads", "auto"}) {
    set_mode(mode);
    const auto slow = std::make_shared<SlowStorage>(storage::local_storage(), SlowReads{.latency = 60ms});
    const auto ahead = given_pipeline(slow);
    const auto batches = sampled(96, 5);
    EXPECT_EQ(run_given(*ahead, batches, 4), labels_of(batches));
    EXPECT_GE(slow->counts().most_at_once, 12u) << mode;
    EXPECT_LE(slow->counts().most_at_once, 5u * 8) << mode << ": more than was given";
    EXPECT_LE(slow->counts().reads, 96u * 5 / 4) << mode << ": more reads were repeated than when it is enabled";
  }
}

TEST_F(ReadAheadTest, AGivenOrderMayBeBrokenOff) {
  set_mode("always");
  const auto slow = std::make_shared<SlowStorage>(storage::local_storage(), SlowReads{.latency = 2ms});
  const auto ahead = given_pipeline(slow);
  for (std::uint64_t seed = 10; seed < 14; ++seed) {
    ASSERT_TRUE(ahead->begin({}, true));
    for (const auto& batch : sampled(64, seed)) ASSERT_TRUE(ahead->give(batch));
    Batch batch;
    ASSERT_TRUE(ahead->poll(kHang, batch));  // without requesting the seven others
    const auto batches = sampled(40, seed + 100);
    EXPECT_EQ(run_given(*ahead, batches, 3), labels_of(batches));
  }
}

TEST_F(ReadAheadTest, IsOffWhereTheStorageIsQuickAndWhereItIsNotWanted) {
  set_mode("never");
  EXPECT_EQ(pipeline(storage::local_storage(), options_)->explain_reads(), "");
  const auto slow = std::make_shared<SlowStorage>(storage::local_storage(), SlowReads{.latency = 5ms});
  run(*pipeline(slow, options_));
  EXPECT_LE(slow->counts().most_at_once, 3u);
  set_mode("auto");
  const auto fake = std::make_shared<FakeFormat>(10);  // has no pieces
  const auto recipe = make_recipe({"fake", fake}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
  const auto plan = plan_pipeline(**recipe, options_);
  EXPECT_EQ(plan->read_ahead_bytes, 0u);
  EXPECT_EQ(Pipeline(*recipe, *plan).explain_reads(), "");
}

TEST_F(ReadAheadTest, StopsReadingAheadOnceEverythingIsInMemory) {
  set_mode("auto");
  const auto format = format::FolderFormat::open(folder_.path("data"), {.storage = std::make_shared<FarStorage>()});
  LoaderOptions options = options_;
  options.num_workers = 1;
  auto recipe = make_recipe({"data", *format}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
  const auto plan = plan_pipeline(**recipe, options);
  const auto reads = ReadAhead::make(*format, *plan, ReadAheadMode::kAuto);
  reads->begin(true, 0);
  ReadAhead::Watch watch{.slow = 1000};  // this thread has seen slow reads: the next one enables it
  const auto epoch = std::make_shared<const plan::Plan>(whole_epoch(*plan));
  memory::Record record;
  const auto says = [&](std::string_view text) { return reads->explain().find(text) != std::string::npos; };
  const auto deadline = std::chrono::steady_clock::now() + kHang;
  for (std::uint64_t i = 0; !says("no longer") && std::chrono::steady_clock::now() < deadline; ++i) {
    const PlanRow row{i / kClasses, &epoch, i / 8 % 12, i % 8};
    ASSERT_TRUE(reads->read(row, epoch->at(i % kClasses).sample, {}, record, watch));
  }
  EXPECT_TRUE(says("no longer")) << reads->explain();
  reads->begin(true, 0);
  EXPECT_TRUE(says("no longer")) << "like remote storage whose objects are all cached by now";
  while (reads->held_bytes() > 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(reads->held_bytes(), 0u) << "reads in flight finished, and are no longer needed";
}

TEST_F(ReadAheadTest, AnErrorIsItsSamplesAlone) {
  std::filesystem::remove(folder_.path(name(7)));
  folder_.write(name(9), "");
  folder_.write(name(11), "no image");
  LoaderOptions options = options_;
  set_mode("auto");
  options.on_error = OnError::kReport;
  for (const char* mode : {"never", "always", "threads"}) {
    set_mode(mode);
    auto format_before = folder_.write(name(7), "listed");
    const auto ahead = pipeline(storage::local_storage(), options);
    std::filesystem::remove(format_before);
    ASSERT_TRUE(ahead->begin({}, false));
    std::map<std::string, ErrorCode> failed;
    Batch batch;
    while (*ahead->poll(kHang, batch) == Loader::Polled::kBatch)
      for (const BadRow& bad : batch.bad()) failed[bad.error.where.key] = bad.error.code;
    const std::map<std::string, ErrorCode> expected{{"107/image.png", ErrorCode::kStorage},
                                                    {"109/image.png", ErrorCode::kData},
                                                    {"111/image.png", ErrorCode::kData}};
    EXPECT_EQ(failed, expected) << mode;
  }
}

TEST_F(ReadAheadTest, EveryPolicyGivesTheSameBatches) {
  folder_.write(name(11), "no image");
  folder_.write(name(12), "no image");
  for (const OnError on_error : {OnError::kRaise, OnError::kSkip, OnError::kReplace}) {
    LoaderOptions options = options_;
    options.on_error = on_error;
    set_mode("never");
    const Labels expected = run(*pipeline(storage::local_storage(), options), {}, true);
    set_mode("always");
    const auto ahead = pipeline(storage::local_storage(), options);
    EXPECT_EQ(run(*ahead, {}, true), expected);
    EXPECT_EQ(run(*ahead, {}, true), expected);
  }
}

TEST_F(ReadAheadTest, KeepsWithinItsMemory) {
  set_mode("always");
  const auto slow = std::make_shared<SlowStorage>(storage::local_storage(), SlowReads{.latency = 2ms});
  LoaderOptions options = options_;
  options.memory_budget = 2 * (8 * 48 + 64 + 64);
  const auto small = pipeline(slow, options);
  EXPECT_EQ(small->plan().slots, 2u);
  EXPECT_EQ(run(*small).size(), 12u);
  EXPECT_LE(small->stats().held_bytes, options.memory_budget);
  EXPECT_LE(slow->counts().most_at_once, 3u) << "no memory is left for read-ahead";
  options.memory_budget = std::uint64_t{64} << 20;
  const auto large = pipeline(slow, options);
  EXPECT_GE(large->plan().read_ahead_bytes, 1000u);
  EXPECT_LE(large->plan().slots * large->plan().batch_bytes + large->plan().read_ahead_bytes, options.memory_budget);
}

TEST_F(ReadAheadTest, OfAGivenBudgetAnEighthIsForANetwork) {
  LoaderOptions options = options_;
  options.memory_budget = std::uint64_t{64} << 20;
  const auto near = pipeline(storage::local_storage(), options)->plan();
  const auto far = pipeline(std::make_shared<FarStorage>(), options)->plan();
  EXPECT_LT(near.read_ahead_bytes, options.memory_budget / 8);
  EXPECT_GE(far.read_ahead_bytes, options.memory_budget / 8);
  EXPECT_LE(far.slots * far.batch_bytes + far.read_ahead_bytes, options.memory_budget);
  options.memory_budget = 5 * far.batch_bytes;  // batches too large for an eighth
  EXPECT_GE(pipeline(std::make_shared<FarStorage>(), options)->plan().read_ahead_bytes, options.memory_budget / 8);
}

// The reads take an hour, so only cancellation can end the wait.
TEST_F(ReadAheadTest, WhoWaitsForAReadIsTold) {
  for (const ReadAheadMode mode : {ReadAheadMode::kAlways, ReadAheadMode::kThreads}) {
    const auto slow = std::make_shared<SlowStorage>(storage::local_storage(), SlowReads{.latency = 1h});
    const auto format = format::FolderFormat::open(folder_.path("data"), {.storage = slow});
    const auto recipe = make_recipe({"data", *format}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    const auto plan = plan_given(**recipe, {.batch_size = options_.batch_size, .num_workers = options_.num_workers});
    const auto reads = ReadAhead::make(*format, *plan, mode);
    reads->begin(true, 0);
    reads->give(sampled(8, 1)[0], 0);
    while (slow->counts().most_at_once < 8) std::this_thread::yield();
    std::vector<std::jthread> threads;
    std::vector<std::shared_ptr<FetchWaiter>> waiters;
    for (std::uint64_t row = 0; row < 3; ++row) {
      waiters.push_back(std::make_shared<FetchWaiter>());
      threads.emplace_back([&, row, watch = ReadAhead::Watch{.waiter = waiters[row]}]() mutable {
        memory::Record record;
        const auto read = reads->read({0, nullptr, 0, row, true}, sampled(8, 1)[0][row].index, {}, record, watch);
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().code, ErrorCode::kCancelled);
      });
    }
    for (const auto& waiter : waiters)  // until its fetch has it too: the thread is waiting then
      while (waiter.use_count() < 3) std::this_thread::yield();
    reads->cancel();
    threads.clear();
    reads->stop();
    EXPECT_EQ(reads->held_bytes(), 0u);
  }
}

// Storage that does not respond causes no read errors, because the set of good samples would otherwise depend on its
// speed. The loader's timeout reports the missing batch with the usual message, and the result is unaffected once the
// storage responds.
TEST_F(ReadAheadTest, WhatDoesNotComeIsAStallAndNoBadSample) {
  set_mode("never");
  const Labels expected = run(*pipeline(storage::local_storage(), options_));
  LoaderOptions options = options_;
  options.timeout = 20ms;
  options.on_error = OnError::kSkip;
  for (const char* mode : {"never", "always"}) {
    set_mode(mode);
    const auto gate = std::make_shared<storage::Gate>();
    const auto standing = pipeline(std::make_shared<storage::GatedStorage>(gate, false), options);
    const std::shared_ptr<void> opens(nullptr, [&](void*) { gate->open(); });  // or a failure would hang
    ASSERT_TRUE(standing->begin({}, false));
    Batch batch;
    for (int stalls = 0; stalls < 2;) {  // the second timeout after each read was long blocked
      const auto polled = standing->poll(1ms, batch);
      if (polled) {
        ASSERT_EQ(*polled, Loader::Polled::kPending);
        continue;
      }
      EXPECT_EQ(polled.error().code, ErrorCode::kStalled) << polled.error().message();
      EXPECT_NE(polled.error().what.find("batch 0 still waits for 8 of 8 samples"), std::string::npos)
          << polled.error().message();
      EXPECT_TRUE(polled.error().where.key.ends_with("/image.png")) << mode << ": " << polled.error().message();
      ++stalls;
    }
    gate->open();
    Labels labels;
    while (labels.size() < 12) {
      const auto polled = standing->poll(kHang, batch);
      ASSERT_TRUE(polled) << polled.error().message();
      ASSERT_EQ(*polled, Loader::Polled::kBatch);
      const auto* values = batch.fields()[1].array.as<std::int64_t>();
      labels.emplace_back(values, values + batch.rows());
    }
    EXPECT_EQ(labels, expected) << mode;
    EXPECT_EQ(standing->bad_count(), 0u) << mode;
    EXPECT_LE(gate->reads.load(), kClasses * 5u / 4) << mode << ": reads were abandoned and repeated";
  }
}

TEST_F(ReadAheadTest, StopsWithReadsUnderWay) {
  for (const char* mode : {"always", "threads"}) {
    set_mode(mode);
    const auto slow = std::make_shared<SlowStorage>(storage::local_storage(), SlowReads{.latency = 30ms});
    const auto ahead = pipeline(slow, options_);
    ASSERT_TRUE(ahead->begin({}, true));
    while (slow->counts().most_at_once < 5) std::this_thread::yield();
    ahead->stop();
    Batch batch;
    EXPECT_EQ(ahead->poll(kHang, batch).error().code, ErrorCode::kCancelled);
  }
}

}  // namespace
}  // namespace feedline::pipeline
