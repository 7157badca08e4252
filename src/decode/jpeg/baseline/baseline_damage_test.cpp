// SPDX-License-Identifier: Apache-2.0

// For damaged files, JpegDecoder must return the same errors and pixels as libjpeg alone. If it skips restart
// intervals, it may return pixels for a file that libjpeg rejects.

#include <algorithm>
#include <random>

#include "decode/jpeg/baseline/baseline_fixture.h"

namespace feedline::decode::baseline {
namespace {

class Pair {
 public:
  enum class Taken { kByUs, kByLibjpeg, kByNobody };

  Taken expect_same(const EncodedBytes& bytes, const Box& region, const std::string& what,
                    ColorMode mode = ColorMode::kRgb) {
    const Decoded mine = decoded_by(ours_, bytes, region, mode);
    const Decoded other = decoded_by(theirs_, bytes, region, mode);
    const bool not_seen = mine.error.empty() && ours_.intervals_passed() > 0;  // if nothing was decoded
    if (!not_seen || other.error.empty()) {
      EXPECT_EQ(mine.error, other.error) << what;
      EXPECT_TRUE(mine.pixels == other.pixels) << what;
    }
    if (!other.error.empty()) return Taken::kByNobody;
    return ours_.used_baseline() ? Taken::kByUs : Taken::kByLibjpeg;
  }

 private:
  JpegDecoder ours_, theirs_{nullptr};
};

std::vector<std::size_t> restart_markers(const EncodedBytes& bytes) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i)
    if (bytes[i] == std::byte{0xFF} && (bytes[i + 1] & std::byte{0xF8}) == std::byte{0xD0}) found.push_back(i + 1);
  return found;
}

// libjpeg reads a region's rows and often the next row of MCUs: either both decoders detect damage there, or neither
// does.
TEST(BaselineDamage, IsSeenInTheSameRowsAsByLibjpeg) {
  Pair pair;
  int taken = 0;
  for (const auto& [h, v] : {std::pair{2, 2}, {2, 1}, {1, 1}}) {
    const int width = 40, height = 8 * v * 5 - 3, restart = (width + 8 * h - 1) / (8 * h);
    const EncodedBytes good = encode({.width = width, .height = height, .h = h, .v = v, .restart = restart});
    for (const std::size_t marker : restart_markers(good)) {
      EncodedBytes bytes = good;
      bytes[marker] ^= std::byte{4};
      for (int top = 0; top < height; ++top)
        for (int rows = 1; rows <= height - top; ++rows) {
          // starting at the left edge, libjpeg reads many rows at a time
          const auto by = pair.expect_same(bytes, {top % 2 == 0 ? 8 : 0, top, rows % 2 == 0 ? 9 : 40 - 8, rows},
                                           std::to_string(v) + " down, marker at " + std::to_string(marker) +
                                               ", rows " + std::to_string(top) + " + " + std::to_string(rows));
          EXPECT_NE(by, Pair::Taken::kByLibjpeg) << "rows read that libjpeg does not read";
          taken += by == Pair::Taken::kByUs;
        }
    }
  }
  EXPECT_GT(taken, 1000);
}

// Returns a greyscale image with random coefficients that can be coded, and quantisation steps up to `largest_step`.
EncodedBytes absurd(std::mt19937& random, int largest_step) {
  const auto number = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  constexpr JDIMENSION kSide = 8;  // blocks
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  errors.emit_message = [](j_common_ptr, int) {};  // steps this large are not baseline, but decoders accept them
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = jpeg.image_height = kSide * DCTSIZE;
  jpeg.input_components = 1;
  jpeg.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&jpeg);
  for (UINT16& step : jpeg.quant_tbl_ptrs[0]->quantval) step = static_cast<UINT16>(number(1, largest_step));
  auto* const pool = reinterpret_cast<j_common_ptr>(&jpeg);
  jvirt_barray_ptr blocks = (*jpeg.mem->request_virt_barray)(pool, JPOOL_IMAGE, TRUE, kSide, kSide, 1);
  jpeg_write_coefficients(&jpeg, &blocks);
  for (JDIMENSION y = 0; y < kSide; ++y)
    for (JDIMENSION x = 0; x < kSide; ++x) {
      JCOEF* const block = (*jpeg.mem->access_virt_barray)(pool, blocks, y, 1, TRUE)[0][x];
      const int last = y % 2 == 0 ? number(0, DCTSIZE2 - 1) : x % 2 == 0 ? DCTSIZE - 1 : 0;  // or the first row only
      for (int k = 0; k <= last; ++k) block[k] = static_cast<JCOEF>(number(-1023, 1023));
    }
  return finished(jpeg, memory, size);
}

