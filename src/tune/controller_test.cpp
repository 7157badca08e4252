// SPDX-License-Identifier: Apache-2.0
#include "tune/controller.h"

#include <gtest/gtest.h>

#include "tune/plant_fixture.h"

namespace feedline::tune {
namespace {

// Threads that only compute: each increases the rate nearly as much as the first.
Plant computing(int most = 8) {
  Plant plant;
  plant.rate = [](int threads, double) { return 20.0 * threads / (1 + 0.02 * (threads - 1)); };
  plant.bounds = {{1, 2}, {most, 2}, static_cast<double>(most)};
  plant.first = {most, 2};
  return plant;
}

void expect_near_best(const Plant& plant, double converged = 60, double end = 240, unsigned seed = 1,
                      double regret = 0.05, int most_changes = 8) {
  Controller controller(plant.bounds, plant.first);
  const Trajectory trajectory = run(plant, end, &controller, seed);
  const Best best = best_fixed(plant, converged, end);
  EXPECT_GT(trajectory.rate(converged), (1 - regret) * best.rate);
  EXPECT_LT(trajectory.mean_threads(converged), best.threads + 1 + best.threads / 8.0);
  EXPECT_LE(trajectory.changes_between(0, 60), 32);
  for (double minute = 60; minute < end; minute += 60)
    EXPECT_LE(trajectory.changes_between(minute, minute + 60), most_changes);
  for (const auto& [t, change] : trajectory.changes) {
    EXPECT_GE(change.to.threads, plant.bounds.least.threads);
    EXPECT_LE(change.to.threads, plant.bounds.most.threads);
    EXPECT_NE(change.from, change.to);
  }
}

TEST(Controller, KeepsAllThreadsWhereAllCount) {
  expect_near_best(computing());
  const Plant plant = computing();
  Controller controller(plant.bounds, plant.first);
  EXPECT_TRUE(run(plant, 240, &controller).changes.empty()) << "a trial could not gain anything";
}

TEST(Controller, FindsItsWayUp) {
  for (const int most : {2, 3, 8, 64}) {
    SCOPED_TRACE(most);
    Plant plant = computing(most);
    plant.first.threads = 1;
    expect_near_best(plant);
  }
}

TEST(Controller, HandsCoresBackToALoopThatNeverWaits) {
  for (const int most : {2, 8, 64})
    for (const double step_s : {0.2, 0.045, 0.017}) {
      SCOPED_TRACE(testing::Message() << most << " threads, " << step_s << " s a step");
      Plant plant = computing(most);
      plant.own_s = [step_s](int, double) { return step_s; };
      expect_near_best(plant);
    }
}

TEST(Controller, LeavesThreadsOutThatOnlyWaitForStorage) {
  Plant plant = computing(16);
  plant.rate = [](int threads, double) { return std::min(20.0 * threads, 90.0); };
  plant.thread_cpus = 0.2;
  plant.reading = 0.8;
  expect_near_best(plant, 90, 300);
}

// Latency that is not hidden: each thread increases the rate, although none computes.
TEST(Controller, KeepsThreadsThatHideLatency) {
  Plant plant = computing(16);
  plant.thread_cpus = 0.1;
  plant.reading = 0.9;
  expect_near_best(plant, 90, 300);
}

// The threads of the training loop and of the loader share four CPUs.
TEST(Controller, StepsAsideForALoopThatComputes) {
  Plant plant = computing(4);
  plant.rate = [](int threads, double) { return 9.0 * threads; };
  plant.loop_cpus = 3;
  plant.own_s = [](int threads, double) { return threads <= 2 ? 0.05 : 0.05 * (1 + 0.6 * (threads - 2)); };
  expect_near_best(plant, 90, 300);
}

TEST(Controller, IsNotMisledByNoise) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Plant plant = computing();
    plant.noise = 0.4;
    expect_near_best(plant, 60, 300, seed, 0.08, 16);
    plant.own_s = [](int, double) { return 0.03; };
    expect_near_best(plant, 60, 300, seed, 0.08, 16);
  }
}

// On a shared machine, everything is slower for some seconds, and then normal again.
TEST(Controller, EnduresAnUnsteadyMachine) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Plant plant = computing();
    plant.noise = 0.2;
    plant.unsteady = 0.15;
    plant.thread_cpus = 0.5;
    Controller controller(plant.bounds, plant.first);
    const Trajectory trajectory = run(plant, 600, &controller, seed);
    EXPECT_GT(trajectory.rate(60), 0.90 * best_fixed(plant, 60, 600).rate);
    EXPECT_LE(trajectory.changes_between(0, 600), 80);
  }
}

