// SPDX-License-Identifier: Apache-2.0
#include "decode/video/clip_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "decode/video/demuxer.h"
#include "decode/video/mp4_index.h"
#include "decode/video/video_fixture.h"

namespace feedline::decode {
namespace {

constexpr const char* kScene = "-f lavfi -i testsrc2=size=98x66:rate=25:duration=4 ";
constexpr const char* kShortScene = "-f lavfi -i testsrc2=size=98x66:rate=25:duration=2.4 ";

// One thing that a file may have, and the number of frames that its index must have.
struct Kind {
  const char* name;
  std::string file;
  std::string arguments;
  std::size_t frames;
  bool is_sequential = false;
};

std::vector<Kind> kinds() {
  const std::string scene = kShortScene;
  const std::string variable = " -vf \"select='not(mod(n,7)*mod(n,3))'\" -fps_mode vfr ";
  return {
      {"h264", "a.mp4", scene + "-c:v libx264 -g 30 OUT", 60},
      {"h264 of two-frame groups", "a.mp4", scene + "-c:v libx264 -g 2 -bf 0 OUT", 60},
      {"h264 of open groups", "a.mp4", scene + "-c:v libx264 -g 20 -x264-params open-gop=1:bframes=3 OUT", 60},
      {"h264 with an index at the start", "a.mp4", scene + "-c:v libx264 -movflags +faststart OUT", 60},
      {"h264, intra only", "a.mp4", scene + "-c:v libx264 -g 1 OUT", 60},
      {"h264 of varying rate", "a.mp4", scene + "-c:v libx264 -g 12" + variable + "OUT", 26},
      {"h264 in fragments", "a.mp4",
       scene + "-c:v libx264 -g 25 -movflags frag_keyframe+empty_moov+default_base_moof OUT", 60},
      {"h264 in fragments with offsets", "a.mp4", scene + "-c:v libx264 -g 25 -movflags frag_keyframe OUT", 60},
      {"h264 with sound", "a.mp4", scene + "-f lavfi -i sine=duration=2.4 -c:v libx264 -g 30 -c:a aac -shortest OUT",
       60},
      {"h264 of full range, BT.709", "a.mp4",
       scene + "-vf scale=out_range=pc:out_color_matrix=bt709 -pix_fmt yuv420p -color_range pc -colorspace bt709 "
               "-c:v libx264 OUT",
       60},
      {"h264 4:4:4", "a.mp4", scene + "-c:v libx264 -pix_fmt yuv444p OUT", 60},
      {"hevc", "a.mp4", scene + "-c:v libx265 -x265-params log-level=none:keyint=30 -tag:v hvc1 OUT", 60},
      {"hevc of the default tag", "a.mp4", scene + "-c:v libx265 -x265-params log-level=none OUT", 60},
      {"mpeg4", "a.mp4", scene + "-c:v mpeg4 -bf 2 -g 15 OUT", 60},
      {"av1", "a.mp4", scene + "-c:v libsvtav1 -g 2 -preset 10 OUT 2>/dev/null", 60},
      {"h264 in a mov", "a.mov", scene + "-c:v libx264 OUT", 60},
      {"vp9", "a.webm", scene + "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 30 OUT", 60},
      {"vp9 with alternative references", "a.webm",
       scene + "-c:v libvpx-vp9 -deadline good -cpu-used 5 -lag-in-frames 16 -auto-alt-ref 1 -g 30 OUT", 60},
      {"vp8 with alternative references", "a.webm",
       scene + "-c:v libvpx -deadline good -cpu-used 5 -lag-in-frames 16 -auto-alt-ref 1 -g 30 OUT", 60},
      {"vp9 in an mp4", "a.mp4", scene + "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 30 OUT", 60},
      {"h264 in mkv", "a.mkv", scene + "-c:v libx264 -g 30 OUT", 60},
      {"mjpeg in mov", "a.mov", scene + "-c:v mjpeg -q:v 5 OUT", 60},
      {"h264 in a transport stream", "a.ts", scene + "-c:v libx264 -g 30 OUT", 60, true},
      {"mpeg2 in a transport stream", "a.ts", scene + "-c:v mpeg2video -bf 2 -g 12 -q:v 3 OUT", 60, true},
      {"mpeg4 in avi", "a.avi", scene + "-c:v mpeg4 -bf 2 -g 15 OUT", 60},
  };
}

class ClipDecoderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!VideoFiles::can_make()) GTEST_SKIP() << "the ffmpeg program is not installed";
    if (!ffmpeg_library()) GTEST_SKIP() << ffmpeg_library().error().what;
  }

  // Decodes the frames and returns their pixels, one after another.
  static Result<std::vector<std::byte>> decode(const VideoIndex& index, const VideoFile& source,
                                               const std::vector<std::uint64_t>& frames) {
    ClipDecoder decoder(*ffmpeg_library());
    std::vector<std::byte> all;
    const auto sink = [&](std::size_t position, memory::PixelView view) -> Result<void> {
      const auto row = static_cast<std::size_t>(view.width) * 3;
      const std::size_t bytes = row * static_cast<std::size_t>(view.height);
      all.resize(bytes * frames.size());
      for (int y = 0; y < view.height; ++y)
        std::memcpy(all.data() + position * bytes + static_cast<std::size_t>(y) * row, view.row(y), row);
      return {};
    };
    FEEDLINE_CHECK_OK(decoder.decode(index, ShownFrames(index), source, frames, sink));
    return all;
  }

  // Compares frames with those that ffmpeg decodes in order: all of them, single ones, and clips.
  void expect_exact(const VideoIndex& index, const VideoFile& source, const std::vector<std::byte>& truth,
                    const std::string& what) {
    const std::uint64_t count = ShownFrames(index).count();
    ASSERT_GT(count, 0U) << what;
    const std::size_t bytes = static_cast<std::size_t>(index.width) * static_cast<std::size_t>(index.height) * 3;
    ASSERT_EQ(truth.size(), count * bytes) << what;
    std::vector<std::vector<std::uint64_t>> clips(1);
    clips[0].resize(count);
    std::iota(clips[0].begin(), clips[0].end(), 0U);
    std::mt19937 random(1);
    for (int i = 0; i < 8; ++i) clips.push_back({random() % count});
    clips.push_back({count - 1});
    clips.push_back({count - 1, 0, count / 2, 0});
    for (std::uint64_t start = 0; start + 33 < count; start += 17) {
      clips.emplace_back();
      for (std::uint64_t i = 0; i < 9; ++i) clips.back().push_back(start + i * 4);
    }
    for (const auto& frames : clips) {
      const auto pixels = decode(index, source, frames);
      ASSERT_TRUE(pixels) << what << ": " << pixels.error().what;
      ASSERT_EQ(pixels->size(), bytes * frames.size()) << what;
      for (std::size_t i = 0; i < frames.size(); ++i)
        EXPECT_EQ(std::memcmp(pixels->data() + i * bytes, truth.data() + frames[i] * bytes, bytes), 0)
            << what << ", frame " << frames[i];
    }
  }

  VideoFiles files_;
};

