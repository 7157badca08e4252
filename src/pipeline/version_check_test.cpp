// SPDX-License-Identifier: Apache-2.0
#include "pipeline/version_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"
#include "storage/gated_storage.h"

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kHang = 200s;  // exceeded only by a hang
constexpr std::size_t kObjects = 20;

// The state shared by a test and its objects.
struct Asked {
  std::shared_ptr<storage::Gate> gate = std::make_shared<storage::Gate>();
  std::mutex mutex;
  // guarded by mutex
  std::map<std::size_t, Error> faults;  // by object
  std::multiset<std::size_t> noted;
  std::size_t now = 0, most = 0;  // requests in flight
};

class AskedReader final : public storage::Reader {
 public:
  AskedReader(std::shared_ptr<Asked> asked, std::size_t object) : asked_(std::move(asked)), object_(object) {}
  Result<storage::ObjectStat> stat() const override { return storage::ObjectStat{1, 1}; }
  Result<std::size_t> read_at(std::uint64_t /*offset*/, std::span<std::byte> out) const override {
    {
      const std::lock_guard lock(asked_->mutex);
      asked_->most = std::max(asked_->most, ++asked_->now);
    }
    ++asked_->gate->reads;
    asked_->gate->wait();
    const std::lock_guard lock(asked_->mutex);
    --asked_->now;
    if (const auto fault = asked_->faults.find(object_); fault != asked_->faults.end())
      return std::unexpected(fault->second);
    return out.size();
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  const std::string& name() const override { return name_; }

 private:
  const std::shared_ptr<Asked> asked_;  // also of an abandoned read
  const std::size_t object_;
  const std::string name_ = "object";
};

class AskedObject final : public format::UncheckedObject {
 public:
  AskedObject(std::shared_ptr<Asked> asked, std::size_t object) : asked_(std::move(asked)), object_(object) {}
  Result<storage::Piece> piece() const override {
    return storage::Piece{std::make_shared<const AskedReader>(asked_, object_), {}, 0, 1, {}};
  }
  Result<void> note(Result<void> came) const override {
    const std::lock_guard lock(asked_->mutex);
    asked_->noted.insert(object_);
    return came;
  }

 private:
  const std::shared_ptr<Asked> asked_;  // also of an abandoned read
  const std::size_t object_;
};

class UncheckedFormat final : public format::RecordFormat {
 public:
  explicit UncheckedFormat(std::shared_ptr<Asked> asked, std::size_t objects = kObjects)
      : asked_(std::move(asked)), objects_(objects) {}
  std::string_view name() const override { return "unchecked"; }
  std::uint64_t size() const override { return fake_.size(); }
  const std::vector<format::FieldDescription>& fields() const override { return fake_.fields(); }
  const std::vector<std::string>& classes() const override { return fake_.classes(); }
  Result<void> read(std::uint64_t index, memory::Record& record) const override { return fake_.read(index, record); }
  Where where(std::uint64_t index) const override { return fake_.where(index); }
  std::uint64_t fingerprint() const override { return 1; }
  Result<Inspection> inspect() const override { return Inspection{}; }
  std::vector<std::unique_ptr<const format::UncheckedObject>> unchecked() const override {
    std::vector<std::unique_ptr<const format::UncheckedObject>> all;
    for (std::size_t i = 0; i < objects_; ++i) all.push_back(std::make_unique<const AskedObject>(asked_, i));
    return all;
  }

 private:
  const std::shared_ptr<Asked> asked_;
  const std::size_t objects_;
  const FakeFormat fake_{8};
};

Error changed() { return {ErrorCode::kStorage, "it was replaced", {}, 0}; }

class VersionCheckTest : public testing::Test {
 protected:
  // Waits until the state of all objects is known, or returns an error.
  Result<bool> asked_all() {
    const auto until = std::chrono::steady_clock::now() + kHang;
    while (std::chrono::steady_clock::now() < until)
      if (const auto is_over = check->wait(1000ms); !is_over || *is_over) return is_over;
    return false;
  }
  std::size_t noted() {
    const std::lock_guard lock(asked->mutex);
    return asked->noted.size();
  }

