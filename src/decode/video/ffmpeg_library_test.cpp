// SPDX-License-Identifier: Apache-2.0
#include "decode/video/ffmpeg_library.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "decode/video/proof_clip.h"
#include "decode/video/video_fixture.h"

namespace feedline::decode {
namespace {

TEST(FfmpegLibrary, ProvesItself) {
  const Result<FfmpegLibrary>& library = ffmpeg_library();
  if (!library) GTEST_SKIP() << library.error().what;
  EXPECT_TRUE(prove(*library));
  EXPECT_TRUE(library->version.starts_with("libavformat "));
}

TEST(FfmpegLibrary, IsRefusedIfItsStructuresDiffer) {
  const Result<FfmpegLibrary>& library = ffmpeg_library();
  if (!library) GTEST_SKIP() << library.error().what;
  FfmpegLibrary other = *library;
  std::swap(other.layout.parameters.width, other.layout.parameters.height);
  EXPECT_FALSE(prove(other));
  other = *library;
  other.layout.frame.colorspace = other.layout.frame.color_range;  // BT.470BG instead of BT.709
  EXPECT_FALSE(prove(other));
  other = *library;
  other.layout.frame.pts += 8;
  EXPECT_FALSE(prove(other));
}

TEST(FfmpegLibrary, NamesWhatToInstall) {
  const VideoFolder folder;
  const auto library = open_ffmpeg(folder.path());
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::kConfig);
  for (const char* part : {"has no libavformat", "libavformat 59 to 62", "apt-get install ffmpeg", "FEEDLINE_FFMPEG"})
    EXPECT_NE(library.error().what.find(part), std::string::npos) << library.error().what;
}

TEST(FfmpegLibrary, ReportsFilesThatCannotBeLoaded) {
  const VideoFolder folder;
  for (const char* name : {"libavutil.so.57", "libavcodec.so.59", "libavformat.so.59", "libswscale.so.6"})
    folder.write(name, "not a library");
  const auto library = open_ffmpeg(folder.path());
  ASSERT_FALSE(library);
  EXPECT_NE(library.error().what.find("cannot be loaded"), std::string::npos) << library.error().what;
}

}  // namespace
}  // namespace feedline::decode