TEST_F(ClipDecoderTest, FramesEqualThoseOfDecodingInOrder) {
  for (const Kind& kind : kinds()) {
    const auto bytes = files_.make(kind.file, kind.arguments);
    if (bytes.empty()) {
      std::cerr << "  left out, as this ffmpeg cannot make it: " << kind.name << "\n";
      continue;
    }
    const VideoInMemory source(bytes);
    const auto index = make_video_index(source, {});
    EXPECT_TRUE(index) << kind.name << ": " << index.error().what;
    if (!index) continue;
    EXPECT_EQ(ShownFrames(*index).count(), kind.frames) << kind.name;
    EXPECT_EQ(index->is_sequential, kind.is_sequential) << kind.name;
    EXPECT_EQ(read_video_index(write_video_index(*index)).value(), *index);
    expect_exact(*index, source, files_.frames(kind.file), kind.name);
  }
}

TEST_F(ClipDecoderTest, BothWaysToAnIndexAgree) {
  for (const Kind& kind : kinds()) {
    if (!kind.file.ends_with(".mp4")) continue;
    const auto bytes = files_.make(kind.file, kind.arguments);
    if (bytes.empty()) continue;
    const VideoInMemory source(bytes);
    const auto native = read_mp4_index(source, {});
    ASSERT_TRUE(native) << kind.name;
    ASSERT_TRUE(*native) << kind.name;
    const auto scanned = scan_video(*ffmpeg_library(), source, {});
    ASSERT_TRUE(scanned) << kind.name;
    const VideoIndex& a = **native;
    const VideoIndex& b = *scanned;
    EXPECT_EQ(a.codec, b.codec) << kind.name;
    EXPECT_EQ(a.tag, b.tag) << kind.name;
    EXPECT_EQ(a.extradata, b.extradata) << kind.name;
    EXPECT_EQ(std::pair(a.width, a.height), std::pair(b.width, b.height)) << kind.name;
    ASSERT_EQ(a.packets.size(), b.packets.size()) << kind.name;
    for (std::size_t i = 0; i < a.packets.size(); ++i) {
      EXPECT_EQ(a.packets[i].offset, b.packets[i].offset) << kind.name << " " << i;
      EXPECT_EQ(a.packets[i].bytes, b.packets[i].bytes) << kind.name << " " << i;
      EXPECT_EQ(a.packets[i].is_hidden, b.packets[i].is_hidden) << kind.name << " " << i;
      EXPECT_EQ(a.packets[i].pts - a.packets[0].pts, b.packets[i].pts - b.packets[0].pts) << kind.name << " " << i;
    }
  }
}

