// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/flac_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "decode/audio/flac_fixture.h"

namespace feedline::decode {
namespace {

// A file of 16 kHz, mono, 16 bits.
struct Made {
  std::string file;
  std::vector<std::size_t> begins;    // bytes of the frames
  std::vector<std::uint64_t> firsts;  // their first samples
  std::vector<float> samples;
};

struct Making {
  std::vector<std::size_t> blocks = std::vector<std::size_t>(60, 192);  // samples of each frame
  bool is_variable = false;
  std::int64_t stated = -1;  // samples in the header; -1: the true number
  std::vector<std::pair<char, std::string>> metadata = {};
  std::string before = {}, after = {};
};

Made make(const Making& making) {
  Made made;
  std::size_t total = 0;
  for (const std::size_t block : making.blocks) total += block;
  const Samples all = flac_signal(total, 16);
  for (const std::int64_t sample : all) made.samples.push_back(static_cast<float>(sample) / 32768);
  made.file = making.before + flac_metadata(making.stated < 0 ? total : static_cast<std::uint64_t>(making.stated), 1,
                                            16, making.metadata);
  std::size_t sample = 0;
  for (std::size_t i = 0; i < making.blocks.size(); ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(sample);
    made.begins.push_back(made.file.size());
    made.firsts.push_back(sample);
    // frames differ in size: some are not compressed
    const FlacCoding coding{.kind = i % 7 > 3 ? FlacCoding::Kind::kVerbatim : FlacCoding::Kind::kFixed,
                            .order = i % 7 > 3 ? 0U : 2U};
    made.file += FlacFrameFixture{
        .number = making.is_variable ? sample : i,
        .channels = {Samples(begin, begin + static_cast<std::ptrdiff_t>(making.blocks[i]))},
        .is_variable = making.is_variable,
        .codings = {
            coding}}.frame();
    sample += making.blocks[i];
  }
  made.file += making.after;
  return made;
}

std::vector<std::size_t> mixed_blocks() {
  std::vector<std::size_t> blocks;
  for (std::size_t i = 0; i < 50; ++i) blocks.push_back(16 + i * 7919 % 700);
  return blocks;
}

void expect_parts(const Made& made) {
  MemoryBytes source(bytes_of(made.file));
  auto reader = FlacReader::open(source);
  ASSERT_TRUE(reader) << reader.error().what;
  ASSERT_EQ((*reader)->info().frames, made.samples.size());
  std::vector<float> whole(made.samples.size());
  ASSERT_TRUE((*reader)->read(0, std::span(whole)));
  EXPECT_EQ(whole, made.samples);
  for (std::uint64_t begin = 0; begin < whole.size(); begin = begin * 5 / 3 + 101)
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{300}, std::uint64_t{5000}}) {
      std::vector<float> part(std::min<std::uint64_t>(count, whole.size() - begin));
      auto fresh = FlacReader::open(source);
      ASSERT_TRUE(fresh);
      for (AudioReader* one : {reader->get(), fresh->get()}) {
        ASSERT_TRUE(one->read(begin, std::span(part)));
        ASSERT_TRUE(std::ranges::equal(part, std::span(whole).subspan(begin, part.size()))) << begin;
      }
    }
}

std::string fault_of(const std::string& file, std::uint64_t begin, std::size_t count) {
  MemoryBytes source(bytes_of(file));
  auto reader = FlacReader::open(source);
  if (!reader) return reader.error().what;
  std::vector<float> part(count);
  const auto read = (*reader)->read(begin, std::span(part));
  return read ? "none" : read.error().what;
}

TEST(FlacReader, ReadsPartsOfFixedAndVariableBlocks) {
  expect_parts(make({}));
  expect_parts(make({.blocks = {192, 192, 50}}));
  expect_parts(make({.blocks = {70}}));
  expect_parts(make({.blocks = mixed_blocks(), .is_variable = true}));
}