TEST(Controller, FollowsALoopThatGetsFaster) {
  Plant plant = computing();
  plant.own_s = [](int, double t) { return t < 120 ? 0.1 : 0.01; };
  Controller controller(plant.bounds, plant.first);
  const Trajectory trajectory = run(plant, 240, &controller);
  EXPECT_GT(trajectory.rate(135), 0.95 * best_fixed(plant, 135, 240).rate);
  Controller before(plant.bounds, plant.first);
  EXPECT_LT(run(plant, 119, &before).mean_threads(30), 1.5);
}

TEST(Controller, FollowsALoaderThatGetsSlowerAndALoopThatDoes) {
  Plant plant = computing();
  plant.own_s = [](int, double) { return 0.02; };
  plant.rate = [](int threads, double t) { return (t < 120 || t > 360 ? 60.0 : 12.0) * threads; };
  Controller controller(plant.bounds, plant.first);
  const Trajectory trajectory = run(plant, 600, &controller);
  EXPECT_GT(trajectory.rate(0), 0.93 * 50);
  EXPECT_LT(trajectory.mean_threads(420), 1.6);
}

// Some steps of the loop take no time: more prefetching helps, more threads do not.
TEST(Controller, ReadsFurtherAheadForALoopThatComesInBursts) {
  Plant plant = computing(2);
  plant.bounds.most.depth = 16;
  plant.rate = [](int threads, double) { return 30.0 * threads; };
  int step = 0;
  plant.own_s = [&step](int, double) { return ++step % 8 == 0 ? 0.2 : 1e-4; };
  Controller controller(plant.bounds, plant.first);
  const Trajectory trajectory = run(plant, 120, &controller);
  EXPECT_GE(controller.settings().depth, 8);
  EXPECT_LE(controller.settings().depth, plant.bounds.most.depth);
  EXPECT_GT(trajectory.rate(60), 1.15 * run(plant, 120, nullptr).rate(60));
}

TEST(Controller, TakesAllThreadsWhereNothingComes) {
  Plant plant = computing();
  plant.own_s = [](int, double) { return 0.5; };
  Controller controller(plant.bounds, plant.first);
  run(plant, 60, &controller);
  ASSERT_EQ(controller.settings().threads, 1);
  const auto change = controller.starved();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->to.threads, 8);
  EXPECT_FALSE(controller.starved()) << "all of them are used";
}

TEST(Controller, ALimitHoldsAtOnceAndForGood) {
  Plant plant = computing();
  Controller controller(plant.bounds, plant.first);
  const auto change = controller.limit_threads(7);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->to.threads, 7);
  for (const auto& [t, later] : run(plant, 120, &controller).changes) EXPECT_LE(later.to.threads, 7);
  EXPECT_EQ(controller.settings().threads, 7);
  EXPECT_FALSE(controller.limit_threads(7));
}

// The settings stay within the bounds, whatever is measured.
TEST(Controller, NeverLeavesItsBounds) {
  std::mt19937 random(7);
  const auto any = [&](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
  for (int round = 0; round < 200; ++round) {
    const Bounds bounds{
        {1, 1 + static_cast<int>(any(3))}, {1 + static_cast<int>(any(70)), 4 + static_cast<int>(any(9))}, 8};
    Controller controller(bounds, {1 + static_cast<int>(any(bounds.most.threads - 1)), bounds.least.depth});
    for (int i = 0; i < 500; ++i) {
      const double seconds = 0.2 + any(0.1);
      const auto change =
          controller.step({seconds, 4 + any(100), any(1) < 0.3 ? 0 : any(seconds), any(4), any(8), any(8), any(0.05)});
      if (change) {
        EXPECT_EQ(change->to, controller.settings());
      }
      if (any(1) < 0.01) static_cast<void>(controller.starved());
      const Settings now = controller.settings();
      ASSERT_GE(now.threads, 1);
      ASSERT_LE(now.threads, bounds.most.threads);
      ASSERT_GE(now.depth, bounds.least.depth);
      ASSERT_LE(now.depth, bounds.most.depth);
    }
  }
}

}  // namespace
}  // namespace feedline::tune
