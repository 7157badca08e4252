// SPDX-License-Identifier: Apache-2.0
#pragma once

// Creates progressive JPEGs of every kind, and decodes them with Feedline's decoder and with libjpeg.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "decode/jpeg/baseline/baseline_fixture.h"

namespace feedline::decode::progressive {

struct ScanScript {
  std::string name;
  std::vector<jpeg_scan_info> scans;  // empty: libjpeg's own
};

struct ProgressiveKind {
  std::string name;
  JpegKind picture;
  std::vector<jpeg_scan_info> scans{};
};

// Like decode::encode(), but writes the scans of `kind`.
inline EncodedBytes encode(const ProgressiveKind& kind) {
  JpegKind picture = kind.picture;
  picture.progressive = kind.scans.empty();
  picture.scans = kind.scans;
  return decode::encode(picture);
}

// Returns scan scripts with all bits of all coefficients for three components.
inline std::vector<ScanScript> complete_scripts() {
  const auto of_each = [](int first, int last, int high, int low) {
    std::vector<jpeg_scan_info> scans;
    for (int c = 0; c < 3; ++c) scans.push_back({1, {c}, first, last, high, low});
    return scans;
  };
  const auto joined = [](std::initializer_list<std::vector<jpeg_scan_info>> parts) {
    std::vector<jpeg_scan_info> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  const std::vector<jpeg_scan_info> dc{{3, {0, 1, 2}, 0, 0, 0, 0}};
  return {{"libjpeg's own", {}},
          {"bands", joined({dc, of_each(1, 1, 0, 0), of_each(2, 9, 0, 0), of_each(10, 63, 0, 0)})},
          {"one band", joined({dc, of_each(1, 63, 0, 0)})},
          {"DC apart", joined({of_each(0, 0, 0, 0), of_each(1, 63, 0, 0)})},
          {"DC of two",
           joined({{{2, {0, 2}, 0, 0, 0, 1}, {1, {1}, 0, 0, 0, 0}, {2, {0, 2}, 0, 0, 1, 0}}, of_each(1, 63, 0, 0)})},
          {"DC in five steps", joined({{{3, {0, 1, 2}, 0, 0, 0, 4},
                                        {3, {0, 1, 2}, 0, 0, 4, 3},
                                        {3, {0, 1, 2}, 0, 0, 3, 2},
                                        {3, {0, 1, 2}, 0, 0, 2, 1},
                                        {3, {0, 1, 2}, 0, 0, 1, 0}},
                                       of_each(1, 63, 0, 0)})},
          {"four steps",
           joined({dc, of_each(1, 63, 0, 3), of_each(1, 63, 3, 2), of_each(1, 63, 2, 1), of_each(1, 63, 1, 0)})},
          {"bands that are refined otherwise",
           joined({dc, of_each(1, 5, 0, 2), of_each(6, 63, 0, 2), of_each(1, 63, 2, 1), of_each(1, 20, 1, 0),
                   of_each(21, 62, 1, 0), of_each(63, 63, 1, 0)})}};
}

// Returns scan scripts in which some bits are missing or repeated at the end.
inline std::vector<ScanScript> incomplete_scripts() {
  return {{"DC alone", {{3, {0, 1, 2}, 0, 0, 0, 0}}},
          {"a component without AC", {{3, {0, 1, 2}, 0, 0, 0, 0}, {1, {0}, 1, 63, 0, 0}, {1, {1}, 1, 63, 0, 0}}},
          {"without the last bits",
           {{3, {0, 1, 2}, 0, 0, 0, 1}, {1, {0}, 1, 63, 0, 0}, {1, {1}, 1, 63, 0, 0}, {1, {2}, 1, 63, 0, 0}}}};
}

// All supported kinds.
inline std::vector<ProgressiveKind> taken_kinds() {
  std::vector<ProgressiveKind> all;
  struct Layout {
    int channels, h, v;
  };
  for (const auto& [channels, h, v] : {Layout{3, 2, 2}, {3, 2, 1}, {3, 1, 1}, {1, 1, 1}}) {
    const std::string name = channels == 1 ? "grey" : std::to_string(h) + "x" + std::to_string(v);
    const auto add = [&](const std::string& what, JpegKind kind, const std::vector<jpeg_scan_info>& scans = {}) {
      kind.channels = channels, kind.h = h, kind.v = v;
      all.push_back({name + " " + what, kind, scans});
    };
    for (const int quality : {2, 40, 75, 100})
      add("quality " + std::to_string(quality), {.width = 149, .height = 83, .quality = quality});
    for (const int restart : {1, 2, 7})
      add("restart " + std::to_string(restart), {.width = 90, .height = 67, .restart = restart});
    for (const int size : {5, 8, 9, 16, 17, 33}) add("small", {.width = size, .height = 49 - size});
    if (channels == 3)
      for (const ScanScript& script : complete_scripts()) {
        add(script.name, {.width = 77, .height = 61, .quality = 97}, script.scans);
        add(script.name + " with restarts", {.width = 77, .height = 61, .restart = 5}, script.scans);
      }
  }
  return all;
}

// JpegDecoder must return the same pixels and errors as libjpeg alone.
class Pair {
 public:
  enum class Taken { kByUs, kByLibjpeg, kByNobody };

  explicit Pair(const baseline::Kernels* kernels = &baseline::best_kernels()) : ours_(kernels) {}

  Taken expect_same(const EncodedBytes& bytes, const Box& region, const std::string& what,
                    ColorMode mode = ColorMode::kRgb) {
    const baseline::Decoded mine = baseline::decoded_by(ours_, bytes, region, mode);
    const baseline::Decoded other = baseline::decoded_by(theirs_, bytes, region, mode);
    EXPECT_EQ(mine.error, other.error) << what;
    EXPECT_TRUE(mine.pixels == other.pixels) << what;
    if (!other.error.empty()) return Taken::kByNobody;
    return ours_.used_progressive() ? Taken::kByUs : Taken::kByLibjpeg;
  }

 private:
  JpegDecoder ours_, theirs_{nullptr};
};

// Returns the offset at which the data of each scan ends, including the last scan.
inline std::vector<std::size_t> segments_between_scans(const EncodedBytes& bytes) {
  std::vector<std::size_t> found;
  bool in_scan = false;
  for (std::size_t i = 2; i + 1 < bytes.size();) {
    const auto marker = std::to_integer<unsigned>(bytes[i + 1]);
    if (bytes[i] != std::byte{0xFF} || marker == 0 || (marker & 0xF8) == 0xD0) {
      ++i;
      continue;
    }
    if (in_scan) found.push_back(i);
    if (marker == JPEG_EOI || i + 3 >= bytes.size()) break;
    in_scan = marker == 0xDA;
    i += 2 + (std::to_integer<std::size_t>(bytes[i + 2]) << 8 | std::to_integer<std::size_t>(bytes[i + 3]));
  }
  return found;
}

}  // namespace feedline::decode::progressive
