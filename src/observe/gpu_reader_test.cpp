// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>

#include "feedline/gpu.h"
#include "feedline/observe.h"
#include "observe/fake_root.h"
#include "observe/nvml.h"

namespace feedline::observe {
namespace {

// Sets the behaviour of the fake GPUs.
class GpuReaderTest : public testing::Test {
 protected:
  GpuReaderTest() { ::setenv("FAKE_NVML", root_.path("gpus").c_str(), 1); }
  ~GpuReaderTest() override { ::unsetenv("FAKE_NVML"); }

  void script(std::string_view lines) const { root_.write("gpus", lines); }
  static bool mentions(const GpuReader& reader, std::string_view words) {
    return std::ranges::any_of(reader.notes(), [&](const std::string& note) { return note.contains(words); });
  }

  FakeRoot root_;
};

TEST_F(GpuReaderTest, ReadsEveryGpu) {
  script(
      "gpus 2\nutilisation 0 37\nutilisation 1 100\nmemory 1 2048\npower 1 250500\nclock 1 1200\ntemperature 1 81\n"
      "capability 1 90\nreasons 1 4\n");
  GpuReader reader(FEEDLINE_FAKE_NVML);
  const auto rows = reader.sample(7);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].time_ns, 7u);
  EXPECT_EQ(rows[0].utilisation, 0.37);
  EXPECT_EQ(rows[0].slowed, false);
  EXPECT_EQ(rows[1].index, 1u);
  EXPECT_EQ(rows[1].utilisation, 1.0);
  EXPECT_EQ(rows[1].memory_used_bytes, 2048ull << 20);
  EXPECT_EQ(rows[1].power_w, 250.5);
  EXPECT_EQ(rows[1].clock_mhz, 1200u);
  EXPECT_EQ(rows[1].temperature_c, 81u);
  EXPECT_EQ(rows[1].slowed, true);
  ASSERT_EQ(reader.gpus().size(), 2u);
  EXPECT_EQ(reader.gpus()[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(reader.gpus()[1].name, "Fake GPU 1");
  EXPECT_EQ(reader.gpus()[1].capability, 90u);
  EXPECT_EQ(reader.gpus()[1].memory_bytes, 80ull << 30);
  EXPECT_TRUE(reader.notes().empty() && reader.unavailable().empty());
}

TEST_F(GpuReaderTest, AGpuThatIsIdleOrAtItsSetClockIsNotSlowed) {
  script("reasons 0 3\n");
  EXPECT_EQ(GpuReader(FEEDLINE_FAKE_NVML).sample(1).at(0).slowed, false);
}

TEST_F(GpuReaderTest, TellsWhatDoesNotChangeWithoutASample) {
  script("gpus 3\ngeneration 1 5\nwidth 1 8\nfail Handle 4 2\nfail Pcie 15\n");
  GpuReader reader(FEEDLINE_FAKE_NVML);
  EXPECT_TRUE(reader.driver().is_there);
  EXPECT_EQ(reader.driver().version, "570.10");
  EXPECT_EQ(reader.driver().gpus, 3u) << "counters of another user";
  ASSERT_EQ(reader.gpus().size(), 2u);
  EXPECT_EQ(reader.gpus()[0].pcie_generation, 4u);
  EXPECT_EQ(reader.gpus()[1].pcie_generation, 5u);
  EXPECT_EQ(reader.gpus()[1].pcie_width, 8u);
  EXPECT_EQ(reader.notes().size(), 1u) << "of the third GPU, and no throughput was requested";
}

TEST_F(GpuReaderTest, TellsHowAGpuIsReached) {
  script("gpus 3\ngeneration_now 0 1\nwidth_most 0 8\nbus 0 129\nnvlinks 1 3\nfail Pci 3 2\nfail WidthMost 3 2\n");
  GpuReader reader(FEEDLINE_FAKE_NVML);
  reader.driver();
  const auto& gpus = reader.gpus();
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(gpus[0].pcie_generation_now, 1u);
  EXPECT_EQ(gpus[0].pcie_width_most, 8u);
  EXPECT_EQ(gpus[0].bus_id, "00000000:81:00.0");
  EXPECT_EQ(gpus[0].nvlinks, std::nullopt);
  EXPECT_EQ(gpus[1].nvlinks, 3u);
  EXPECT_EQ(gpus[2].bus_id, "");
  EXPECT_EQ(gpus[2].pcie_width_most, std::nullopt);
  GpuReader early(FEEDLINE_FAKE_NVML_EARLY);
  early.driver();
  EXPECT_EQ(early.gpus().at(0).bus_id, "");
}

TEST_F(GpuReaderTest, ReadsPcieInTurns) {
  script("gpus 2\nreceived 0 1000\nsent 0 10\nreceived 1 3000\nsent 1 30\n");
  GpuReader reader(FEEDLINE_FAKE_NVML);
  auto rows = reader.sample(1);
  EXPECT_EQ(rows[0].received_bytes_per_s, 1e6);
  EXPECT_EQ(rows[0].sent_bytes_per_s, std::nullopt);
  EXPECT_EQ(rows[1].received_bytes_per_s, std::nullopt);
  for (int i = 0; i < 3; ++i) rows = reader.sample(2);
  EXPECT_EQ(rows[0].sent_bytes_per_s, 1e4);
  EXPECT_EQ(rows[1].received_bytes_per_s, 3e6);
  EXPECT_EQ(rows[1].sent_bytes_per_s, 3e4);
  script("gpus 2\nreceived 0 5000\n");
  EXPECT_EQ(reader.sample(3)[0].received_bytes_per_s, 5e6);
}

TEST_F(GpuReaderTest, ListsHoweverManyProcesses) {
  std::string lines = "gpus 2\npid 1 99\n";
  for (int pid = 1; pid <= 40; ++pid) lines += "pid 0 " + std::to_string(pid) + "\n";
  script(lines);
  GpuReader reader(FEEDLINE_FAKE_NVML);
  const auto found = reader.processes();
  ASSERT_EQ(found.size(), 41u);
  EXPECT_EQ(found[39].pid, 40);
  EXPECT_EQ(found[39].memory_bytes, 1ull << 30);
  EXPECT_EQ(found[40].index, 1u);
}

TEST_F(GpuReaderTest, AnEarlyDriverTellsWhatItHas) {
  script("utilisation 0 50\npid 0 7\n");
  GpuReader reader(FEEDLINE_FAKE_NVML_EARLY);
  const auto rows = reader.sample(1);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].utilisation, 0.5);
  EXPECT_FALSE(rows[0].power_w || rows[0].clock_mhz || rows[0].temperature_c || rows[0].slowed ||
               rows[0].received_bytes_per_s);
  EXPECT_EQ(reader.gpus()[0].capability, std::nullopt);
  EXPECT_EQ(reader.gpus()[0].pcie_width, std::nullopt);
  EXPECT_TRUE(mentions(reader, "GPU 0: its power is unavailable: the driver does not have this function"));
  const auto processes = reader.processes();
  ASSERT_EQ(processes.size(), 1u);
  EXPECT_EQ(processes[0].pid, 7);
  EXPECT_EQ(processes[0].memory_bytes, std::nullopt);  // all ones: not available
  const std::size_t notes = reader.notes().size();
  for (int i = 0; i < 10; ++i) reader.sample(2);
  EXPECT_EQ(reader.notes().size(), notes);  // each is reported once
}