// Equality is guaranteed only on x86: the formulas in baseline_idct.cpp reproduce the overflow behaviour of libjpeg's
// x86 code.
#if defined(__x86_64__)
TEST(BaselineDamage, CoefficientsThatNo16BitsHoldGiveTheSamePixels) {
  Pair pair;
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round)
    EXPECT_EQ(pair.expect_same(absurd(random, 1 << (round % 16)), {0, 0, 64, 64}, std::to_string(round)),
              Pair::Taken::kByUs);
}
#endif

std::vector<EncodedBytes> files() {
  std::vector<EncodedBytes> all;
  for (const auto& [h, v] : {std::pair{2, 2}, {2, 1}, {1, 1}})
    for (const bool optimised : {false, true})
      all.push_back(encode({.width = 61,
                            .height = 57,
                            .h = h,
                            .v = v,
                            .restart = optimised ? 0 : 3,
                            .quality = 85,
                            .optimised = optimised}));
  all.push_back(encode({.width = 61, .height = 57, .channels = 1, .h = 1, .v = 1}));
  return all;
}

TEST(BaselineDamage, CutFilesAreReportedAlike) {
  Pair pair;
  for (const EncodedBytes& good : files())
    for (std::size_t cut = good.size() - 300; cut < good.size(); ++cut) {
      const EncodedBytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(cut));
      for (const Box& region : {Box{0, 0, 61, 57}, Box{20, 10, 9, 9}})
        pair.expect_same(bytes, region, "cut at " + std::to_string(cut));
    }
}

TEST(BaselineDamage, FlippedBytesAreReportedAlike) {
  Pair pair;
  std::mt19937 random(11);
  int taken = 0;
  for (const EncodedBytes& good : files()) {
    const auto scan = std::ranges::search(good, std::array{std::byte{0xFF}, std::byte{0xDA}}).begin() - good.begin();
    for (int round = 0; round < 600; ++round) {
      EncodedBytes bytes = good;
      // damages the header occasionally and the data mostly
      const std::size_t from = round % 8 == 0 ? 2 : static_cast<std::size_t>(scan);
      for (unsigned i = 0; i < 1 + random() % 4; ++i) {
        const std::size_t at = from + random() % (bytes.size() - from);
        constexpr int kPicked[] = {0, 0xFF, 0xD0, 0xD9};
        bytes[at] = static_cast<std::byte>(random() % 3 == 0 ? kPicked[random() % 4] : static_cast<int>(random()));
      }
      JpegDecoder opened;
      const auto header = opened.open(bytes);
      if (!header || header->width < 61 || header->height < 57 || header->width * header->height > 1 << 20) continue;
      const int width = 1 + static_cast<int>(random() % 61), height = 1 + static_cast<int>(random() % 57);
      const auto by =
          pair.expect_same(bytes, {61 - width, 57 - height, width, height}, "round " + std::to_string(round),
                           random() % 4 == 0 ? ColorMode::kL : ColorMode::kRgb);
      taken += by == Pair::Taken::kByUs;
    }
  }
  EXPECT_GT(taken, 300);  // libjpeg must not decode all such files, or nothing is compared
}

TEST(BaselineDamage, BytesAroundTheScanAreTakenAlike) {
  Pair pair;
  const EncodedBytes good = files().front();
  const Box all{0, 0, 61, 57}, part{3, 3, 9, 9};
  EncodedBytes extended = good;
  extended.resize(good.size() + 100, std::byte{0x5A});
  EXPECT_EQ(pair.expect_same(extended, all, "bytes after the end"), Pair::Taken::kByUs);
  EncodedBytes garbage = good;
  garbage.insert(garbage.end() - 2, {std::byte{1}, std::byte{2}});
  EXPECT_EQ(pair.expect_same(garbage, all, "bytes before the end marker"), Pair::Taken::kByUs);
  EncodedBytes filled = good;
  filled.insert(filled.end() - 2, 3, std::byte{0xFF});
  EXPECT_EQ(pair.expect_same(filled, all, "fill bytes before the end marker"), Pair::Taken::kByUs);
  for (const std::size_t marker : restart_markers(good)) {
    EncodedBytes before = good;
    before.insert(before.begin() + static_cast<std::ptrdiff_t>(marker) - 1, {std::byte{0x55}, std::byte{0x55}});
    pair.expect_same(before, all, "bytes before a restart marker");
    pair.expect_same(before, part, "bytes before a restart marker");
    EncodedBytes fill = good;
    fill.insert(fill.begin() + static_cast<std::ptrdiff_t>(marker), std::byte{0xFF});
    pair.expect_same(fill, all, "a fill byte before a restart marker");
  }
}

}  // namespace
}  // namespace feedline::decode::baseline
