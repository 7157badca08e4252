// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/soxr_library.h"

#include <array>

#include "decode/audio/audio_libraries.h"

namespace feedline::decode {
namespace {

Result<SoxrLibrary> open_soxr() {
  SoxrLibrary library;
  const auto at = [](auto& pointer) { return reinterpret_cast<void**>(&pointer); };
  const std::array symbols{
      Symbol{"soxr_create", at(library.create)},   Symbol{"soxr_process", at(library.process)},
      Symbol{"soxr_delete", at(library.destroy)},  Symbol{"soxr_quality_spec", at(library.quality_spec)},
      Symbol{"soxr_io_spec", at(library.io_spec)}, Symbol{"soxr_version", at(library.version)}};
  const auto files = library_files(AudioLibrary::kSoxr, "FEEDLINE_LIBSOXR", {"libsoxr.so.0"});
  const auto found = open_library(files, symbols);
  if (!found)
    return config_error(
        "resampling needs libsoxr, but " + files.front() +
        " was not found: install it (Debian, Ubuntu: apt install libsoxr0; Fedora: dnf install soxr; or pip install "
        "soxr), or name the file in FEEDLINE_LIBSOXR");
  library.file = *found;
  return library;
}

}  // namespace

Result<const SoxrLibrary*> soxr_library() {
  static OpenOnce<SoxrLibrary> library;
  return library.get(open_soxr);
}

}  // namespace feedline::decode
