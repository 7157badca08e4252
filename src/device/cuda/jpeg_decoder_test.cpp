// SPDX-License-Identifier: Apache-2.0

// Tests nvJPEG decoding of batch rows with the fake library: pixels for every order of work that streams allow,
// failures of each call, and the messages if nvJPEG is missing.

#include "device/cuda/jpeg_decoder.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>
#include <thread>

#include "device/cuda/failing_calls_fixture.h"
#include "device/cuda/fake_driver.h"
#include "device/cuda/kernels/pixel_job.h"
#include "device/cuda/nvjpeg.h"

namespace feedline::device::cuda {
namespace {

constexpr Size kImage{24, 40};
constexpr Size kRow{8, 16};
constexpr std::size_t kRowBytes = 8 * 16 * 3, kStride = 128, kRows = 4, kMade = 2048;

// Writes a row of a batch: the upper left corner of an image.
void write_row(std::byte* row, std::uint64_t address) {
  const CachedRow entry{.pixels = address, .stride = 40 * 3, .width = 16, .height = 8};
  std::memcpy(row, &entry, sizeof entry);
}

Finish finish_of(std::shared_ptr<ImageDecoder> decoder) {
  return {.made_bytes = kMade,
          .images = {{.from_resident = Finish::Images::FromResident{0, kStride, kRows},
                      .rows = kRows,
                      .size = kRow,
                      .layout = Layout::kNhwc,
                      .dtype = DType::kUint8}},
          .scratch_bytes = kMade,
          .decoded = std::move(decoder)};
}

// Makes a batch whose rows are JPEGs with these pixel values.
Result<Begun> make_batch(const FakeDriver& fake, Device& device, const std::shared_ptr<ImageDecoder>& decoder,
                         const std::array<int, kRows>& values) {
  FEEDLINE_TRY(auto lease, memory::Lease::take(device.allocator(), kRows * kStride));
  for (std::size_t i = 0; i < kRows; ++i) {
    std::byte* const row = lease->data() + i * kStride;
    auto file = fake.jpeg(kImage, values[i]);
    FEEDLINE_TRY(const auto address, decoder->decode(file, kImage, row));
    std::ranges::fill(file, std::byte{0});  // the file may be freed at once
    if (!address) return data_error("not taken", "test");
    write_row(row, *address);
  }
  return device.begin_making(std::move(lease), finish_of(decoder));
}

void expect_rows(const FakeDriver& fake, const Begun& begun, const std::array<int, kRows>& values) {
  const std::vector<std::byte> found = fake.content(begun);
  for (std::size_t i = 0; i < kRows * kRowBytes; ++i)
    ASSERT_EQ(found[i], static_cast<std::byte>(values[i / kRowBytes])) << "byte " << i;
}

class JpegDecoders : public testing::Test {
 protected:
  void TearDown() override {
    decoder_.reset();
    device_.reset();
    fake_.expect_nothing_left();
  }
  void open() {
    auto device = cuda_device(0);
    ASSERT_TRUE(device) << device.error().message();
    device_ = std::move(*device);
    ASSERT_TRUE(device_->makes_elements());
    auto decoder = device_->decode_images();
    ASSERT_TRUE(decoder) << decoder.error().message();
    decoder_ = std::move(*decoder);
  }