TEST_F(GpuReaderTest, WhatFailsIsSaidAndTheRestGoesOn) {
  for (const std::string call :
       {"Utilization", "Memory", "Power", "Clock", "Temperature", "Reasons", "Pcie", "Processes"}) {
    for (const std::string status : {"3", "4", "999"}) {
      script("gpus 2\nutilisation 0 50\nfail " + call + " " + status + " 0\n");
      GpuReader reader(FEEDLINE_FAKE_NVML);
      const auto rows = reader.sample(1);
      reader.processes();
      ASSERT_EQ(rows.size(), 2u) << call;
      EXPECT_EQ(rows[0].utilisation.has_value(), call != "Utilization");
      EXPECT_TRUE(rows[1].utilisation && rows[1].power_w && rows[1].slowed) << call;
      ASSERT_EQ(reader.notes().size(), 1u) << call;
      EXPECT_TRUE(reader.notes()[0].starts_with("GPU 0: its ")) << reader.notes()[0];
    }
  }
  for (const std::string call : {"Name", "UUID", "Capability", "Mig", "Version", "Generation", "Width"}) {
    script("fail " + call + " 3\n");
    GpuReader reader(FEEDLINE_FAKE_NVML);
    EXPECT_EQ(reader.sample(1).size(), 1u) << call;
    EXPECT_EQ(reader.driver().version.has_value(), call != "Version");
    EXPECT_EQ(reader.gpus()[0].pcie_generation.has_value(), call != "Generation");
    EXPECT_EQ(reader.gpus()[0].pcie_width.has_value(), call != "Width");
  }
}

TEST_F(GpuReaderTest, ALostGpuIsLeftAlone) {
  script("gpus 2\nutilisation 1 60\n");
  GpuReader reader(FEEDLINE_FAKE_NVML);
  EXPECT_TRUE(reader.sample(1)[0].utilisation);
  script("gpus 2\nutilisation 1 60\nfail Utilization 15 0\n");
  for (int i = 0; i < 5; ++i) {
    const auto rows = reader.sample(2);
    EXPECT_FALSE(rows[0].utilisation || rows[0].power_w);
    EXPECT_EQ(rows[1].utilisation, 0.6);
  }
  EXPECT_EQ(reader.notes().size(), 1u);
  EXPECT_TRUE(mentions(reader, "GPU 0 was lost"));
  script("gpus 2\nfail Handle 15 0\n");
  GpuReader later(FEEDLINE_FAKE_NVML);
  EXPECT_EQ(later.sample(3).at(0).index, 1u);
  EXPECT_TRUE(mentions(later, "GPU 0 cannot be queried"));
}