TEST_F(ClipDecoderTest, AppliesEditLists) {
  ASSERT_FALSE(files_.make("whole.mp4", std::string(kScene) + "-c:v libx264 -g 25 -bf 2 OUT").empty());
  const auto bytes = files_.make("a.mp4", "-ss 1.3 -i " + files_.path("whole.mp4") + " -t 1.5 -c copy OUT");
  ASSERT_FALSE(bytes.empty());
  const VideoInMemory source(bytes);
  const auto index = make_video_index(source, {});
  ASSERT_TRUE(index) << index.error().what;
  EXPECT_TRUE(std::ranges::any_of(index->packets, &VideoPacket::is_hidden));
  expect_exact(*index, source, files_.frames("a.mp4"), "trimmed");
}

TEST_F(ClipDecoderTest, TurnsFramesAsPlayersDo) {
  ASSERT_FALSE(files_.make("whole.mp4", std::string(kScene) + "-c:v libx264 OUT").empty());
  for (const char* degrees : {"90", "180", "270"}) {
    const auto bytes =
        files_.make("a.mp4", "-i " + files_.path("whole.mp4") + " -c copy -metadata:s:v rotate=" + degrees + " OUT");
    ASSERT_FALSE(bytes.empty());
    const VideoInMemory source(bytes);
    const auto index = make_video_index(source, {});
    ASSERT_TRUE(index) << index.error().what;
    EXPECT_NE(index->orientation, 1) << degrees;
    expect_exact(*index, source, files_.frames("a.mp4"), degrees);
  }
}

TEST_F(ClipDecoderTest, ChoosesStreamsAndNeverCovers) {
  files_.make("cover.jpg", "-f lavfi -i color=red:size=320x200 -frames:v 1 OUT");
  const std::string two = "-f lavfi -i testsrc2=size=64x48:duration=1 -f lavfi -i testsrc=size=160x120:duration=1 ";
  for (const char* name : {"a.mp4", "a.mkv"}) {
    const auto bytes = files_.make(name, two + "-i " + files_.path("cover.jpg") +
                                             " -map 2:v -map 0:v -map 1:v -c:v libx264 -c:v:0 mjpeg "
                                             "-disposition:v:0 attached_pic OUT");
    if (bytes.empty()) continue;
    const VideoInMemory source(bytes);
    const auto best = make_video_index(source, {});
    ASSERT_TRUE(best) << name << best.error().what;
    EXPECT_NE(best->width, 320) << name;
    EXPECT_EQ(ShownFrames(*best).count(), 25U) << name;
    for (int stream = 0; stream < 3; ++stream) {
      const auto index = make_video_index(source, stream);
      if (index) {
        EXPECT_EQ(index->stream, stream);
      } else {
        EXPECT_NE(index.error().what.find("its video streams: "), std::string::npos) << index.error().what;
      }
    }
    EXPECT_FALSE(make_video_index(source, 7));
  }
}