TEST(FlacReader, SkipsMetadataAndTags) {
  const std::string id3 = std::string("ID3\4\0\0\0\0\0\12", 10) + std::string(10, 'x');
  expect_parts(make({.metadata = {{'\4', "a comment"}, {'\1', std::string(40'000, '\0')}}, .before = id3}));
}

TEST(FlacReader, CountsSamplesThatNoHeaderStates) {
  expect_parts(make({.stated = 0}));
  expect_parts(make({.blocks = {192, 192, 50}, .stated = 0}));
  expect_parts(make({.blocks = mixed_blocks(), .is_variable = true, .stated = 0}));
  expect_parts(make({.stated = 0, .after = "TAG" + std::string(125, '\0')}));
  const Made made = make({.stated = 0});
  for (const std::size_t cut : {1U, 30U}) {
    const std::string fault = fault_of(made.file.substr(0, made.file.size() - cut), 0, 1);
    EXPECT_NE(fault.find("truncated or damaged after 0.708"), std::string::npos) << fault;
  }
  EXPECT_NE(fault_of(made.file.substr(0, made.begins[1] - 1), 0, 1).find("no frame at its end is whole"),
            std::string::npos);
  const std::string later = made.file.substr(0, made.begins[0]) + made.file.substr(made.begins[1]);
  EXPECT_NE(fault_of(later, 0, 1).find("the first frame has the number 1,"), std::string::npos);
}

TEST(FlacReader, UsesSeekTables) {
  const auto seek_table = [](const Made& made, std::uint64_t error) {
    std::string table;
    for (std::size_t i = 0; i < made.begins.size(); i += 10)
      table += number_bytes(made.firsts[i], 8, true) + number_bytes(made.begins[i] - made.begins[0] + error, 8, true) +
               number_bytes(192, 2, true);
    return table + std::string(8, '\xFF') + std::string(10, '\0');  // a placeholder
  };
  const Made plain = make({});
  for (const std::uint64_t error : {0, 1, 1'000'000'000}) {  // wrong points are ignored
    const Made made = make({.metadata = {{'\3', seek_table(plain, error)}}});
    expect_parts(made);
    MemoryBytes source(bytes_of(made.file));
    const auto stream = read_flac_stream(source);
    ASSERT_TRUE(stream);
    EXPECT_EQ(stream->seek_table_bytes, 7U * 18);
  }
}

// Counts calls, and bytes.
class CountedBytes final : public ByteSource {
 public:
  explicit CountedBytes(const std::string& file) : memory_(bytes_of(file)) {}
  std::uint64_t size() const override { return memory_.size(); }
  Result<std::span<const std::byte>> bytes(std::uint64_t offset, std::uint64_t count) override {
    ++calls;
    read += std::min(count, size() - std::min(offset, size()));
    return memory_.bytes(offset, count);
  }
  std::uint64_t calls = 0, read = 0;

 private:
  MemoryBytes memory_;
};

TEST(FlacReader, ReadsLittleMoreThanThePart) {
  const Made made = make({.blocks = std::vector<std::size_t>(4000, 192)});
  CountedBytes source(made.file);
  ASSERT_GT(source.size(), 700'000U);
  const auto stream = read_flac_stream(source);
  ASSERT_TRUE(stream);
  for (std::uint64_t sample = 0; sample < made.samples.size(); sample += 17'771) {
    source.calls = source.read = 0;
    const auto found = find_flac_frame(source, *stream, sample, 0);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->sample, sample / 192 * 192);
    EXPECT_EQ(found->at, made.begins[sample / 192]);
    EXPECT_LE(source.calls, 4U);
    EXPECT_LE(source.read, 64U << 10);
  }
}

TEST(FlacReader, DamageIsReportedWithItsTime) {
  const Made made = make({});
  std::string damaged = made.file;
  damaged[made.begins[30] + 40] ^= 4;
  EXPECT_EQ(fault_of(damaged, 29 * 192, 192), "none");
  EXPECT_EQ(fault_of(damaged, 31 * 192, 192), "none");
  for (const auto& [begin, count] : {std::pair{30 * 192 + 5, 10}, std::pair{0, 60 * 192}})
    EXPECT_EQ(fault_of(damaged, static_cast<std::uint64_t>(begin), static_cast<std::size_t>(count)),
              "FLAC: damaged in the frame at 0.360 s of 0.720 s: its CRC-16 does not match");
  std::string headless = made.file;
  headless[made.begins[30] + 4] ^= 1;
  EXPECT_NE(fault_of(headless, 30 * 192, 192).find("at 0.360 s of 0.720 s: it has no header"), std::string::npos);
  // a whole frame is missing
  std::string shorter = made.file;
  shorter.erase(made.begins[30], made.begins[31] - made.begins[30]);
  EXPECT_NE(fault_of(shorter, 30 * 192, 192).find("at 0.360 s of 0.720 s: its header is another"), std::string::npos);
  EXPECT_EQ(fault_of(shorter, 35 * 192, 192), "none");
}

TEST(FlacReader, TruncatedFilesAreErrors) {
  const Made made = make({});
  for (const std::size_t end : {made.begins[40], made.begins[40] + 1, made.begins[40] + 20, made.begins[41] - 1}) {
    const std::string cut = made.file.substr(0, end);
    EXPECT_EQ(fault_of(cut, 20 * 192, 192), "none");
    EXPECT_EQ(fault_of(cut, 40 * 192, 10), "FLAC: truncated in the frame at 0.480 s of 0.720 s: the file ends");
    EXPECT_EQ(fault_of(cut, 50 * 192, 10), "FLAC: truncated in the frame at 0.480 s of 0.720 s: the file ends");
  }
  for (const std::size_t size : {4U, 7U, 20U, 42U, 44U}) {
    const std::string cut = made.file.substr(0, size);
    EXPECT_NE(fault_of(cut, 0, 1).find("FLAC: "), std::string::npos) << size;
  }
}

TEST(FlacReader, FramesLongerThanAReadAreFound) {
  Samples loud(65535);
  for (std::size_t i = 0; i < loud.size(); ++i) loud[i] = static_cast<std::int64_t>(i * 40503U % 65536) - 32768;
  std::string file = flac_metadata(loud.size() * 4);
  for (std::uint64_t i = 0; i < 4; ++i) file += FlacFrameFixture{.number = i, .channels = {loud}}.frame();
  EXPECT_EQ(fault_of(file, 3 * loud.size() + 10, loud.size() - 20), "none");
  EXPECT_EQ(fault_of(file, 100, loud.size() * 3), "none");
}

}  // namespace
}  // namespace feedline::decode