  FakeDriver fake_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<ImageDecoder> decoder_;
};

TEST_F(JpegDecoders, RowsAreMadeOfWhatTheyDecode) {
  open();
  const auto begun = make_batch(fake_, *device_, decoder_, {10, 90, 170, 250});
  ASSERT_TRUE(begun) << begun.error().message();
  expect_rows(fake_, *begun, {10, 90, 170, 250});
  EXPECT_EQ(decoder_->counts().decoded, 4u);
  EXPECT_EQ(decoder_->name(), "nvJPEG 12.4.0");
  EXPECT_FALSE(decoder_->failure());
}

// Streams run in any order that CUDA allows, and some batches are abandoned before they are made.
TEST_F(JpegDecoders, EveryOrderOfStreamsGivesThePixels) {
  fake_.hold(1);
  open();
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::minstd_rand random(seed + 1);
    std::vector<std::pair<Begun, std::array<int, kRows>>> batches;
    for (int number = 0; number < 3; ++number) {
      std::array<int, kRows> values{};
      for (int& value : values) value = static_cast<int>(random() % 200) + 20;
      if (random() % 4 == 0) {
        auto lease = *memory::Lease::take(device_->allocator(), kRows * kStride);
        ASSERT_TRUE(decoder_->decode(fake_.jpeg(kImage, 7), kImage, lease->data()));
      }
      auto begun = make_batch(fake_, *device_, decoder_, values);
      ASSERT_TRUE(begun) << begun.error().message();
      batches.emplace_back(std::move(*begun), values);
      for (auto steps = random() % 12; steps > 0; --steps) fake_.step(random());
    }
    while (fake_.step(random()) != 0) {
    }
    for (const auto& [begun, values] : batches) expect_rows(fake_, begun, values);
    ASSERT_EQ(fake_.violations(), 0) << "seed " << seed << ": " << fake_.words();
  }
  EXPECT_LT(fake_.count("memory"), 60) << "memory is reused";
}

TEST_F(JpegDecoders, ThreadsDecodeNextToEachOther) {
  open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < 10; ++i) {
        const std::array<int, kRows> values{t * 50 + i, t * 50 + i + 1, 3, 4};
        const auto begun = make_batch(fake_, *device_, decoder_, values);
        ASSERT_TRUE(begun) << begun.error().message();
        expect_rows(fake_, *begun, values);
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST_F(JpegDecoders, WhatTheHostMadeIsBrought) {
  open();
  auto lease = *memory::Lease::take(device_->allocator(), kRows * kStride);
  std::memset(lease->data(), 0, kRows * kStride);  // the other rows have no image
  std::vector<std::byte> pixels(24 * 40 * 3, std::byte{77});
  const auto address = decoder_->bring(pixels, lease->data());
  ASSERT_TRUE(address) << address.error().message();
  std::ranges::fill(pixels, std::byte{0});
  write_row(lease->data(), *address);
  const auto begun = device_->begin_making(std::move(lease), finish_of(decoder_));
  ASSERT_TRUE(begun) << begun.error().message();
  expect_rows(fake_, *begun, {77, 0, 0, 0});
  EXPECT_EQ(decoder_->counts().brought, 1u);
}

TEST_F(JpegDecoders, LeaveToTheHostWhatTheyDoNotDecode) {
  open();
  const auto sound = fake_.jpeg(kImage, 50);
  const std::byte row{};
  const auto is_taken = [&](std::span<const std::byte> file, Size size) {
    const auto address = decoder_->decode(file, size, &row);
    EXPECT_TRUE(address) << address.error().message();
    return address && *address;
  };
  EXPECT_TRUE(is_taken(sound, kImage));
  EXPECT_FALSE(is_taken(std::span(sound).first(sound.size() / 2), kImage)) << "cut off";
  EXPECT_FALSE(is_taken(fake_.jpeg(kImage, 50, 1), kImage)) << "grey";
  EXPECT_FALSE(is_taken(std::vector<std::byte>(100), kImage)) << "nothing";
  EXPECT_FALSE(is_taken(sound, {24, 41})) << "of a size other than in the header that the host read";
  EXPECT_TRUE(is_taken(sound, kImage)) << "after those";
  EXPECT_EQ(decoder_->counts().decoded, 2u);
  EXPECT_FALSE(decoder_->failure());
}

TEST_F(JpegDecoders, AnotherImageForAPlaceTakesTheOnesMemory) {
  open();
  const std::byte row{};
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(decoder_->decode(fake_.jpeg(kImage, i), kImage, &row));
  EXPECT_EQ(fake_.count("memory"), 2) << "one exists while the next is decoded";
}

// The image's memory is reused and written by another stream.
TEST_F(JpegDecoders, AnImageThatNobodyUsedDoesNotComeLate) {
  fake_.hold(1);
  open();
  const std::vector<std::byte> pixels(24 * 40 * 3, std::byte{77});
  for (unsigned seed = 1; seed < 30; ++seed) {
    std::minstd_rand random(seed);
    auto lease = *memory::Lease::take(device_->allocator(), kRows * kStride);
    std::memset(lease->data(), 0, kRows * kStride);
    ASSERT_TRUE(decoder_->decode(fake_.jpeg(kImage, 9), kImage, lease->data()));
    ASSERT_TRUE(decoder_->bring(pixels, lease->data()));
    const auto address = decoder_->bring(pixels, lease->data());  // at the decoded image's address
    ASSERT_TRUE(address);
    write_row(lease->data(), *address);
    const auto begun = device_->begin_making(std::move(lease), finish_of(decoder_));
    ASSERT_TRUE(begun) << begun.error().message();
    while (fake_.step(random()) != 0) {
    }
    expect_rows(fake_, *begun, {77, 0, 0, 0});
  }
}

TEST_F(JpegDecoders, ALoaderThatEndsLeavesItsBatchesWhole) {
  fake_.hold(1);
  open();
  const auto begun = make_batch(fake_, *device_, decoder_, {1, 2, 3, 4});
  ASSERT_TRUE(begun) << begun.error().message();
  decoder_.reset();
  device_.reset();
  while (fake_.step(3) != 0) {
  }
  expect_rows(fake_, *begun, {1, 2, 3, 4});
}

// ---- every call fails once ----

Result<void> run(const FakeDriver& fake) {
  FEEDLINE_TRY(auto device, cuda_device(0));
  if (!device->makes_elements()) return config_error(device->explain());
  FEEDLINE_TRY(auto decoder, device->decode_images());
  for (int i = 0; i < 3; ++i) {
    const std::array<int, kRows> values{i, i + 1, i + 2, i + 3};
    FEEDLINE_TRY(auto begun, make_batch(fake, *device, decoder, values));
    FEEDLINE_CHECK_OK(begun.ready->wait());
    expect_rows(fake, begun, values);
  }
  return {};
}

const std::set<std::string> kEnds = {"nvjpegDestroy",
                                     "nvjpegDecoderDestroy",
                                     "nvjpegJpegStateDestroy",
                                     "nvjpegBufferPinnedDestroy",
                                     "nvjpegBufferDeviceDestroy",
                                     "nvjpegJpegStreamDestroy",
                                     "nvjpegDecodeParamsDestroy"};

class EveryCallOfNvjpegFails : public testing::TestWithParam<const char*> {};

TEST_P(EveryCallOfNvjpegFails, OnceAndIsNamed) {
  const std::string call = GetParam();
  const FailingCall failing{.name = call,
                            .code = kJpegExecutionFailed,
                            .most_uses = 20,
                            .holds = false,
                            .loses = kEnds.contains(call),
                            .says = {call + ": NVJPEG_STATUS_EXECUTION_FAILED; "}};
  EXPECT_EQ(courses_that_fail(failing, run) > 0, !kEnds.contains(call)) << call;
}

#define FEEDLINE_NAME(member, name, arguments) name,
constexpr const char* kCalls[] = {FEEDLINE_NVJPEG_CALLS(FEEDLINE_NAME)};
#undef FEEDLINE_NAME
INSTANTIATE_TEST_SUITE_P(Cuda, EveryCallOfNvjpegFails, testing::ValuesIn(kCalls),
                         [](const auto& call) { return std::string(call.param); });

TEST_F(JpegDecoders, SayWithNumbersThatTheGpuIsFull) {
  fake_.reset(1, 70'000, 12'060);
  open();
  const std::byte first{}, second{};
  ASSERT_TRUE(decoder_->decode(fake_.jpeg(kImage, 1), kImage, &first));
  const auto refused = decoder_->decode(fake_.jpeg(kImage, 2), kImage, &second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, ENOMEM);
  EXPECT_NE(
      refused.error().message().find("no room for an image of 2880 bytes in addition to the 65536 of other images"),
      std::string::npos)
      << refused.error().message();
  EXPECT_TRUE(decoder_->failure()) << "the training loop is informed, whatever its policy for bad samples";
}

// ---- without nvJPEG ----

std::string refusal(const FakeDriver&) {
  const auto device = *cuda_device(0);
  EXPECT_TRUE(device->makes_elements());
  const auto decoder = device->decode_images();
  EXPECT_FALSE(decoder);
  if (decoder) return "";
  EXPECT_EQ(decoder.error().code, ErrorCode::kConfig);
  return decoder.error().message();
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(NvjpegRefuses, WhereItIsNot) {
  for (const auto& [version, package] : {std::pair{11'080, "nvidia-nvjpeg-cu11;"},
                                         {12'060, "nvidia-nvjpeg-cu12;"},
                                         {13'000, "nvidia-nvjpeg;"},
                                         {14'010, "nvidia-nvjpeg;"}}) {
    const FakeDriver fake(1, kFakeBytes, version);
    setenv("FEEDLINE_NVJPEG", "/nowhere/libnvjpeg.so", 1);
    const std::string said = refusal(fake);
    EXPECT_SAYS(said, "there is no /nowhere/libnvjpeg.so: pip install " + std::string(package));
    EXPECT_SAYS(said, "omit device= in decode");
  }
}

TEST(NvjpegRefuses, ALibraryThatIsNone) {
  const FakeDriver fake;
  setenv("FEEDLINE_NVJPEG", "libm.so.6", 1);
  EXPECT_SAYS(refusal(fake), "libm.so.6 has no nvjpeg");
}

TEST(NvjpegRefuses, OneThatIsTooLateForTheDriver) {
  const FakeDriver fake(1, kFakeBytes, 11'080);
  const std::string said = refusal(fake);
  EXPECT_SAYS(said,
              "is for CUDA 12, but the driver supports CUDA 11: update the driver, or pip install nvidia-nvjpeg-cu11");
}

TEST(NvjpegRefuses, AHostDevice) {
  const auto decoder = host_device()->decode_images();
  ASSERT_FALSE(decoder);
  EXPECT_EQ(decoder.error().code, ErrorCode::kConfig);
}

TEST(NvjpegIsSought, ByNamesThatTheDriverRuns) {
  using Files = std::vector<std::string>;
  EXPECT_EQ(nvjpeg_files(13'020), (Files{"libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so.11"}));
  EXPECT_EQ(nvjpeg_files(12'040), (Files{"libnvjpeg.so.12", "libnvjpeg.so.11"}));
}

}  // namespace
}  // namespace feedline::device::cuda