TEST_F(ClipDecoderTest, DamageSpoilsFramesUpToTheNextKeyFrameOnly) {
  auto bytes = files_.make("a.mp4", std::string(kScene) + "-c:v libx264 -g 20 -keyint_min 20 -sc_threshold 0 OUT");
  ASSERT_FALSE(bytes.empty());
  const VideoInMemory sound(bytes);
  const auto index = make_video_index(sound, {});
  ASSERT_TRUE(index);
  const auto truth = files_.frames("a.mp4");
  auto damaged_bytes = bytes;
  const VideoPacket& packet = index->packets[45];  // of the group that begins at frame 40
  std::fill_n(damaged_bytes.begin() + static_cast<std::ptrdiff_t>(packet.offset) + 4, packet.bytes - 4,
              std::byte{0xff});
  const VideoInMemory damaged(damaged_bytes);
  const std::size_t frame_bytes = truth.size() / 100;
  std::size_t errors = 0;
  for (std::uint64_t frame = 0; frame < 100; ++frame) {
    const auto pixels = decode(*index, damaged, {frame});
    if (pixels) {
      EXPECT_EQ(std::memcmp(pixels->data(), truth.data() + frame * frame_bytes, frame_bytes), 0) << frame;
      continue;
    }
    ++errors;
    EXPECT_GE(frame, 40U);
    EXPECT_LT(frame, 60U);
    EXPECT_EQ(pixels.error().code, ErrorCode::kData);
    EXPECT_NE(pixels.error().what.find("frame " + std::to_string(frame) + " at "), std::string::npos);
  }
  EXPECT_GE(errors, 10U);
}

TEST_F(ClipDecoderTest, ReadsTheSoundPartOfATruncatedFile) {
  const auto bytes = files_.make("a.mp4", std::string(kScene) + "-c:v libx264 -g 20 -movflags +faststart OUT");
  ASSERT_FALSE(bytes.empty());
  const auto cut = std::span(bytes).first(bytes.size() * 2 / 3);
  const VideoInMemory source(cut);
  const auto index = make_video_index(source, {});
  ASSERT_TRUE(index) << index.error().what;
  EXPECT_TRUE(decode(*index, source, {0, 1, 2}));
  const auto last = decode(*index, source, {99});
  ASSERT_FALSE(last);
  EXPECT_NE(last.error().what.find("the file ends at byte " + std::to_string(cut.size())), std::string::npos)
      << last.error().what;
  EXPECT_NE(last.error().what.find("at 3.960 s"), std::string::npos) << last.error().what;
}

TEST_F(ClipDecoderTest, NamesTheFaultOfAFile) {
  const auto fault = [](std::span<const std::byte> bytes) {
    const VideoInMemory source(bytes);
    const auto index = make_video_index(source, {});
    return index ? std::string("none") : index.error().what;
  };
  EXPECT_EQ(fault({}), "the file is empty");
  const std::string text = "this is a text, and no video at all, although it has some bytes to read";
  EXPECT_NE(fault(std::as_bytes(std::span(text))).find("not a media file"), std::string::npos)
      << fault(std::as_bytes(std::span(text)));
  const auto sound = files_.make("a.mp4", "-f lavfi -i sine=duration=1 -c:a aac OUT");
  EXPECT_EQ(fault(sound), "the file has no video stream");
  const auto late = files_.make("b.mp4", std::string(kScene) + "-c:v libx264 OUT");
  EXPECT_EQ(fault(std::span(late).first(late.size() / 2)),
            "MP4: the file has no index (moov): it is truncated, or was not finished when written");
}

TEST_F(ClipDecoderTest, FetchesOnlyTheBytesOfAClip) {
  const auto bytes =
      files_.make("a.mp4", "-f lavfi -i testsrc2=size=320x240:rate=25:duration=20 -c:v libx264 -g 30 OUT");
  ASSERT_FALSE(bytes.empty());
  const VideoInMemory source(bytes);
  const auto index = make_video_index(source, {});
  ASSERT_TRUE(index);
  ClipDecoder decoder(*ffmpeg_library());
  const ShownFrames shown(*index);
  const std::vector<std::uint64_t> frames{200, 204, 208, 212};
  ASSERT_TRUE(decoder.decode(*index, shown, source, frames, [](auto, auto) { return Result<void>(); }));
  EXPECT_LT(decoder.counts().bytes_fetched, bytes.size() / 8);
  EXPECT_LE(static_cast<double>(decoder.counts().bytes_fetched),
            1.3 * static_cast<double>(decoder.counts().bytes_used));
  EXPECT_LT(decoder.counts().frames, 45U);
}

}  // namespace
}  // namespace feedline::decode