TEST_F(GpuReaderTest, PartitionsAreNamed) {
  script("mig 0 1\nfail Utilization 3\n");
  GpuReader reader(FEEDLINE_FAKE_NVML);
  EXPECT_FALSE(reader.sample(1).at(0).utilisation);
  EXPECT_TRUE(reader.gpus()[0].partitioned);
  EXPECT_TRUE(mentions(reader, "divided by MIG: its utilisation"));
}

TEST_F(GpuReaderTest, SaysWhyThereIsNothing) {
  const auto reason = [](const std::string& library) {
    GpuReader reader(library);
    EXPECT_TRUE(reader.sample(1).empty() && reader.processes().empty() && reader.gpus().empty());
    return reader.unavailable();
  };
  const auto is_there = [](const std::string& library) {
    GpuReader reader(library);
    EXPECT_FALSE(reader.driver().version || reader.driver().gpus) << library;
    return reader.driver().is_there;
  };
  EXPECT_FALSE(is_there("libno-such-nvml.so.1"));
  EXPECT_TRUE(is_there("libc.so.6"));
  script("fail Init 9\n");
  EXPECT_TRUE(is_there(FEEDLINE_FAKE_NVML));
  EXPECT_TRUE(reason("libno-such-nvml.so.1").starts_with("there is no libno-such-nvml.so.1"));
  EXPECT_TRUE(reason("libc.so.6").ends_with("lacks NVML's calls"));
  script("fail Init 18\n");
  EXPECT_TRUE(reason(FEEDLINE_FAKE_NVML).contains("Driver/library version mismatch; the driver was updated"));
  script("fail Init 9\n");
  EXPECT_TRUE(reason(FEEDLINE_FAKE_NVML).contains("--gpus all"));
  script("fail Init 999\n");
  EXPECT_TRUE(reason(FEEDLINE_FAKE_NVML).contains("error 999"));  // the library has no text for it
  script("fail Count 999\n");
  EXPECT_TRUE(reason(FEEDLINE_FAKE_NVML).starts_with("NVML cannot count"));
  script("gpus 0\n");
  EXPECT_TRUE(reason(FEEDLINE_FAKE_NVML).contains("no GPU"));
}

TEST_F(GpuReaderTest, TheSamplerReadsThemNextToTheHost) {
  script("gpus 1\nutilisation 0 80\npid 0 " + std::to_string(::getpid()) + "\n");
  auto sampler = HostSampler::start({.pid = ::getpid(), .period_ns = 5'000'000, .gpu_library = FEEDLINE_FAKE_NVML});
  ASSERT_TRUE(sampler) << sampler.error().message();
  while (sampler->record().gpu.size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  sampler->stop();
  const HostRecord record = sampler->record();
  EXPECT_EQ(record.gpu[1].utilisation, 0.8);
  EXPECT_GE(record.gpu[1].time_ns - record.gpu[0].time_ns, 250'000'000u);
  ASSERT_EQ(record.gpus.size(), 1u);
  ASSERT_EQ(record.gpu_processes.size(), 1u);
  EXPECT_EQ(record.gpu_processes[0].pid, ::getpid());
}

TEST_F(GpuReaderTest, OpeningTheDriverDelaysNoSample) {
  script("gpus 1\nutilisation 0 80\nopening 20\n");  // which is 1/800 of 16 s
  auto sampler = HostSampler::start({.pid = ::getpid(), .period_ns = 5'000'000, .gpu_library = FEEDLINE_FAKE_NVML});
  ASSERT_TRUE(sampler) << sampler.error().message();
  while (sampler->record().gpu.size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  sampler->stop();
  const HostRecord record = sampler->record();
  EXPECT_GE(record.sampler_cpu_ns, 19'000'000u);  // it is reported nevertheless
  EXPECT_LT(record.gpu[1].time_ns - record.gpu[0].time_ns, 10'000'000'000u);
}

TEST_F(GpuReaderTest, TheSamplerGoesOnWithoutGpus) {
  auto sampler = HostSampler::start({.pid = ::getpid(), .period_ns = 1'000'000, .gpu_library = "libno-such-nvml.so.1"});
  ASSERT_TRUE(sampler);
  while (sampler->record().host.size() < 4) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  sampler->stop();
  EXPECT_TRUE(sampler->record().gpu_unavailable.starts_with("there is no"));
  EXPECT_TRUE(sampler->record().gpu.empty());
}

}  // namespace
}  // namespace feedline::observe
