// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/sndfile_library.h"

#include <array>

#include "decode/audio/audio_libraries.h"

namespace feedline::decode {
namespace {

Result<SndfileLibrary> open_sndfile() {
  SndfileLibrary library;
  const auto at = [](auto& pointer) { return reinterpret_cast<void**>(&pointer); };
  const std::array symbols{Symbol{"sf_open_virtual", at(library.open_virtual)},
                           Symbol{"sf_close", at(library.close)},
                           Symbol{"sf_seek", at(library.seek)},
                           Symbol{"sf_readf_float", at(library.readf_float)},
                           Symbol{"sf_readf_short", at(library.readf_short)},
                           Symbol{"sf_strerror", at(library.strerror)},
                           Symbol{"sf_error", at(library.error)},
                           Symbol{"sf_version_string", at(library.version_string)}};
  const auto files = library_files(AudioLibrary::kSndfile, "FEEDLINE_LIBSNDFILE", {"libsndfile.so.1"});
  const auto found = open_library(files, symbols);
  if (!found)
    return config_error(
        "Ogg, Opus, MP3, W64, CAF and NIST files need libsndfile, but " + files.front() +
        " was not found: install it (Debian, Ubuntu: apt install libsndfile1; Fedora, RHEL: dnf install libsndfile; "
        "or pip install soundfile), or name the file in FEEDLINE_LIBSNDFILE");
  library.file = *found;
  return library;
}

}  // namespace

Result<const SndfileLibrary*> sndfile_library() {
  static OpenOnce<SndfileLibrary> library;
  return library.get(open_sndfile);
}

}  // namespace feedline::decode