  const std::shared_ptr<Asked> asked = std::make_shared<Asked>();
  const std::shared_ptr<const UncheckedFormat> format = std::make_shared<UncheckedFormat>(asked);
  const std::unique_ptr<VersionCheck> check = VersionCheck::make(*format);
};

TEST_F(VersionCheckTest, AsksForEachObjectOnceAndForFewAtATime) {
  ASSERT_TRUE(check->begin());
  ASSERT_TRUE(check->begin()) << "it is already running";
  while (asked->gate->reads < 8) std::this_thread::yield();
  EXPECT_EQ(check->wait(0ms), false) << "no request is answered";
  EXPECT_TRUE(check->trouble());
  asked->gate->open();
  EXPECT_EQ(asked_all(), true);
  EXPECT_EQ(asked->most, 8u) << "samples need the connections";
  EXPECT_EQ(std::set<std::size_t>(asked->noted.begin(), asked->noted.end()).size(), kObjects);
  EXPECT_EQ(asked->noted.size(), kObjects);
  ASSERT_TRUE(check->begin()) << "another epoch";
  EXPECT_EQ(check->wait(0ms), true);
  EXPECT_EQ(noted(), kObjects) << "is not checked again";
  EXPECT_NE(check->explain().find("20 have been checked"), std::string::npos) << check->explain();
}

TEST_F(VersionCheckTest, AnErrorStaysUntilTheNextEpochWhichAsksForWhatIsNotKnown) {
  asked->faults.emplace(13, changed());
  asked->gate->open();
  ASSERT_TRUE(check->begin());
  const auto first = asked_all();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().what, changed().what);
  EXPECT_FALSE(check->trouble());
  EXPECT_FALSE(check->trouble()) << "for every caller";
  const std::size_t before = noted();
  EXPECT_GE(before, 6u) << "eight are in flight at once, so as many had finished before the 13th started";
  {
    const std::lock_guard lock(asked->mutex);
    EXPECT_EQ(asked->noted.count(13), 1u);
    asked->faults.clear();
  }
  ASSERT_TRUE(check->begin());
  EXPECT_TRUE(check->trouble());
  EXPECT_EQ(asked_all(), true);
  EXPECT_EQ(noted(), kObjects + 1) << "that one twice, and no other";
}

TEST_F(VersionCheckTest, StopsWithoutWaitingForAnswers) {
  ASSERT_TRUE(check->begin());
  while (asked->gate->reads < 8) std::this_thread::yield();
  check->stop();  // would hang if it waited for the gate
  EXPECT_TRUE(check->trouble()) << "abandoned requests are not errors";
  EXPECT_EQ(noted(), 0u);
  asked->gate->open();
}

TEST(VersionCheck, IsNoneWhereNothingIsToBeAsked) {
  const UncheckedFormat format(std::make_shared<Asked>(), 0);
  EXPECT_EQ(VersionCheck::make(format), nullptr);
}

// ---- with a pipeline

class CheckedEpochTest : public VersionCheckTest {
 protected:
  // Polls once. The epoch has two batches, which do not need the checked objects.
  Result<Loader::Polled> polled(std::chrono::milliseconds wait = 1000ms) {
    Batch batch;
    return pipeline_->poll(wait, batch);
  }
  Result<Loader::Polled> asked_end() {
    auto end = polled();
    while (end && *end == Loader::Polled::kPending) end = polled();
    return end;
  }
  void begin() {
    const auto recipe = make_recipe(Source("unchecked", format), {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    ASSERT_TRUE(recipe) << recipe.error().message();
    const auto plan = plan_pipeline(**recipe, {.batch_size = 4, .num_workers = 1});
    ASSERT_TRUE(plan) << plan.error().message();
    pipeline_ = std::make_unique<Pipeline>(*recipe, *plan);
    ASSERT_TRUE(pipeline_->begin({}, false));
  }
  void take_batches() {
    for (int batches = 0; batches < 2;) {
      const auto one = polled();
      ASSERT_TRUE(one) << one.error().message();
      batches += *one == Loader::Polled::kBatch;
    }
  }

  std::unique_ptr<Pipeline> pipeline_;
};

TEST_F(CheckedEpochTest, EndsOnceAllIsKnown) {
  ASSERT_NO_FATAL_FAILURE(begin());
  ASSERT_NO_FATAL_FAILURE(take_batches());  // none of them waits for an answer
  EXPECT_EQ(polled(0ms), Loader::Polled::kPending);
  EXPECT_EQ(polled(), Loader::Polled::kPending) << "long after the last batch";
  EXPECT_NE(pipeline_->explain_reads().find("without a request"), std::string::npos);
  asked->gate->open();
  EXPECT_EQ(asked_end(), Loader::Polled::kEnd);
  EXPECT_EQ(noted(), kObjects);
}

TEST_F(CheckedEpochTest, DoesNotEndWhereAnObjectIsAnotherOne) {
  asked->faults.emplace(kObjects - 1, changed());
  ASSERT_NO_FATAL_FAILURE(begin());
  ASSERT_NO_FATAL_FAILURE(take_batches());
  asked->gate->open();
  const auto end = asked_end();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().what, changed().what);
  EXPECT_FALSE(polled()) << "and never does";
}

TEST_F(CheckedEpochTest, IsClosedWhileAnswersAreMissing) {
  ASSERT_NO_FATAL_FAILURE(begin());
  pipeline_.reset();  // would hang
  asked->gate->open();
}

}  // namespace
}  // namespace feedline::pipeline
